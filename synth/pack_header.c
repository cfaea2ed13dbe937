/* pack_header.c: names marked, entries left out, repeats copied (pack_header.h).
 *
 * Names of a model's layers repeat each other at the distance of a layer, so a copy that takes the distance of the one before costs one byte. The
 * bytes are coded afterwards, like those of any stream; prices are about what that makes of them. SPDX-License-Identifier: Apache-2.0 */
#include "synth/pack_header.h"

#include <stdlib.h>

#include "common/packed_header.h"

enum { LITERAL_PRICE = 5, CODE_PRICE = 6, DIGIT_PRICE = 6, DIGIT_BITS = 6, HASH_BITS = 16 };

/* Positions of text by the three bytes that begin there. */
struct places {
	const uint8_t *text;
	size_t nbytes, added;
	uint32_t *last, *before;        /* position + 1; 0: none */
};

struct match {
	size_t length, distance;
	long gain;
};

static unsigned digits_of(size_t value)
{
	unsigned n = 1;
	while (value >>= DIGIT_BITS)
		n++;
	return n;
}

static void put_number(struct buffer *out, size_t value)
{
	for (; value >> DIGIT_BITS; value >>= DIGIT_BITS)
		buffer_put_u8(out, (uint8_t)((value & mask_bits(DIGIT_BITS)) | 1u << DIGIT_BITS));
	buffer_put_u8(out, (uint8_t)value);
}

static uint32_t hash_of(const uint8_t *at) { return ((uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]) * 2654435761u >> (32 - HASH_BITS); }

static void add_up_to(struct places *p, size_t end)
{
	for (; p->added < end && p->added + 3 <= p->nbytes; p->added++) {
		uint32_t *last = &p->last[hash_of(p->text + p->added)];
		p->before[p->added] = *last, *last = (uint32_t)p->added + 1;
	}
}

static size_t common_length(const struct places *p, size_t at, size_t distance)
{
	size_t n = 0;
	while (at + n < p->nbytes && p->text[at + n] == p->text[at + n - distance])
		n++;
	return n;
}

/* How many bits a copy saves. */
static long gain_of(size_t length, size_t distance, bool again)
{
	const size_t least = again ? PACKED_AGAIN_MIN : PACKED_COPY_MIN, codes = again ? PACKED_COPY - PACKED_AGAIN : PACKED_COPY_END - PACKED_COPY;
	long price = CODE_PRICE;

	if (length < least)
		return 0;
	if (length >= least + codes - 1)
		price += DIGIT_PRICE * (long)digits_of(length - (least + codes - 1));
	if (!again)
		price += DIGIT_PRICE * (long)digits_of(distance - 1);
	return LITERAL_PRICE * (long)length - price;
}

/* The copy to `at` that saves most; length 0: none. */
static struct match best_match(struct places *p, size_t at, size_t distance)
{
	unsigned tries = p->nbytes < 1 << 18 ? 512 : 32;
	struct match best = { 0 };

	if (distance <= at) {
		const size_t length = common_length(p, at, distance);
		const long gain = gain_of(length, distance, true);
		if (gain > 0)
			best = (struct match){ length, distance, gain };
	}
	add_up_to(p, at);
	if (at + PACKED_COPY_MIN > p->nbytes)
		return best;
	for (uint32_t place = p->last[hash_of(p->text + at)]; place && tries; place = p->before[place - 1], tries--) {
		const size_t from = at - (place - 1);
		const size_t length = from == distance ? 0 : common_length(p, at, from);
		const long gain = gain_of(length, from, false);
		if (gain > best.gain)
			best = (struct match){ length, from, gain };
	}
	return best;
}

static void put_copy(struct buffer *out, const struct match *m, bool again)
{
	const unsigned base = again ? PACKED_AGAIN : PACKED_COPY, last = (again ? PACKED_COPY : PACKED_COPY_END) - 1;
	const size_t extra = m->length - (again ? PACKED_AGAIN_MIN : PACKED_COPY_MIN);

	buffer_put_u8(out, (uint8_t)MIN(base + extra, (size_t)last));
	if (base + extra >= last)
		put_number(out, base + extra - last);
	if (!again)
		put_number(out, m->distance - 1);
}

bool pack_text(const uint8_t *text, size_t nbytes, struct buffer *out)
{
	struct places p = { .text = text, .nbytes = nbytes };
	size_t distance = 1;

	p.last = calloc((size_t)1 << HASH_BITS, sizeof(*p.last));
	p.before = malloc((nbytes + 1) * sizeof(*p.before));
	const bool ok = p.last && p.before;
	put_number(out, nbytes);
	for (size_t at = 0; ok && at < nbytes;) {
		const struct match m = best_match(&p, at, distance);
		/* A literal now, if it leads to a better copy. */
		if (m.length && (at + 1 == nbytes || best_match(&p, at + 1, distance).gain <= m.gain)) {
			put_copy(out, &m, m.distance == distance);
			distance = m.distance, at += m.length;
			continue;
		}
		if (text[at] == PACKED_LITERAL || (text[at] >= PACKED_AGAIN && text[at] < PACKED_COPY_END))
			buffer_put_u8(out, PACKED_LITERAL);
		buffer_put_u8(out, text[at++]);
	}
	free(p.last);
	free(p.before);
	return ok && !out->failed;
}

static struct header_entry entry_of(void *context, uint64_t i)
{
	const struct tensor *t = &((const struct checkpoint *)context)->tensor[i];
	return (struct header_entry){ .dtype = t->dtype_name, .shape = t->shape, .ndim = t->ndim, .begin = t->offset, .end = t->offset + t->nbytes };
}

static void ignore_name(void *context, uint64_t i, uint64_t at, uint64_t nbytes)
{
	(void)context, (void)i, (void)at, (void)nbytes;
}

/* Text with marks for the names, as if all entries were written as usual. False if names stand in another order than data, or are spelled with escapes. */
static bool mark_entries(const struct checkpoint *c, struct buffer *out)
{
	const uint8_t *text = c->header;
	size_t at = 0;

	for (size_t i = 0; i < c->ntensors; i++) {
		const struct tensor *t = &c->tensor[i];
		const size_t name = (size_t)t->name_offset, quote = t->name_offset > 1 && text[name - 2] == ',' ? 2 : 1;
		if (t->name_offset < 0 || name < at + quote)
			return false;
		buffer_put(out, text + at, name - quote - at);
		buffer_put_u8(out, PACKED_NAME);
		buffer_put(out, t->name, t->name_nbytes);
		const uint8_t *end = memchr(text + name + t->name_nbytes, '}', c->header_nbytes - name - t->name_nbytes);
		if (!end)
			return false;
		at = (size_t)(end + 1 - text);
	}
	if (c->ntensors)
		buffer_put_u8(out, PACKED_REST);
	buffer_put(out, text + at, c->header_nbytes - at);
	return !out->failed;
}

/* Whether marked text stands for the header. */
static bool is_header(const struct checkpoint *c, struct span marked)
{
	const struct header_entries entries = { c->ntensors, (void *)c, entry_of, ignore_name };
	uint64_t nbytes;
	struct error err;

	if (header_expand(marked, &entries, NULL, &nbytes, &err) != BRV_OK || nbytes != c->header_nbytes)
		return false;
	uint8_t *text = malloc(nbytes + 1);
	const bool same = text && header_expand(marked, &entries, text, &nbytes, &err) == BRV_OK && memcmp(text, c->header, nbytes) == 0;
	free(text);
	return same;
}

enum brv_status pack_header(const struct checkpoint *c, struct buffer *out, uint16_t *flags)
{
	struct buffer marked = { 0 };
	const bool entries = mark_entries(c, &marked) && is_header(c, (struct span){ marked.data, marked.nbytes });
	const bool ok = entries ? pack_text(marked.data, marked.nbytes, out) : pack_text(c->header, c->header_nbytes, out);

	buffer_free(&marked);
	*flags = entries ? AR_FLAG_PACKED | AR_FLAG_ENTRIES : AR_FLAG_PACKED;
	if (ok && out->nbytes >= c->header_nbytes) {
		out->nbytes = 0, *flags = 0;
		buffer_put(out, c->header, c->header_nbytes);
	}
	return ok && !out->failed ? BRV_OK : BRV_MEMORY;
}

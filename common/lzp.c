/* lzp.c: one walk over the bytes, which either puts out what codes them or reads it (lzp.h).
 *
 * The coder of bits is the range coder with carries of Martin (1979), as LZMA has it: `low` is the beginning of the interval, `range` its length.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/lzp.h"

#include <stdlib.h>

enum { ORDER = 3, SLOT_BITS = 16, MOST_RUN = 15, MOST_SEEN = 30, ENOUGH_SEEN = 2, P_BITS = 12 };
#define LEAST_RANGE (1u << 24)

/* How likely a bit is 1: (half + 32768) / 65536; how often it was met, up to MOST_SEEN. All zeros: not met yet. */
struct bit {
	int16_t half;
	uint16_t seen;
};

struct model {
	uint32_t last[1 << SLOT_BITS];  /* position that followed three bytes with this hash last; 0: none */
	struct bit hit[MOST_RUN + 1][256], any[256], after[256][256];
};

struct coder {
	struct buffer *out;             /* NULL: decoding */
	uint64_t low;                   /* encoding: 33 bits */
	uint32_t range, code;           /* code: decoding, what has been read beyond the interval's beginning */
	uint8_t held;                   /* encoding: a byte that a carry may still change */
	uint64_t nheld;                 /* it, and bytes 255 behind it */
	struct cursor in;
};

static void put_byte(struct coder *c)
{
	if (!c->nheld || (uint32_t)c->low < 0xff000000u || c->low >> 32) {
		const uint8_t carry = (uint8_t)(c->low >> 32);
		for (bool first = true; c->nheld; c->nheld--, first = false)
			buffer_put_u8(c->out, (uint8_t)((first ? c->held : 255) + carry));
		c->held = (uint8_t)(c->low >> 24);
	}
	c->nheld++;
	c->low = (c->low & 0xffffff) << 8;
}

/* Codes `bit`, or decodes and returns it. */
static unsigned code_bit(struct coder *c, const struct bit *p, unsigned bit)
{
	const uint32_t bound = (c->range >> P_BITS) * ((uint32_t)(p->half + 32768) >> (16 - P_BITS));

	if (!c->out)
		bit = c->code < bound;
	if (bit)
		c->range = bound;
	else
		c->low += bound, c->code -= bound, c->range -= bound;
	for (; c->range < LEAST_RANGE; c->range <<= 8)
		if (c->out)
			put_byte(c);
		else
			c->code = c->code << 8 | cursor_u8(&c->in);
	return bit;
}

/* The first times count most: floor(2^17 / (2 * seen + 3)) of 2^16. */
static const uint16_t rate[MOST_SEEN + 1] = { 43690, 26214, 18724, 14563, 11915, 10082, 8738, 7710, 6898, 6241, 5698, 5242, 4854, 4519, 4228, 3971,
					      3744, 3542, 3360, 3196, 3048, 2912, 2788, 2674, 2570, 2473, 2383, 2299, 2221, 2148, 2080 };

static void learn(struct bit *p, unsigned bit)
{
	const uint32_t now = (uint32_t)(p->half + 32768), least = 32;
	const uint32_t next = bit ? now + ((65535 - now) * rate[p->seen] >> 16) : now - (now * rate[p->seen] >> 16);

	p->half = (int16_t)((int32_t)MIN(MAX(next, least), 65535 - least) - 32768);
	p->seen += p->seen < MOST_SEEN;
}

static uint8_t code_byte(struct coder *c, struct model *m, uint8_t before, uint8_t byte)
{
	unsigned node = 1;

	for (unsigned k = 8; k-- > 0;) {
		struct bit *any = &m->any[node], *after = &m->after[before][node];
		const unsigned bit = code_bit(c, after->seen >= ENOUGH_SEEN ? after : any, byte >> k & 1);
		learn(any, bit);
		learn(after, bit);
		node = node << 1 | bit;
	}
	return (uint8_t)node;
}

static uint32_t *slot_of(struct model *m, const uint8_t *end)
{
	return &m->last[((uint32_t)end[-3] << 16 | (uint32_t)end[-2] << 8 | end[-1]) * 2654435761u >> (32 - SLOT_BITS)];
}

/* Encoding reads the bytes, decoding writes them: to is `bytes` then, else NULL. */
static void walk(struct coder *c, struct model *m, const uint8_t *bytes, uint8_t *to, size_t nbytes)
{
	size_t match = 0;               /* the position that is expected to repeat itself; 0: none */
	unsigned run = 0;

	for (size_t i = 0; i < nbytes && !c->in.bad; i++) {
		uint32_t *slot = i >= ORDER ? slot_of(m, bytes + i) : NULL;
		bool hit = false;
		if (!match && slot)
			match = *slot, run = 0;
		if (match) {
			struct bit *p = &m->hit[run][bytes[match]];
			hit = code_bit(c, p, !to && bytes[i] == bytes[match]);
			learn(p, hit);
		}
		if (hit) {
			if (to)
				to[i] = bytes[match];
			match++, run += run < MOST_RUN;
		} else {
			const uint8_t byte = code_byte(c, m, i ? bytes[i - 1] : 0, to ? 0 : bytes[i]);
			if (to)
				to[i] = byte;
			match = 0;
		}
		if (slot)
			*slot = (uint32_t)i;
	}
}

bool lzp_encode(const uint8_t *bytes, size_t nbytes, struct buffer *out)
{
	struct coder c = { .out = out, .range = UINT32_MAX };
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return false;
	walk(&c, m, bytes, NULL, nbytes);
	for (unsigned i = 0; i < 5; i++)
		put_byte(&c);
	free(m);
	return !out->failed;
}

enum brv_status lzp_decode(struct span coded, uint8_t *out, size_t nbytes, struct error *err)
{
	struct coder c = { .range = UINT32_MAX, .in = { coded.ptr, coded.ptr + coded.nbytes, false } };
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return fail(err, BRV_MEMORY, "no memory to decode a section");
	for (unsigned i = 0; i < 4; i++)
		c.code = c.code << 8 | cursor_u8(&c.in);
	walk(&c, m, out, out, nbytes);
	free(m);
	if (c.in.bad || cursor_left(&c.in))
		return fail(err, BRV_DAMAGED, "its code is %s", c.in.bad ? "cut short" : "longer than what it holds");
	return BRV_OK;
}

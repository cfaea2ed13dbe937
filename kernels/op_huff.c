/* op_huff.c: lit.huff (docs/FORMAT.md, 5.3): canonical Huffman, several symbols a lookup, eight bit strings side by side.
 *
 * A window as long as the longest code tells up to four whole codes. While a segment has room for a careless 8-byte read and for four lookups'
 * symbols, it is decoded without any check; the rest goes code by code. A small tensor has a table of its own, which is not in any cache: then most of
 * the time goes into fetching it, so that the smaller table, of one code for each window, is quicker. SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"
#include "kernels/body.h"

enum { SEGMENTS = 8, ONE_SEGMENT_BELOW = 256, LOOKUPS = 4, FEW_WORDS = 4096 };

struct segment {
	const uint8_t *at, *end;        /* bytes not yet in `bits` */
	uint8_t *out, *out_end;
	uint64_t bits;
	unsigned count;                 /* bits held */
};

/* Bits held after this: 56 or more. Reads 8 bytes. */
static inline void refill(struct segment *s)
{
	s->bits |= load_u64(s->at) << s->count;
	s->at += (63 - s->count) >> 3;
	s->count |= 56;
}

/* Four lookups: at most 16 symbols (4 if there are few words) and 48 bits. */
static inline __attribute__((always_inline)) void decode_fast(struct segment *s, const struct kn_huff *t, const bool few)
{
	const uint64_t window = mask_bits(t->bits);

	refill(s);
#pragma GCC unroll 4
	for (unsigned i = 0; i < LOOKUPS; i++) {
		unsigned used;
		if (few) {
			const unsigned one = t->one[s->bits & window];
			*s->out++ = (uint8_t)one;
			used = one >> 8;
		} else {
			const uint64_t e = t->entry[s->bits & window];
			store_u32(s->out, (uint32_t)e);
			s->out += e >> 32 & 7;
			used = (unsigned)(e >> 40);
		}
		s->bits >>= used;
		s->count -= used;
	}
}

static inline bool is_fast(const struct segment *s, const bool few)
{
	return s->end - s->at >= 8 && s->out_end - s->out >= (few ? LOOKUPS : 4 * LOOKUPS);
}

/* The rest of a segment, code by code. True if it ends with its bytes, but for less than 8 bits of zeros. */
static bool decode_rest(struct segment *s, const struct kn_huff *t)
{
	while (s->out < s->out_end) {
		if (s->count < HUFF_BITS) {
			const unsigned more = (unsigned)MIN((size_t)(s->end - s->at), (size_t)(63 - s->count) / 8);
			s->bits |= (load_u64(s->at) & mask_bits(8 * more)) << s->count;
			s->at += more;
			s->count += 8 * more;
		}
		const unsigned one = t->one[s->bits & mask_bits(t->bits)];
		if (one >> 8 > s->count)
			return false;
		*s->out++ = (uint8_t)one;
		s->bits >>= one >> 8;
		s->count -= one >> 8;
	}
	return s->at == s->end && s->count < 8 && (s->bits & mask_bits(s->count)) == 0;
}

/* The bytes that a fast refill took but that belong to no code yet go back. */
static void settle(struct segment *s)
{
	s->at -= s->count / 8;
	s->count %= 8;
	s->bits &= mask_bits(s->count);
}

static bool find_segments(const struct kn_args *a, struct segment *segment, unsigned nsegments)
{
	struct cursor c = { a->pay, a->pay + a->pay_nbytes, false };
	const size_t q = ceil_div(a->n, nsegments);
	uint64_t nbytes[SEGMENTS], sum = 0;

	for (unsigned s = 0; s + 1 < nsegments; s++) {
		nbytes[s] = cursor_varint(&c);
		if (!add_u64(sum, nbytes[s], &sum))
			return false;
	}
	if (c.bad || sum > cursor_left(&c))
		return false;
	nbytes[nsegments - 1] = cursor_left(&c) - sum;
	for (unsigned s = 0; s < nsegments; s++) {
		segment[s] = (struct segment){ .at = cursor_bytes(&c, nbytes[s]), .out = (uint8_t *)a->dst + MIN(s * q, a->n) };
		segment[s].end = segment[s].at + nbytes[s];
		segment[s].out_end = (uint8_t *)a->dst + MIN((s + 1) * q, a->n);
	}
	return true;
}

static inline __attribute__((always_inline)) bool decode_segments(struct segment *segment, unsigned nsegments, const struct kn_huff *t, const bool few)
{
	bool good = true;

	if (nsegments == SEGMENTS) {
		for (bool all = true; all;) {
			for (unsigned s = 0; s < SEGMENTS; s++)
				all = all && is_fast(&segment[s], few);
			for (unsigned s = 0; all && s < SEGMENTS; s++)
				decode_fast(&segment[s], t, few);
		}
	}
	for (unsigned s = 0; s < nsegments; s++) {
		while (is_fast(&segment[s], few))
			decode_fast(&segment[s], t, few);
		settle(&segment[s]);
		good = good && decode_rest(&segment[s], t);
	}
	return good;
}

bool KN(huff)(const struct kn_args *args)
{
	const struct kn_huff *t = &args->table->huff;
	const unsigned nsegments = args->n < ONE_SEGMENT_BELOW ? 1 : SEGMENTS;
	struct segment segment[SEGMENTS];

	if (!find_segments(args, segment, nsegments))
		return false;
	return args->n < FEW_WORDS ? decode_segments(segment, nsegments, t, true) : decode_segments(segment, nsegments, t, false);
}

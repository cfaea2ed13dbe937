/* rans_neon.h: lit.rans and its fused merges in NEON.
 *
 * The 128 states are byte planes in memory, low and high: the tables want the registers. A group of 128 words is two halves of 64 lanes, a
 * half is four steps of 16:
 *
 *   tbl looks tables of up to 64 entries up in one instruction, tbl + tbx more;
 *   x = freq * hi + rank is a widening multiply and a widening add, uzp splits the products into planes again;
 *   the masks of small states of a half become 64 bits by pairwise adds; one 64-bit multiply makes prefix sums of their counts, which say
 *   where each 8 lanes take their bytes from, so that only one add a half is on the way from one payload position to the next;
 *   each 8 lanes spread their bytes by a shuffle from a table of 256; tbx leaves the other lanes alone.
 *
 * Escapes are rare: a group that has any corrects its symbols in a cold path. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_ARM_RANS_NEON_H
#define KERNELS_ARM_RANS_NEON_H

#include "kernels/rans_shape.h"
#include "kernels/arm/simd_arm.h"

/* spread[m]: for each of 8 lanes, how many lower lanes are in the mask m, if it is in m itself; else 128: tbx leaves it. */
#define LANE(m, k) ((m) >> (k) & 1 ? __builtin_popcount((m) & ((1u << (k)) - 1)) : 128)
#define MASK1(m) { LANE(m, 0), LANE(m, 1), LANE(m, 2), LANE(m, 3), LANE(m, 4), LANE(m, 5), LANE(m, 6), LANE(m, 7) }
#define MASK4(m) MASK1(m), MASK1((m) + 1), MASK1((m) + 2), MASK1((m) + 3)
#define MASK16(m) MASK4(m), MASK4((m) + 4), MASK4((m) + 8), MASK4((m) + 12)
#define MASK64(m) MASK16(m), MASK16((m) + 16), MASK16((m) + 32), MASK16((m) + 48)
static const uint8_t spread[256][8] __attribute__((aligned(64))) = { MASK64(0u), MASK64(64u), MASK64(128u), MASK64(192u) };
#undef LANE
#undef MASK1
#undef MASK4
#undef MASK16
#undef MASK64

/* 16 packed fields of w bits, w = 1..8, as bytes, moved up by `lift` bits; above (and with a lift, below) the field stand other bits. */
RANS_INLINE uint8x16_t unpack_bits16(const uint8_t *p, const unsigned w, const int lift)
{
	uint8_t from[16], next[16];
	int8_t down[16], up[16];

	if (w == 8)
		return vld1q_u8(p);
	for (unsigned k = 0; k < 16; k++) {
		from[k] = (uint8_t)(k * w / 8), next[k] = (uint8_t)(from[k] + 1);
		down[k] = (int8_t)(lift - (int)(k * w % 8)), up[k] = (int8_t)(down[k] + 8);
	}
	const uint8x16_t packed = vld1q_u8(p), bits = vshlq_u8(vqtbl1q_u8(packed, vld1q_u8(from)), vld1q_s8(down));
	if (8 % w == 0)
		return bits;
	return vorrq_u8(bits, vshlq_u8(vqtbl1q_u8(packed, vld1q_u8(next)), vld1q_s8(up)));
}

/* Words of 32 bits with one raw field of 23 or 24 bits. */
RANS_INLINE void emit_dwords16(const unsigned first, const bool rotate, uint8x16_t symbol, const uint8_t *raw, unsigned base, uint8_t *dst)
{
#pragma GCC unroll 4
	for (unsigned q = 0; q < 4; q++) {
		const unsigned bit = q * 4 * first;
		const uint8x16x2_t bytes = { { vld1q_u8(raw + bit / 8), symbol } };
		uint8_t index[16];
		uint32x4_t word;
		if (first == 24) {
			for (unsigned k = 0; k < 16; k++)
				index[k] = (uint8_t)(k % 4 == 3 ? 16 + 4 * q + k / 4 : k / 4 * 3 + k % 4);
			word = vreinterpretq_u32_u8(vqtbl2q_u8(bytes, vld1q_u8(index)));
		} else { /* field k begins in byte (bit % 8 + 23k) / 8, and 4 bytes hold all of it */
			int32_t down[4];
			uint8_t high[16];
			for (unsigned k = 0; k < 16; k++) {
				const unsigned at = bit % 8 + k / 4 * first;
				index[k] = (uint8_t)(at / 8 + k % 4);
				high[k] = (uint8_t)(k % 4 ? 255 : 4 * q + k / 4);
				down[k / 4] = -(int32_t)(at % 8);
			}
			const uint32x4_t low = vshlq_u32(vreinterpretq_u32_u8(vqtbl1q_u8(bytes.val[0], vld1q_u8(index))), vld1q_s32(down));
			const uint32x4_t coded = vreinterpretq_u32_u8(vqtbl1q_u8(symbol, vld1q_u8(high)));
			word = vsliq_n_u32(low, vaddq_u32(coded, vdupq_n_u32(base)), 23);
		}
		vst1q_u8(dst + 16 * q, vreinterpretq_u8_u32(rotate ? vsliq_n_u32(vshrq_n_u32(word, 1), word, 31) : word));
	}
}

/* Words of 16 bits: low and high bytes side by side; `base` is added to what stands 7 bits up if the low byte holds 7 bits, lifted by 1. */
RANS_INLINE void emit_words16(const unsigned first, const bool rotate, uint8x16_t low, uint8x16_t high, unsigned base, uint8_t *dst)
{
	if (first == 8 && rotate) { /* in bytes: the lowest bit of each goes to the top of the other */
		const uint8x16_t turned = vsliq_n_u8(vshrq_n_u8(low, 1), high, 7);
		high = vsliq_n_u8(vshrq_n_u8(high, 1), low, 7);
		low = turned;
	}
	uint16x8_t word[2] = { vreinterpretq_u16_u8(vzip1q_u8(low, high)), vreinterpretq_u16_u8(vzip2q_u8(low, high)) };
#pragma GCC unroll 2
	for (unsigned h = 0; h < 2; h++) {
		if (first == 7) {
			word[h] = vaddq_u16(vshrq_n_u16(word[h], 1), vdupq_n_u16((uint16_t)(base << 7)));
			if (rotate)
				word[h] = vsliq_n_u16(vshrq_n_u16(word[h], 1), word[h], 15);
		}
		vst1q_u8(dst + 16 * h, vreinterpretq_u8_u16(word[h]));
	}
}

/* Writes 16 words made of symbols (bytes, the base not yet added if the coded field has more than 8 bits) and raw fields. */
RANS_INLINE void emit16(const enum rans_shape shape, uint8x16_t symbol, struct rans_raw *raw, const struct rans_consts *consts, uint8_t *dst)
{
	const unsigned width = rans_shape_of[shape].width, first = rans_shape_of[shape].raw[0], second = rans_shape_of[shape].raw[1];
	const bool rotate = rans_shape_of[shape].rotate;

	if (shape == SHAPE_BYTES) {
		vst1q_u8(dst, symbol);
		return;
	}
	const uint8_t *const at = raw->at[0];
	raw->at[0] += 2 * first;
	if (width == 32) {
		emit_dwords16(first, rotate, symbol, at, consts->base, dst);
		return;
	}
	const uint8x16_t low = unpack_bits16(at, first, first == 7);
	if (width == 8) {
		vst1q_u8(dst, first == 2 ? vsliq_n_u8(low, symbol, 2) : vsliq_n_u8(low, symbol, 3));
		return;
	}
	if (second) {
		const uint8x16_t middle = unpack_bits16(raw->at[1], second, 0);
		raw->at[1] += 2 * second;
		symbol = second == 2 ? vsliq_n_u8(middle, symbol, 2) : vsliq_n_u8(middle, symbol, 1);
	}
	emit_words16(first, rotate, low, symbol, consts->base, dst);
}

/* The tables of one row class stay in memory: four times 64 entries would leave no register, and one load of four serves 64 lanes. */
struct rans_regs {
	const struct kn_rans_rows *rows;
};

RANS_INLINE void load_rows(struct rans_regs *regs, const struct kn_rans_rows *rows, const unsigned log2_nb, const unsigned kc,
			   const struct rans_consts *consts)
{
	(void)log2_nb, (void)kc, (void)consts;
	regs->rows = rows;
}

/* found[i] = table[index[i]] for 64 lanes; indices are below nentries, which is 16, 32, 64, 128 or 256. */
RANS_INLINE void lookup64(uint8x16_t found[4], const uint8_t *table, const uint8x16_t index[4], const unsigned nentries)
{
	if (nentries == 16) {
		const uint8x16_t t = vld1q_u8(table);
		for (unsigned q = 0; q < 4; q++)
			found[q] = vqtbl1q_u8(t, index[q]);
	} else if (nentries == 32) {
		const uint8x16x2_t t = vld1q_u8_x2(table);
		for (unsigned q = 0; q < 4; q++)
			found[q] = vqtbl2q_u8(t, index[q]);
	} else {
		uint8x16x4_t t = vld1q_u8_x4(table);
		for (unsigned q = 0; q < 4; q++)
			found[q] = vqtbl4q_u8(t, index[q]);
		for (unsigned i = 64; i < nentries; i += 64) {
			t = vld1q_u8_x4(table + i);
			for (unsigned q = 0; q < 4; q++)
				found[q] = vqtbx4q_u8(found[q], t, vsubq_u8(index[q], vdupq_n_u8((uint8_t)i)));
		}
	}
}

/* Everything that a group carries along. */
struct rans_run {
	uint8_t lo[RANS_LANES], hi[RANS_LANES];
	const uint8_t *at;              /* renormalisation bytes */
	const uint8_t *escape;          /* next escape's byte */
};

RANS_INLINE void run_load(struct rans_run *run, const uint8_t *states) { memcpy(run->lo, states, 2 * RANS_LANES); }

RANS_INLINE void run_store(const struct rans_run *run, uint8_t *low, uint8_t *high)
{
	memcpy(low, run->lo, RANS_LANES);
	memcpy(high, run->hi, RANS_LANES);
}

RANS_INLINE uint8x16_t bucket_of(uint8x16_t lo, const unsigned log2_nb)
{
	return log2_nb == 4 ? vshrq_n_u8(lo, 4) : log2_nb == 5 ? vshrq_n_u8(lo, 3) : vshrq_n_u8(lo, 2);
}

/* One step of 64 lanes but for renormalisation: symbol indices, columns included. Table by table: each is in registers in its turn. */
RANS_INLINE void advance64(const unsigned log2_nb, const unsigned kc, uint8x16_t lo[4], uint8x16_t hi[4], uint8x16_t index[4],
			   const struct kn_rans_rows *rows, const uint8_t *column)
{
	const unsigned nentries = kc << log2_nb;
	const uint8x16_t in_bucket = vdupq_n_u8((uint8_t)((256u >> log2_nb) - 1));
	uint8x16_t bucket[4], own[4], rank[4], found[4];

	for (unsigned q = 0; q < 4; q++) {
		bucket[q] = bucket_of(lo[q], log2_nb);
		if (kc > 1)
			bucket[q] = vorrq_u8(bucket[q], vld1q_u8(column + 16 * q));
	}
	lookup64(found, rows->threshold, bucket, nentries);
	for (unsigned q = 0; q < 4; q++)
		own[q] = vcltq_u8(lo[q], found[q]);
	lookup64(found, rows->before, bucket, nentries);
	for (unsigned q = 0; q < 4; q++)
		rank[q] = vbslq_u8(own[q], vandq_u8(lo[q], in_bucket), vaddq_u8(lo[q], found[q]));
	lookup64(found, rows->alias, bucket, nentries);
	for (unsigned q = 0; q < 4; q++)
		index[q] = vbslq_u8(own[q], bucket[q], found[q]);
	lookup64(found, rows->freq, index, nentries);
	for (unsigned q = 0; q < 4; q++) {
		const uint8x16_t x0 = vreinterpretq_u8_u16(vaddw_u8(vmull_u8(vget_low_u8(found[q]), vget_low_u8(hi[q])), vget_low_u8(rank[q])));
		const uint8x16_t x1 = vreinterpretq_u8_u16(vaddw_high_u8(vmull_high_u8(found[q], hi[q]), rank[q]));
		lo[q] = vuzp1q_u8(x0, x1);
		hi[q] = vuzp2q_u8(x0, x1);
	}
}

/* One bit of 64 for each lane whose mask is set. */
RANS_INLINE uint64_t mask64(const uint8x16_t mask[4])
{
	const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
	const uint8x16_t a = vpaddq_u8(vandq_u8(mask[0], bit), vandq_u8(mask[1], bit));
	const uint8x16_t b = vpaddq_u8(vandq_u8(mask[2], bit), vandq_u8(mask[3], bit));
	const uint8x16_t ab = vpaddq_u8(a, b);
	return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(ab, ab)), 0);
}

/* States of 64 lanes that fell below 256 take the next bytes, in lane order. */
RANS_INLINE void refill64(struct rans_run *run, const unsigned half, uint8x16_t lo[4], uint8x16_t hi[4])
{
	uint8x16_t small[4];

	for (unsigned q = 0; q < 4; q++)
		small[q] = vceqzq_u8(hi[q]);
	const uint64_t mask = mask64(small), count = vget_lane_u64(vreinterpret_u64_u8(vcnt_u8(vcreate_u8(mask))), 0);
	const uint64_t upto = count * 0x0101010101010101ull, before = upto << 8; /* by byte: bytes taken up to it, and before it */
#pragma GCC unroll 4
	for (unsigned q = 0; q < 4; q++) {
		const unsigned at0 = 16 * q, at1 = 16 * q + 8;
		hi[q] = vbslq_u8(small[q], lo[q], hi[q]);
		const uint8x16_t bytes0 = vld1q_u8(run->at + (before >> at0 & 255)), bytes1 = vld1q_u8(run->at + (before >> at1 & 255));
		const uint8x8_t lo0 = vqtbx1_u8(vget_low_u8(lo[q]), bytes0, vld1_u8(spread[mask >> at0 & 255]));
		const uint8x8_t lo1 = vqtbx1_u8(vget_high_u8(lo[q]), bytes1, vld1_u8(spread[mask >> at1 & 255]));
		vst1q_u8(run->lo + 64 * half + 16 * q, vcombine_u8(lo0, lo1));
		vst1q_u8(run->hi + 64 * half + 16 * q, hi[q]);
	}
	run->at += upto >> 56;
}

/* The symbols of 64 lanes some of which are escapes. */
static __attribute__((noinline, cold)) const uint8_t *put_escapes(uint8_t symbol[64], uint64_t escaped, const uint8_t *escape)
{
	for (; escaped; escaped &= escaped - 1)
		symbol[__builtin_ctzll(escaped)] = *escape++;
	return escape;
}

/* One step of 64 lanes. */
RANS_INLINE void step64(const unsigned log2_nb, const unsigned kc, struct rans_run *run, const unsigned half, const struct rans_regs *regs,
			const uint8_t *column, const uint8_t map[64], const uint8x16_t escape, uint8x16_t symbol[4])
{
	const uint8x16_t in_column = vdupq_n_u8((uint8_t)((1u << log2_nb) - 1));
	uint8x16_t lo[4], hi[4], index[4], escaped[4];

	for (unsigned q = 0; q < 4; q++)
		lo[q] = vld1q_u8(run->lo + 64 * half + 16 * q), hi[q] = vld1q_u8(run->hi + 64 * half + 16 * q);
	advance64(log2_nb, kc, lo, hi, index, regs->rows, column);
	for (unsigned q = 0; q < 4; q++) {
		if (kc > 1)
			index[q] = vandq_u8(index[q], in_column);
		escaped[q] = vceqq_u8(index[q], escape);
	}
	lookup64(symbol, map, index, 1u << log2_nb);
	refill64(run, half, lo, hi);
	const uint8x16_t any = vorrq_u8(vorrq_u8(escaped[0], escaped[1]), vorrq_u8(escaped[2], escaped[3]));
	if (__builtin_expect(vmaxvq_u8(any), 0)) {
		uint8_t bytes[64];
		for (unsigned q = 0; q < 4; q++)
			vst1q_u8(bytes + 16 * q, symbol[q]);
		run->escape = put_escapes(bytes, mask64(escaped), run->escape);
		for (unsigned q = 0; q < 4; q++)
			symbol[q] = vld1q_u8(bytes + 16 * q);
	}
}

RANS_INLINE void emit_all(const enum rans_shape shape, const uint8_t *symbol, size_t n, struct rans_raw *raw, const struct rans_consts *consts,
			  uint8_t *dst)
{
	for (size_t i = 0; i < n; i += 16)
		emit16(shape, vld1q_u8(symbol + i), raw, consts, dst + i * word_nbytes(rans_shape_of[shape].width));
}

/* Symbols in memory, a multiple of 64, made into words. Out of line: the instances of the groups are many and large. */
static __attribute__((noinline)) void emit_symbols(const enum rans_shape shape, const uint8_t *symbol, size_t n, struct rans_raw *raw,
						   const struct rans_consts *consts, uint8_t *dst)
{
	switch (shape) {
#define CASE(s) case s: emit_all(s, symbol, n, raw, consts, dst); break;
	CASE(SHAPE_BYTES) CASE(SHAPE_8_8_ROT) CASE(SHAPE_7_9_ROT) CASE(SHAPE_8_8) CASE(SHAPE_7_9) CASE(SHAPE_8_2_6)
	CASE(SHAPE_8_1_7) CASE(SHAPE_24_8_ROT) CASE(SHAPE_23_9_ROT) CASE(SHAPE_2_6) CASE(SHAPE_3_5)
#undef CASE
	case SHAPE_COUNT: break;
	}
}

/* 128 words: to dst, or, if dst is NULL, only their symbols to symbol[]. column: class * nb by lane; ignored if kc is 1. */
RANS_INLINE void group128(const enum rans_shape shape, const unsigned log2_nb, const unsigned kc, struct rans_run *run, const struct rans_regs *regs,
			  const uint8_t *column, const struct rans_consts *consts, struct rans_raw *raw, uint8_t *dst, uint8_t *symbol)
{
	const unsigned size = word_nbytes(rans_shape_of[shape].width);
	const uint8x16_t escape = vdupq_n_u8(consts->escape);

	__asm__("" : "+r"(dst)); /* or compilers make two loops around the group, with and without dst */
#pragma GCC unroll 1
	for (unsigned h = 0; h < 2; h++) {
		uint8x16_t s[4];
		step64(log2_nb, kc, run, h, regs, kc > 1 ? column + 64 * h : NULL, consts->map, escape, s);
#pragma GCC unroll 4
		for (unsigned q = 0; q < 4; q++)
			if (dst)
				emit16(shape, s[q], raw, consts, dst + (64 * h + 16 * q) * size);
			else
				vst1q_u8(symbol + 64 * h + 16 * q, s[q]);
	}
}

#endif

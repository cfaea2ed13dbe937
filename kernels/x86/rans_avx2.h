/* rans_avx2.h: lit.rans and its fused merges in AVX2 (and POPCNT).
 *
 * The 128 states are kept as byte planes, low and high, in eight registers' worth. A group of 128 words is four steps of 32:
 *
 *   tables are looked up 16 entries at a time (vpshufb), and the bits of the index above the fourth choose among the results;
 *   x = freq * hi + rank is two 16-bit multiplies, one for even and one for odd bytes;
 *   states with hi = 0 take the next bytes of the payload in lane order: a running count of such states within each 16 lanes is
 *   the index of a shuffle of the next 16 bytes;
 *   escapes get their symbols afterwards, for a block of groups at once: where they are cannot be predicted.
 *
 * Symbols go through memory, so that there is one copy of the decoder for each shape of tables and one of what becomes of the symbols for each
 * shape of words; blocks are short, so that the loads and stores of the one overlap with the work of the other.
 *
 * No pdep: the first CPUs with AVX2 of one maker run it in microcode. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_RANS_AVX2_H
#define KERNELS_X86_RANS_AVX2_H

#include "kernels/x86/lookup_avx2.h"
#include "kernels/rans_shape.h"

#define RANS_ANY_TABLE 1        /* load_rows() and groups128() take any log2_nb and kc, known to the compiler or not */
#define RANS_OWN_GROUPS 1       /* groups128() and groups_flush() instead of group128() */

/* A constant that the compiler does not know, so that it multiplies by it instead of shifting and adding. */
RANS_INLINE __m256i unknown256(__m256i v)
{
#ifdef __AVX2__
	__asm__("" : "+x"(v));
#endif
	return v;
}

/* 32 packed fields of w bits, w = 1..8, as bytes, moved up by `lift` bits. Each field lies in two bytes, which a multiplication moves so
 * that the field stands in the upper one. */
RANS_INLINE __m256i unpack_bits32(const uint8_t *p, const unsigned w, const unsigned lift)
{
	uint8_t even[32], odd[32];
	uint16_t even_up[16], odd_up[16];

	if (w == 8)
		return load256(p);
	for (unsigned i = 0; i < 16; i++) {
		const unsigned k = i % 8 * 2, bit = k * w, next = bit + w; /* of 16 fields, which begin at a whole byte */
		even[2 * i] = (uint8_t)(bit / 8), even[2 * i + 1] = (uint8_t)(bit / 8 + 1);
		odd[2 * i] = (uint8_t)(next / 8), odd[2 * i + 1] = (uint8_t)(next / 8 + 1);
		even_up[i] = (uint16_t)(1u << (8 + lift - bit % 8)), odd_up[i] = (uint16_t)(1u << (8 + lift - next % 8));
	}
	const __m256i packed = load_halves(p, p + 2 * w);
	const __m256i low = _mm256_mullo_epi16(_mm256_shuffle_epi8(packed, load256(even)), load256(even_up));
	const __m256i high = _mm256_mullo_epi16(_mm256_shuffle_epi8(packed, load256(odd)), load256(odd_up));
	const __m256i both = select256(_mm256_srli_epi16(low, 8), high, _mm256_set1_epi16((short)0xff00));
	return _mm256_and_si256(both, _mm256_set1_epi8((char)(((1u << w) - 1) << lift)));
}

/* 8 packed fields of 23 or 24 bits as dwords. */
RANS_INLINE __m256i unpack_dwords8(const uint8_t *p, const unsigned w)
{
	const unsigned half = 4 * w / 8;
	uint8_t index[32];
	uint32_t shift[8];

	for (unsigned k = 0; k < 8; k++) {
		const unsigned bit = k * w - k / 4 * half * 8;
		for (unsigned b = 0; b < 4; b++)
			index[4 * k + b] = w == 24 && b == 3 ? 128 : (uint8_t)(bit / 8 + b);
		shift[k] = bit % 8;
	}
	const __m256i v = _mm256_shuffle_epi8(load_halves(p, p + half), load256(index));
	return w == 24 ? v : _mm256_and_si256(_mm256_srlv_epi32(v, load256(shift)), _mm256_set1_epi32((1 << w) - 1));
}

RANS_INLINE __m256i rotate_words(__m256i v) { return _mm256_or_si256(_mm256_srli_epi16(v, 1), _mm256_slli_epi16(v, 15)); }
RANS_INLINE __m256i rotate_dwords(__m256i v) { return _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31)); }

/* Words of 32 bits with one raw field of 23 or 24 bits. */
RANS_INLINE void emit_dwords32(const unsigned first, const bool rotate, __m256i symbol, const uint8_t *raw, unsigned base, uint8_t *dst)
{
	uint8_t byte[32];

	store256(byte, symbol);
#pragma GCC unroll 4
	for (unsigned q = 0; q < 4; q++) {
		__m256i high = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(byte + 8 * q)));
		if (first == 23)
			high = _mm256_add_epi32(high, _mm256_set1_epi32((int)base));
		const __m256i word = _mm256_or_si256(unpack_dwords8(raw + q * first, first), _mm256_slli_epi32(high, (int)first));
		store256(dst + 32 * q, rotate ? rotate_dwords(word) : word);
	}
}

/* Writes 32 words made of symbols (bytes, the base not yet added if the coded field has more than 8 bits) and raw fields. */
RANS_INLINE void emit32(const enum rans_shape shape, __m256i symbol, struct rans_raw *raw, const struct rans_consts *consts, uint8_t *dst)
{
	const unsigned width = rans_shape_of[shape].width, first = rans_shape_of[shape].raw[0], second = rans_shape_of[shape].raw[1];
	const bool rotate = rans_shape_of[shape].rotate;

	if (shape == SHAPE_BYTES) {
		store256(dst, symbol);
		return;
	}
	const uint8_t *const at = raw->at[0];
	raw->at[0] += 4 * first;
	if (width == 32) {
		emit_dwords32(first, rotate, symbol, at, consts->base, dst);
		return;
	}
	__m256i low = unpack_bits32(at, first, first == 7);
	if (width == 8) { /* symbols have at most 8 - first bits: a 16-bit shift does not leave its byte */
		store256(dst, _mm256_or_si256(_mm256_slli_epi16(symbol, (int)first), low));
		return;
	}
	if (second) {
		symbol = _mm256_or_si256(_mm256_slli_epi16(symbol, (int)second), unpack_bits32(raw->at[1], second, 0));
		raw->at[1] += 4 * second;
	}
	low = _mm256_permute4x64_epi64(low, 0xd8), symbol = _mm256_permute4x64_epi64(symbol, 0xd8);
	__m256i word0 = _mm256_unpacklo_epi8(low, symbol), word1 = _mm256_unpackhi_epi8(low, symbol);
	if (first == 7) {
		const __m256i base = _mm256_set1_epi16((short)(consts->base << 7));
		word0 = _mm256_add_epi16(_mm256_srli_epi16(word0, 1), base);
		word1 = _mm256_add_epi16(_mm256_srli_epi16(word1, 1), base);
	}
	store256(dst, rotate ? rotate_words(word0) : word0);
	store256(dst + 32, rotate ? rotate_words(word1) : word1);
}

/* The tables of one row class, in parts of 16 entries: few parts are kept in registers, many are read where they lie. */
enum { RANS_KEPT_PARTS = 2 };
struct rans_regs {
	const struct kn_rans_rows *rows;
	__m256i threshold[RANS_KEPT_PARTS], freq[RANS_KEPT_PARTS], before[RANS_KEPT_PARTS], alias[RANS_KEPT_PARTS];
};

RANS_INLINE void load_rows(struct rans_regs *regs, const struct kn_rans_rows *rows, const unsigned log2_nb, const unsigned kc,
			   const struct rans_consts *consts)
{
	const unsigned parts = (kc << log2_nb) / 16;

	(void)consts;
	regs->rows = rows;
	for (unsigned i = 0; i < MIN(parts, (unsigned)RANS_KEPT_PARTS); i++) {
		regs->threshold[i] = part16(rows->threshold, i);
		regs->freq[i] = part16(rows->freq, i);
		regs->before[i] = part16(rows->before, i);
		regs->alias[i] = part16(rows->alias, i);
	}
}

RANS_INLINE __m256i lookup(const __m256i *kept, const uint8_t *table, __m256i index, const unsigned parts)
{
	return parts <= RANS_KEPT_PARTS ? lookup_kept(kept, index, parts) : lookup_bytes(table, index, parts);
}

enum { RANS_BLOCK = 1024 };     /* words that wait for their escapes and raw fields together; 4096 cost a fifth of the speed in DRAM */

/* Everything that a group carries along. */
struct rans_run {
	__m256i lo[4], hi[4];
	const uint8_t *at;              /* renormalisation bytes */
	const uint8_t *escape;          /* next escape's byte */
	/* Words that are decoded but for their escapes. */
	size_t waiting;
	uint8_t *dst;                   /* where they will stand */
	uint32_t escaped[RANS_BLOCK / 32];
	uint8_t symbol[RANS_BLOCK];
};

/* For lanes whose byte of `taken` is -1: how many lanes of the same 16 before it have the like. */
RANS_INLINE __m256i count_before(__m256i taken)
{
	const __m256i third = _mm256_set_epi8(11, 11, 11, 11, -1, -1, -1, -1, 3, 3, 3, 3, -1, -1, -1, -1,
					      11, 11, 11, 11, -1, -1, -1, -1, 3, 3, 3, 3, -1, -1, -1, -1);
	const __m256i seventh = _mm256_set_epi8(7, 7, 7, 7, 7, 7, 7, 7, -1, -1, -1, -1, -1, -1, -1, -1, 7, 7, 7, 7, 7, 7, 7, 7, -1, -1, -1, -1, -1, -1, -1, -1);
	const __m256i ones = unknown256(_mm256_set1_epi8(1));
	__m256i count = _mm256_mullo_epi32(_mm256_and_si256(taken, ones), ones);

	count = _mm256_add_epi8(count, _mm256_shuffle_epi8(count, third));
	count = _mm256_add_epi8(count, _mm256_shuffle_epi8(count, seventh));
	return _mm256_add_epi8(count, taken);
}

/* One step of 64 lanes, both halves side by side, so that the waiting of the one is filled by the other: their symbols, and a bit for each that is an
 * escape. column: class * nb by lane, or NULL. */
#define BOTH(h) _Pragma("GCC unroll 2") for (unsigned h = 0; h < 2; h++)
RANS_INLINE void step64(const unsigned log2_nb, const unsigned parts, __m256i *low, __m256i *high, const uint8_t **at, const struct rans_regs *regs,
			const uint8_t *column, const struct rans_consts *consts, uint8_t *symbol, uint32_t *escaped)
{
	const __m256i low_byte = _mm256_set1_epi16(255), high_byte = _mm256_set1_epi16((short)0xff00);
	const __m256i bucket_mask = _mm256_set1_epi8((char)((1 << log2_nb) - 1)), position_mask = _mm256_set1_epi8((char)((256 >> log2_nb) - 1));
	const struct kn_rans_rows *rows = regs->rows;
	__m256i lo[2], hi[2], own[2], bucket[2], index[2], rank[2], freq[2], even[2], odd[2], small[2], next[2];

	BOTH(h) {
		lo[h] = low[h], hi[h] = high[h];
		bucket[h] = _mm256_and_si256(_mm256_srli_epi16(lo[h], (int)(8 - log2_nb)), bucket_mask);
		if (column)
			bucket[h] = _mm256_or_si256(bucket[h], load256(column + 32 * h));
	}
	/* the sign says whether the position is the bucket's own: both lie in the bucket, less than 128 apart */
	BOTH(h)
		own[h] = _mm256_sub_epi8(lo[h], lookup(regs->threshold, rows->threshold, bucket[h], parts));
	BOTH(h)
		index[h] = select256(lookup(regs->alias, rows->alias, bucket[h], parts), bucket[h], own[h]);
	BOTH(h)
		rank[h] = select256(_mm256_add_epi8(lo[h], lookup(regs->before, rows->before, bucket[h], parts)),
				    _mm256_and_si256(lo[h], position_mask), own[h]);
	BOTH(h)
		freq[h] = lookup(regs->freq, rows->freq, index[h], parts);
	/* x = freq * hi + rank, for even and for odd bytes */
	BOTH(h) {
		even[h] = _mm256_add_epi16(_mm256_mullo_epi16(_mm256_and_si256(hi[h], low_byte), _mm256_and_si256(freq[h], low_byte)),
					   _mm256_and_si256(rank[h], low_byte));
		odd[h] = _mm256_add_epi16(_mm256_mullo_epi16(_mm256_srli_epi16(hi[h], 8), _mm256_srli_epi16(freq[h], 8)),
					  _mm256_srli_epi16(rank[h], 8));
	}
	BOTH(h) {
		hi[h] = select256(_mm256_srli_epi16(even[h], 8), odd[h], high_byte);
		lo[h] = select256(even[h], _mm256_slli_epi16(odd[h], 8), high_byte);
	}
	BOTH(h) {
		small[h] = _mm256_cmpeq_epi8(hi[h], _mm256_setzero_si256());
		const uint32_t taken = (uint32_t)_mm256_movemask_epi8(small[h]);
		next[h] = load_halves(*at, *at + _mm_popcnt_u32(taken & 0xffff));
		*at += _mm_popcnt_u32(taken);
	}
	BOTH(h) {
		high[h] = select256(hi[h], lo[h], small[h]);
		low[h] = select256(lo[h], _mm256_shuffle_epi8(next[h], count_before(small[h])), small[h]);
	}
	BOTH(h) {
		const __m256i own_index = column ? _mm256_and_si256(index[h], bucket_mask) : index[h];
		escaped[h] = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(own_index, _mm256_set1_epi8((char)consts->escape)));
		store256(symbol + 32 * h, lookup_bytes(consts->map, own_index, (1u << log2_nb) / 16));
	}
}

RANS_INLINE void run_load(struct rans_run *run, const uint8_t *states)
{
	for (unsigned q = 0; q < 4; q++) {
		run->lo[q] = load256(states + 32 * q);
		run->hi[q] = load256(states + RANS_LANES + 32 * q);
	}
	run->waiting = 0;
}

RANS_INLINE void run_store(const struct rans_run *run, uint8_t *low, uint8_t *high)
{
	for (unsigned q = 0; q < 4; q++) {
		store256(low + 32 * q, run->lo[q]);
		store256(high + 32 * q, run->hi[q]);
	}
}

/* Symbols in memory, a multiple of 64, made into words. */
RANS_INLINE void emit_symbols(const enum rans_shape shape, const uint8_t *symbol, size_t n, struct rans_raw *raw, const struct rans_consts *consts,
			      uint8_t *dst)
{
	for (size_t i = 0; i < n; i += 32)
		emit32(shape, load256(symbol + i), raw, consts, dst + i * word_nbytes(rans_shape_of[shape].width));
}

/* The symbols of some groups of 128 words, and which of them are escapes. */
RANS_INLINE void decode_symbols(const unsigned log2_nb, const unsigned kc, struct rans_run *run, const struct rans_regs *regs, const uint8_t *column,
				const struct rans_consts *consts, size_t groups, uint8_t *symbol, uint32_t *escaped)
{
	const unsigned parts = (kc << log2_nb) / 16;
	const uint8_t *at = run->at;

	for (; groups; groups--, column += kc > 1 ? RANS_LANES : 0, symbol += RANS_LANES, escaped += 4) {
#pragma GCC unroll 1
		for (unsigned q = 0; q < 4; q += 2)
			step64(log2_nb, parts, run->lo + q, run->hi + q, &at, regs, kc > 1 ? column + 32 * q : NULL, consts, symbol + 32 * q, escaped + q);
	}
	run->at = at;
}

/* One copy for each shape of tables, whatever becomes of the symbols: by [log2_nb - 4][kc / 2]. */
typedef void symbols_fn(struct rans_run *run, const struct rans_regs *regs, const uint8_t *column, const struct rans_consts *consts, size_t groups,
			uint8_t *symbol, uint32_t *escaped);
#define SYMBOLS(log2_nb, kc)                                                                                                            \
	static __attribute__((noinline)) void symbols_##log2_nb##_##kc(struct rans_run *run, const struct rans_regs *regs, const uint8_t *column, \
								       const struct rans_consts *consts, size_t groups, uint8_t *symbol, \
								       uint32_t *escaped)                                              \
	{                                                                                                                               \
		decode_symbols(log2_nb, kc, run, regs, column, consts, groups, symbol, escaped);                                        \
	}
SYMBOLS(4, 1) SYMBOLS(4, 2) SYMBOLS(4, 4) SYMBOLS(5, 1) SYMBOLS(5, 2) SYMBOLS(5, 4) SYMBOLS(6, 1) SYMBOLS(6, 2) SYMBOLS(6, 4)
#undef SYMBOLS
static symbols_fn *const symbols_of[3][3] = {
	{ symbols_4_1, symbols_4_2, symbols_4_4 }, { symbols_5_1, symbols_5_2, symbols_5_4 }, { symbols_6_1, symbols_6_2, symbols_6_4 },
};

/* Puts the escapes of n <= RANS_BLOCK symbols in their places. Where they are is as good as random: the masks that are not 0 are listed without a
 * branch, so that the only branch to be mispredicted is the one behind the last. */
static inline void put_escapes(struct rans_run *run, const uint32_t *escaped, uint8_t *symbol, size_t n)
{
	uint64_t mask[RANS_BLOCK / 64];
	uint16_t at[RANS_BLOCK / 64];
	const uint8_t *escape = run->escape;
	size_t listed = 0;

	for (size_t i = 0; i < n / 64; i++) {
		const uint64_t m = escaped[2 * i] | (uint64_t)escaped[2 * i + 1] << 32;
		mask[listed] = m, at[listed] = (uint16_t)(64 * i);
		listed += m != 0;
	}
	for (size_t i = 0; i < listed; i++)
		for (uint64_t m = mask[i]; m; m &= m - 1)
			symbol[at[i] + __builtin_ctzll(m)] = *escape++;
	run->escape = escape;
}

/* Finishes the words that wait. */
RANS_INLINE void groups_flush(const enum rans_shape shape, struct rans_run *run, const struct rans_consts *consts, struct rans_raw *raw)
{
	put_escapes(run, run->escaped, shape == SHAPE_BYTES ? run->dst : run->symbol, run->waiting);
	if (shape != SHAPE_BYTES)
		emit_symbols(shape, run->symbol, run->waiting, raw, consts, run->dst);
	run->waiting = 0;
}

/* Some groups of 128 words: to dst, or, if dst is NULL, only their symbols to symbol[]. column: class * nb by lane; ignored if kc is 1. */
RANS_INLINE void groups128(const enum rans_shape shape, const unsigned log2_nb, const unsigned kc, struct rans_run *run, const struct rans_regs *regs,
			   const uint8_t *column, const struct rans_consts *consts, struct rans_raw *raw, size_t groups, uint8_t *dst, uint8_t *symbol)
{
	symbols_fn *const decode = symbols_of[log2_nb - 4][kc / 2];
	const unsigned size = word_nbytes(rans_shape_of[shape].width);

	if (!dst) { /* fewer than RANS_BLOCK */
		groups_flush(shape, run, consts, raw);
		decode(run, regs, column, consts, groups, symbol, run->escaped);
		put_escapes(run, run->escaped, symbol, groups * RANS_LANES);
		return;
	}
	while (groups) {
		const size_t now = MIN(groups, (RANS_BLOCK - run->waiting) / RANS_LANES);
		if (run->waiting == 0)
			run->dst = dst;
		decode(run, regs, column, consts, now, shape == SHAPE_BYTES ? dst : run->symbol + run->waiting, run->escaped + run->waiting / 32);
		run->waiting += now * RANS_LANES;
		if (run->waiting == RANS_BLOCK)
			groups_flush(shape, run, consts, raw);
		groups -= now, dst += now * RANS_LANES * size, column += kc > 1 ? now * RANS_LANES : 0;
	}
}

#endif

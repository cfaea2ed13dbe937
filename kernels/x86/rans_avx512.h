/* rans_avx512.h: lit.rans and its fused merges in AVX-512 (F, BW, VL, DQ, VBMI, VBMI2).
 *
 * The 128 states are kept as byte planes, low and high, in four registers. A group of 128 words is two steps of 64:
 *
 *   bucket and class index the tables by byte permutes (vpermb, vpermi2b), so that there is no gather;
 *   with 64 buckets and classes or fewer, a bucket's own symbol and its alias are two halves of the same tables, and the choice between them is
 *   made once, in the index;
 *   x = freq * hi + rank is two 16-bit multiplies, one for even and one for odd bytes;
 *   states with hi = 0 take the next bytes of the payload in lane order: vpexpandb;
 *   escapes take theirs from a list of bytes that was made beforehand: vpexpandb again.
 *
 * RANS_INTEL (kernel set avx512i) is the same for Intel's cores, where a permute of two registers is three operations and two of those, like every shuffle,
 * go through one port: choices are made by masked permutes of one register, words are made by unpacking, and the payload is asked for ahead. On Zen 4
 * each of the three is slower.
 *
 * The idea of interleaved states renormalised by one load in lane order: F. Giesen, "Interleaved entropy coders" (2014). Alias
 * lookups: Vose (1991), as used for rANS by Giesen, "rANS in practice" (2015).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_RANS_AVX512_H
#define KERNELS_X86_RANS_AVX512_H

#include <immintrin.h>

#include "kernels/x86/lookup_avx2.h"
#include "kernels/rans_shape.h"

#ifdef RANS_INTEL
enum { RANS_BY_MASK = 1, RANS_BY_UNPACKING = 1, RANS_AHEAD = 1024 };
#else
enum { RANS_BY_MASK = 0, RANS_BY_UNPACKING = 0, RANS_AHEAD = 0 };
#endif

#define RANS_OWN_GROUPS 1       /* groups128() and groups_flush() instead of group128() */
#define RANS_ADDS_IN_PLACE 1    /* in shapes 7_9, a sum of base and byte of more than 9 bits would change the bit above it */

/* A constant that the compiler keeps: it likes to make it anew in every step, and vector operations are what bounds the speed. */
RANS_INLINE __m512i opaque(__m512i v)
{
	__asm__("" : "+v"(v));
	return v;
}

/* 64 fields of w bits, w = 1..8, as bytes, moved up by `lift` bits: 8 fields are w bytes, spread to 8 bytes and shifted into place. dealt: in the order
 * that unpacking makes right again, see deal(). */
RANS_INLINE __m512i unpack_bits64(const uint8_t *p, const unsigned w, const unsigned lift, const bool dealt)
{
	const uint64_t line = 0x0101010101010101ull * w;
	const __m512i lines = dealt ? _mm512_set_epi64(7 * line, 3 * line, 6 * line, 2 * line, 5 * line, line, 4 * line, 0) :
				      _mm512_set_epi64(7 * line, 6 * line, 5 * line, 4 * line, 3 * line, 2 * line, line, 0);
	const __m512i spread = _mm512_add_epi8(lines, _mm512_set1_epi64(0x0706050403020100));
	const __m512i shift = _mm512_set1_epi64((long long)(0x0706050403020100ull * w + 0x0101010101010101ull * (64 - lift))); /* mod 64 */
	const __m512i bits = _mm512_multishift_epi64_epi8(shift, _mm512_permutexvar_epi8(spread, _mm512_loadu_si512(p)));
	return w == 8 ? bits : _mm512_and_si512(bits, opaque(_mm512_set1_epi8((char)(((1 << w) - 1) << lift))));
}

/* 16 fields of 23 or 24 bits as dwords. */
RANS_INLINE __m512i unpack_dwords16(const uint8_t *p, const unsigned w)
{
	if (w == 24) {
		const __m512i spread = _mm512_set_epi8(
			-1, 47, 46, 45, -1, 44, 43, 42, -1, 41, 40, 39, -1, 38, 37, 36, -1, 35, 34, 33, -1, 32, 31, 30, -1, 29, 28, 27, -1, 26, 25, 24,
			-1, 23, 22, 21, -1, 20, 19, 18, -1, 17, 16, 15, -1, 14, 13, 12, -1, 11, 10, 9, -1, 8, 7, 6, -1, 5, 4, 3, -1, 2, 1, 0);
		return _mm512_maskz_permutexvar_epi8(0x7777777777777777ull, spread, _mm512_loadu_si512(p));
	}
	/* Field k begins at bit 23k: byte 23k/8, shift 23k%8; 4 bytes hold shift + 23 <= 30 bits. */
	uint8_t index[64];
	uint32_t shift[16];
	for (unsigned k = 0; k < 16; k++) {
		for (unsigned b = 0; b < 4; b++)
			index[4 * k + b] = (uint8_t)(k * w / 8 + b);
		shift[k] = k * w % 8;
	}
	__m512i v = _mm512_permutexvar_epi8(_mm512_loadu_si512(index), _mm512_loadu_si512(p));
	return _mm512_and_si512(_mm512_srlv_epi32(v, _mm512_loadu_si512(shift)), _mm512_set1_epi32((1 << w) - 1));
}

/* What stays the same from group to group. */
struct rans_kept {
	__m512i low_byte, bucket_mask, position_mask, own_bit, map, marker;
	__m512i base;                   /* where emit64() adds it: to the coded field before it is shifted (dwords), or in its place in a rotated word */
	__m512i deal;                   /* for deal() */
	__m512i merge[2];               /* bytes of raw fields and of symbols in turn, of the lower and of the upper 32 lanes */
};

RANS_INLINE struct rans_kept kept_of(const enum rans_shape shape, const unsigned log2_nb, const struct rans_consts *consts)
{
	const __m512i line = _mm512_set_epi64(0x5f1f5e1e5d1d5c1c, 0x5b1b5a1a59195818, 0x5717561655155414, 0x5313521251115010, 0x4f0f4e0e4d0d4c0c,
					      0x4b0b4a0a49094808, 0x4707460645054404, 0x4303420241014000);
	struct rans_kept kept = {
		.low_byte = opaque(_mm512_set1_epi16(255)),
		.bucket_mask = opaque(_mm512_set1_epi8((char)((1 << log2_nb) - 1))),
		.position_mask = opaque(_mm512_set1_epi8((char)((256 >> log2_nb) - 1))),
		.own_bit = opaque(_mm512_set1_epi8(64)),
		.map = _mm512_loadu_si512(consts->map),
		.marker = opaque(_mm512_set1_epi8((char)consts->marker)),
		.deal = opaque(_mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0)),
		.merge = { opaque(line), opaque(_mm512_add_epi8(line, _mm512_set1_epi8(32))) },
	};

	if (rans_shape_of[shape].width == 32)
		kept.base = opaque(_mm512_set1_epi32(consts->base));
	else
		kept.base = opaque(_mm512_set1_epi16((short)(consts->base << 6)));
	return kept;
}

/* 64 words of 32 bits with one raw field of 23 or 24 bits. */
RANS_INLINE void emit_dwords64(const enum rans_shape shape, __m512i symbol, const uint8_t *raw, const struct rans_kept *kept, uint8_t *dst)
{
	const unsigned coded = rans_shape_of[shape].coded, rotate = rans_shape_of[shape].rotate, first = rans_shape_of[shape].raw[0];

	for (unsigned q = 0; q < 4; q++) {
		__m512i low = unpack_dwords16(raw + q * 2 * first, first);
		__m128i part = q == 0 ? _mm512_castsi512_si128(symbol) : q == 1 ? _mm512_extracti32x4_epi32(symbol, 1) :
			       q == 2 ? _mm512_extracti32x4_epi32(symbol, 2) : _mm512_extracti32x4_epi32(symbol, 3);
		__m512i high = _mm512_cvtepu8_epi32(part);
		if (coded > 8)
			high = _mm512_add_epi32(high, kept->base);
		__m512i word = _mm512_or_si512(low, _mm512_slli_epi32(high, first));
		_mm512_storeu_si512(dst + 64 * q, rotate ? _mm512_ror_epi32(word, 1) : word);
	}
}

/* Eight bytes to each half of a lane in turn: then unpacking the lower halves of two registers gives the lower 32 words, the upper halves the upper. */
RANS_INLINE __m512i deal(__m512i v, const struct rans_kept *kept) { return _mm512_permutexvar_epi64(kept->deal, v); }

/* Writes 64 words made of symbols (bytes, the base not yet added if the coded field has more than 8 bits) and raw fields. */
RANS_INLINE void emit64(const enum rans_shape shape, __m512i symbol, struct rans_raw *raw, const struct rans_kept *kept, uint8_t *dst)
{
	const unsigned rotate = rans_shape_of[shape].rotate, first = rans_shape_of[shape].raw[0], width = rans_shape_of[shape].width;
	const uint8_t *const at = raw->at[0];
	__m512i low;

	if (shape == SHAPE_BYTES) {
		_mm512_storeu_si512(dst, symbol);
		return;
	}
	raw->at[0] += 8 * first;
	if (width == 32) {
		emit_dwords64(shape, symbol, at, kept, dst);
		return;
	}
	low = first == 8 ? _mm512_loadu_si512(at) : unpack_bits64(at, first, first == 7, RANS_BY_UNPACKING && width == 16);
	if (width == 8) {
		/* symbols have at most 8 - first bits: a 16-bit shift does not leave its byte */
		_mm512_storeu_si512(dst, _mm512_or_si512(_mm512_slli_epi16(symbol, first), low));
		return;
	}
	if (shape == SHAPE_8_2_6 || shape == SHAPE_8_1_7) {
		const unsigned second = rans_shape_of[shape].raw[1];
		__m512i middle = second == 1 ? _mm512_maskz_set1_epi8(load_u64(raw->at[1]), 1) : unpack_bits64(raw->at[1], 2, 0, false);
		raw->at[1] += 8 * second;
		symbol = _mm512_or_si512(_mm512_slli_epi16(symbol, second), middle);
	}
	if (RANS_BY_UNPACKING) {
		symbol = deal(symbol, kept);
		if (first == 8)
			low = deal(low, kept);
	}
#pragma GCC unroll 2
	for (unsigned h = 0; h < 2; h++) {
		__m512i word = !RANS_BY_UNPACKING ? _mm512_permutex2var_epi8(low, kept->merge[h], symbol) :
			       h ? _mm512_unpackhi_epi8(low, symbol) : _mm512_unpacklo_epi8(low, symbol);
		if (first == 7) /* 7_9_ROT. Symbol, raw, 0: rotated, the 0 is above the symbol, whose highest bit it becomes as the base is added */
			word = _mm512_add_epi16(_mm512_shrdi_epi16(word, word, 2), kept->base);
		else if (rotate)
			word = _mm512_shrdi_epi16(word, word, 1);
		_mm512_storeu_si512(dst + 64 * h, word);
	}
}

/* The tables of one row class in registers: 2 or 4 registers for each of four tables, by nb * kc. If one would do, the first has what is
 * true of the alias, the second of the bucket's own symbol: frequencies, what makes a position a rank, bytes (instead of symbols). */
struct rans_regs {
	__m512i threshold[4], freq[4], before[4], alias[4];
};

RANS_INLINE __m512i lookup(const __m512i *table, __m512i index, const unsigned nregs)
{
	if (nregs == 1)
		return _mm512_permutexvar_epi8(index, table[0]);
	if (nregs == 2)
		return _mm512_permutex2var_epi8(table[0], index, table[1]);
	return _mm512_mask_mov_epi8(_mm512_permutex2var_epi8(table[0], index, table[1]), _mm512_movepi8_mask(index),
				    _mm512_permutex2var_epi8(table[2], index, table[3]));
}

/* The first table's entries, or the second's where the mask says so. */
RANS_INLINE __m512i choose_lookup(const __m512i *table, __m512i index, __mmask64 second)
{
	return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(index, table[0]), second, index, table[1]);
}

/* lookup() where bits 6 and 7 of all indices are known to be those masks': they are the column class's, the same for all tables. */
RANS_INLINE __m512i lookup_class(const __m512i *table, __m512i index, const unsigned nregs, __mmask64 bit6, __mmask64 bit7)
{
	if (!RANS_BY_MASK || nregs <= 2)
		return lookup(table, index, nregs);
	return _mm512_mask_mov_epi8(choose_lookup(table, index, bit6), bit7, choose_lookup(table + 2, index, bit6));
}

RANS_INLINE void load_rows(struct rans_regs *regs, const struct kn_rans_rows *rows, const unsigned log2_nb, const unsigned kc,
			   const struct rans_consts *consts)
{
	const unsigned nregs = ((kc << log2_nb) + 63) / 64;

	if (nregs == 1) {
		const __m512i line = _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120, 0x1f1e1d1c1b1a1918,
						      0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
		const __m512i bucket = _mm512_and_si512(line, _mm512_set1_epi8((char)((1 << log2_nb) - 1)));
		const __m512i alias = _mm512_loadu_si512(rows->alias), map = _mm512_loadu_si512(consts->map), freq = _mm512_loadu_si512(rows->freq);
		regs->threshold[0] = _mm512_loadu_si512(rows->threshold);
		regs->freq[0] = _mm512_permutexvar_epi8(alias, freq), regs->freq[1] = freq;
		regs->before[0] = _mm512_loadu_si512(rows->before);
		regs->before[1] = _mm512_sub_epi8(_mm512_setzero_si512(), _mm512_slli_epi16(bucket, 8 - log2_nb));
		regs->alias[0] = _mm512_permutexvar_epi8(alias, map), regs->alias[1] = map;
		return;
	}
	for (unsigned i = 0; i < nregs; i++) {
		regs->threshold[i] = _mm512_loadu_si512(rows->threshold + 64 * i);
		regs->freq[i] = _mm512_loadu_si512(rows->freq + 64 * i);
		regs->before[i] = _mm512_loadu_si512(rows->before + 64 * i);
		regs->alias[i] = _mm512_loadu_si512(rows->alias + 64 * i);
	}
}

/* Everything that a group carries along. */
struct rans_run {
	__m512i lo[2], hi[2];
	const uint8_t *at;              /* renormalisation bytes */
	const uint8_t *escape;          /* next escape's byte */
};

/* Operation by operation for halves `from` to `to` - 1 of a group: a scheduler of 64 operations, as in Zen 4, sees little more than one half at once, so
 * that one would wait for the other's end. Tables of 256 entries take 16 registers: there the halves follow each other. */
#define HALVES(h) _Pragma("GCC unroll 2") for (unsigned h = from; h < to; h++)

/* What the states say: symbols (the marker for escapes), frequencies (of even and of odd lanes, the others 0) and ranks. */
struct rans_found {
	__m512i symbol[2], even_freq[2], odd_freq[2], rank[2];
};

RANS_INLINE void find_halves(const unsigned from, const unsigned to, const unsigned nregs, const __m512i lo[2], const __m512i bucket[2], const struct rans_regs *regs,
			     const struct rans_kept *kept, struct rans_found *found)
{
	const __mmask64 even = 0x5555555555555555;
	__m512i index[2], threshold[2];
	__mmask64 own[2], bit6[2] = { 0 }, bit7[2] = { 0 };

	HALVES(h) {
		if (RANS_BY_MASK && nregs > 2)
			bit6[h] = _mm512_test_epi8_mask(bucket[h], kept->own_bit), bit7[h] = _mm512_movepi8_mask(bucket[h]);
	}
	HALVES(h)
		threshold[h] = lookup_class(regs->threshold, bucket[h], nregs, bit6[h], bit7[h]);
	if (nregs == 1 && RANS_BY_MASK) {
		HALVES(h)
			own[h] = _mm512_cmplt_epu8_mask(lo[h], threshold[h]);
		HALVES(h)
			found->rank[h] = _mm512_add_epi8(lo[h], choose_lookup(regs->before, bucket[h], own[h]));
		HALVES(h)
			found->symbol[h] = choose_lookup(regs->alias, bucket[h], own[h]);
		HALVES(h) {
			const __m512i both = choose_lookup(regs->freq, bucket[h], own[h]);
			found->even_freq[h] = _mm512_and_si512(both, kept->low_byte);
			found->odd_freq[h] = _mm512_andnot_si512(kept->low_byte, both);
		}
		return;
	}
	if (nregs == 1) { /* both lie in the bucket, less than 64 apart: bit 6 of the difference is its sign. Quicker than by way of a mask */
		HALVES(h)
			index[h] = _mm512_ternarylogic_epi64(bucket[h], _mm512_sub_epi8(lo[h], threshold[h]), kept->own_bit, 0xf8);
		HALVES(h)
			found->rank[h] = _mm512_add_epi8(lo[h], lookup(regs->before, index[h], 2));
		HALVES(h)
			found->symbol[h] = lookup(regs->alias, index[h], 2);
	} else {
		HALVES(h)
			own[h] = _mm512_cmplt_epu8_mask(lo[h], threshold[h]);
		HALVES(h)
			index[h] = _mm512_mask_mov_epi8(lookup_class(regs->alias, bucket[h], nregs, bit6[h], bit7[h]), own[h], bucket[h]);
		HALVES(h)
			found->rank[h] = _mm512_mask_mov_epi8(_mm512_add_epi8(lo[h], lookup_class(regs->before, bucket[h], nregs, bit6[h], bit7[h])),
							      own[h], _mm512_and_si512(lo[h], kept->position_mask));
		HALVES(h)
			found->symbol[h] = _mm512_permutexvar_epi8(index[h], kept->map);
	}
	HALVES(h)
		if (nregs <= 2) {
			found->even_freq[h] = _mm512_maskz_permutex2var_epi8(even, regs->freq[0], index[h], regs->freq[1]);
			found->odd_freq[h] = _mm512_maskz_permutex2var_epi8(~even, regs->freq[0], index[h], regs->freq[1]);
		} else {
			const __m512i both = lookup_class(regs->freq, index[h], nregs, bit6[h], bit7[h]);
			found->even_freq[h] = _mm512_and_si512(both, kept->low_byte);
			found->odd_freq[h] = _mm512_andnot_si512(kept->low_byte, both);
		}
}

/* One step of all lanes of those halves: their symbols. column: class * nb by lane; ignored if kc is 1. */
RANS_INLINE void step_halves(const unsigned from, const unsigned to, const unsigned log2_nb, const unsigned kc, struct rans_run *run,
			     const struct rans_regs *regs, const uint8_t *column, const struct rans_kept *kept, __m512i symbol[2])
{
	const __m512i low_byte = kept->low_byte;
	__m512i bucket[2], even[2], odd[2], lo[2], hi[2];
	struct rans_found found;
	__mmask64 small[2], escaped[2];

	HALVES(h)
		bucket[h] = _mm512_srli_epi16(run->lo[h], 8 - log2_nb);
	HALVES(h)
		if (kc > 1) /* (bucket & mask) | column */
			bucket[h] = _mm512_ternarylogic_epi64(bucket[h], kept->bucket_mask, _mm512_loadu_si512(column + 64 * h), 0xea);
		else
			bucket[h] = _mm512_and_si512(bucket[h], kept->bucket_mask);
	find_halves(from, to, ((kc << log2_nb) + 63) / 64, run->lo, bucket, regs, kept, &found);

	/* x = freq * hi + rank, for even and for odd bytes */
	HALVES(h)
		even[h] = _mm512_add_epi16(_mm512_mullo_epi16(_mm512_and_si512(run->hi[h], low_byte), found.even_freq[h]),
					   _mm512_and_si512(found.rank[h], low_byte));
	HALVES(h)
		odd[h] = _mm512_add_epi16(_mm512_mulhi_epu16(_mm512_andnot_si512(low_byte, run->hi[h]), found.odd_freq[h]),
					  _mm512_srli_epi16(found.rank[h], 8));
	HALVES(h)
		hi[h] = _mm512_ternarylogic_epi64(low_byte, _mm512_srli_epi16(even[h], 8), odd[h], 0xca);
	HALVES(h)
		small[h] = _mm512_testn_epi8_mask(hi[h], hi[h]);
	HALVES(h)
		lo[h] = _mm512_ternarylogic_epi64(low_byte, even[h], _mm512_slli_epi16(odd[h], 8), 0xca);
	HALVES(h) {
		run->lo[h] = _mm512_mask_expand_epi8(lo[h], small[h], opaque(_mm512_loadu_si512(run->at)));
		run->at += _mm_popcnt_u64(small[h]);
	}
	HALVES(h)
		run->hi[h] = _mm512_mask_mov_epi8(hi[h], small[h], lo[h]);

	HALVES(h)
		escaped[h] = _mm512_cmpeq_epi8_mask(found.symbol[h], kept->marker);
	HALVES(h) {
		symbol[h] = _mm512_mask_expand_epi8(found.symbol[h], escaped[h], opaque(_mm512_loadu_si512(run->escape)));
		run->escape += _mm_popcnt_u64(escaped[h]);
	}
}

RANS_INLINE void run_load(struct rans_run *run, const uint8_t *states)
{
	for (unsigned h = 0; h < 2; h++) {
		run->lo[h] = _mm512_loadu_si512(states + 64 * h);
		run->hi[h] = _mm512_loadu_si512(states + RANS_LANES + 64 * h);
	}
}

RANS_INLINE void run_store(const struct rans_run *run, uint8_t *low, uint8_t *high)
{
	for (unsigned h = 0; h < 2; h++) {
		_mm512_storeu_si512(low + 64 * h, run->lo[h]);
		_mm512_storeu_si512(high + 64 * h, run->hi[h]);
	}
}

/* Symbols in memory, a multiple of 64, made into words. */
RANS_INLINE void emit_symbols(const enum rans_shape shape, const uint8_t *symbol, size_t n, struct rans_raw *raw, const struct rans_consts *consts,
			      uint8_t *dst)
{
	const struct rans_kept kept = kept_of(shape, 4, consts);

	for (size_t i = 0; i < n; i += 64)
		emit64(shape, _mm512_loadu_si512(symbol + i), raw, &kept, dst + i * word_nbytes(rans_shape_of[shape].width));
}

/* Some groups of 128 words: to dst, or, if dst is NULL, only their symbols to symbol[]. column: class * nb by lane; ignored if kc is 1. */
RANS_INLINE void groups128(const enum rans_shape shape, const unsigned log2_nb, const unsigned kc, struct rans_run *run, const struct rans_regs *regs,
			   const uint8_t *column, const struct rans_consts *consts, struct rans_raw *raw, size_t groups, uint8_t *dst, uint8_t *symbol)
{
	const struct rans_kept kept = kept_of(shape, log2_nb, consts);
	const unsigned size = word_nbytes(rans_shape_of[shape].width), together = kc << log2_nb > 128 ? 1 : 2;

	for (; groups; groups--, column += kc > 1 ? RANS_LANES : 0) {
		if (RANS_AHEAD) { /* a group takes up to two lines of the first field, and most of one of the item */
			for (unsigned line = 0; line < 2 && rans_shape_of[shape].raw[0]; line++)
				_mm_prefetch((const void *)(raw->at[0] + RANS_AHEAD + 64 * line), _MM_HINT_T0);
			_mm_prefetch((const void *)(run->at + RANS_AHEAD / 2), _MM_HINT_T0);
		}
#pragma GCC unroll 2
		for (unsigned from = 0, to; from < 2; from = to) {
			__m512i s[2];
			to = from + together;
			step_halves(from, to, log2_nb, kc, run, regs, column, &kept, s);
			HALVES(h)
				if (dst) {
					emit64(shape, s[h], raw, &kept, dst);
					dst += 64 * size;
				} else {
					_mm512_storeu_si512(symbol, s[h]);
					symbol += 64;
				}
		}
	}
}

RANS_INLINE void groups_flush(const enum rans_shape shape, struct rans_run *run, const struct rans_consts *consts, struct rans_raw *raw)
{
	(void)shape, (void)run, (void)consts, (void)raw;
}

#endif

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
 * The idea of interleaved states renormalised by one load in lane order: F. Giesen, "Interleaved entropy coders" (2014). Alias
 * lookups: Vose (1991), as used for rANS by Giesen, "rANS in practice" (2015).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_RANS_AVX512_H
#define KERNELS_X86_RANS_AVX512_H

#include <immintrin.h>

#include "kernels/x86/lookup_avx2.h"
#include "kernels/rans_shape.h"

#define RANS_OWN_GROUPS 1       /* groups128() and groups_flush() instead of group128() */
#define RANS_ADDS_IN_PLACE 1    /* in shapes 7_9, a sum of base and byte of more than 9 bits would change the bit above it */

/* A constant that the compiler keeps: it likes to make it anew in every step, and vector operations are what bounds the speed. */
RANS_INLINE __m512i opaque(__m512i v)
{
	__asm__("" : "+v"(v));
	return v;
}

/* 64 fields of w bits, w = 1..8, as bytes, moved up by `lift` bits: 8 fields are w bytes, spread to 8 bytes and shifted into place. */
RANS_INLINE __m512i unpack_bits64(const uint8_t *p, const unsigned w, const unsigned lift)
{
	const uint64_t line = 0x0101010101010101ull * w;
	const __m512i spread = _mm512_add_epi8(_mm512_set_epi64(7 * line, 6 * line, 5 * line, 4 * line, 3 * line, 2 * line, line, 0),
					       _mm512_set1_epi64(0x0706050403020100));
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
	__m512i low_byte, bucket_mask, position_mask, alias_bit, map, marker;
	__m512i base;                   /* where emit64() adds it: to the coded field before it is shifted (dwords), or in its place in a rotated word */
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
		.alias_bit = opaque(_mm512_set1_epi8(64)),
		.map = _mm512_loadu_si512(consts->map),
		.marker = opaque(_mm512_set1_epi8((char)consts->marker)),
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
	low = first == 8 ? _mm512_loadu_si512(at) : unpack_bits64(at, first, first == 7);
	if (width == 8) {
		/* symbols have at most 8 - first bits: a 16-bit shift does not leave its byte */
		_mm512_storeu_si512(dst, _mm512_or_si512(_mm512_slli_epi16(symbol, first), low));
		return;
	}
	if (shape == SHAPE_8_2_6 || shape == SHAPE_8_1_7) {
		const unsigned second = rans_shape_of[shape].raw[1];
		__m512i middle = second == 1 ? _mm512_maskz_set1_epi8(load_u64(raw->at[1]), 1) : unpack_bits64(raw->at[1], 2, 0);
		raw->at[1] += 8 * second;
		symbol = _mm512_or_si512(_mm512_slli_epi16(symbol, second), middle);
	}
#pragma GCC unroll 2
	for (unsigned h = 0; h < 2; h++) {
		__m512i word = _mm512_permutex2var_epi8(low, kept->merge[h], symbol);
		if (first == 7) /* symbol, raw, 0: rotated, the 0 is above the symbol, whose highest bit it becomes as the base is added */
			word = _mm512_add_epi16(_mm512_shrdi_epi16(word, word, 2), kept->base);
		else if (rotate)
			word = _mm512_shrdi_epi16(word, word, 1);
		_mm512_storeu_si512(dst + 64 * h, word);
	}
}

/* The tables of one row class in registers: 2 or 4 registers for each of four tables, by nb * kc. If one would do, the second has the same for
 * positions of the alias: its freq, what makes it the rank (instead of minus the bucket's first position), its byte (instead of a symbol). */
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
		regs->freq[0] = freq, regs->freq[1] = _mm512_permutexvar_epi8(alias, freq);
		regs->before[0] = _mm512_sub_epi8(_mm512_setzero_si512(), _mm512_slli_epi16(bucket, 8 - log2_nb));
		regs->before[1] = _mm512_loadu_si512(rows->before);
		regs->alias[0] = map, regs->alias[1] = _mm512_permutexvar_epi8(alias, map);
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

/* What the states say: the symbols of 64 lanes are returned, the frequencies (of even and odd lanes, the others 0) and ranks stored. */
RANS_INLINE __m512i find64(const unsigned nregs, __m512i lo, __m512i bucket, const struct rans_regs *regs, const struct rans_kept *kept, __m512i freq[2],
			   __m512i *rank)
{
	const __mmask64 even = 0x5555555555555555;

	if (nregs == 1) {
		const __mmask64 other = _mm512_cmpge_epu8_mask(lo, _mm512_permutexvar_epi8(bucket, regs->threshold[0]));
		const __m512i index = _mm512_mask_add_epi8(bucket, other, bucket, kept->alias_bit);
		freq[0] = _mm512_maskz_permutex2var_epi8(even, regs->freq[0], index, regs->freq[1]);
		freq[1] = _mm512_maskz_permutex2var_epi8(~even, regs->freq[0], index, regs->freq[1]);
		*rank = _mm512_add_epi8(lo, lookup(regs->before, index, 2));
		return lookup(regs->alias, index, 2);
	}
	const __mmask64 own = _mm512_cmplt_epu8_mask(lo, lookup(regs->threshold, bucket, nregs));
	const __m512i index = _mm512_mask_mov_epi8(lookup(regs->alias, bucket, nregs), own, bucket);
	*rank = _mm512_mask_mov_epi8(_mm512_add_epi8(lo, lookup(regs->before, bucket, nregs)), own, _mm512_and_si512(lo, kept->position_mask));
	if (nregs == 2) {
		freq[0] = _mm512_maskz_permutex2var_epi8(even, regs->freq[0], index, regs->freq[1]);
		freq[1] = _mm512_maskz_permutex2var_epi8(~even, regs->freq[0], index, regs->freq[1]);
	} else {
		const __m512i both = lookup(regs->freq, index, nregs);
		freq[0] = _mm512_and_si512(both, kept->low_byte), freq[1] = _mm512_andnot_si512(kept->low_byte, both);
	}
	return _mm512_permutexvar_epi8(index, kept->map);
}

/* One step of 64 lanes: returns their symbols. column: class * nb by lane; ignored if kc is 1. */
RANS_INLINE __m512i step64(const unsigned log2_nb, const unsigned kc, struct rans_run *run, const unsigned half, const struct rans_regs *regs,
			   const uint8_t *column, const struct rans_kept *kept)
{
	const unsigned nregs = ((kc << log2_nb) + 63) / 64;
	const __m512i low_byte = kept->low_byte;
	__m512i lo = run->lo[half], hi = run->hi[half], freq[2], rank;
	__m512i bucket = _mm512_srli_epi16(lo, 8 - log2_nb);

	if (kc > 1)
		bucket = _mm512_ternarylogic_epi64(bucket, kept->bucket_mask, _mm512_loadu_si512(column), 0xea); /* (bucket & mask) | column */
	else
		bucket = _mm512_and_si512(bucket, kept->bucket_mask);
	__m512i symbol = find64(nregs, lo, bucket, regs, kept, freq, &rank);

	/* x = freq * hi + rank, for even and for odd bytes */
	__m512i even = _mm512_add_epi16(_mm512_mullo_epi16(_mm512_and_si512(hi, low_byte), freq[0]), _mm512_and_si512(rank, low_byte));
	__m512i odd = _mm512_add_epi16(_mm512_mulhi_epu16(_mm512_andnot_si512(low_byte, hi), freq[1]), _mm512_srli_epi16(rank, 8));
	lo = _mm512_ternarylogic_epi64(low_byte, even, _mm512_slli_epi16(odd, 8), 0xca);
	hi = _mm512_ternarylogic_epi64(low_byte, _mm512_srli_epi16(even, 8), odd, 0xca);

	const __mmask64 small = _mm512_testn_epi8_mask(hi, hi);
	run->hi[half] = _mm512_mask_mov_epi8(hi, small, lo);
	run->lo[half] = _mm512_mask_expand_epi8(lo, small, _mm512_loadu_si512(run->at));
	run->at += _mm_popcnt_u64(small);

	const __mmask64 escaped = _mm512_cmpeq_epi8_mask(symbol, kept->marker);
	symbol = _mm512_mask_expand_epi8(symbol, escaped, _mm512_loadu_si512(run->escape));
	run->escape += _mm_popcnt_u64(escaped);
	return symbol;
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
	const unsigned size = word_nbytes(rans_shape_of[shape].width);

	for (; groups; groups--, column += kc > 1 ? RANS_LANES : 0)
#pragma GCC unroll 2
		for (unsigned h = 0; h < 2; h++) {
			const __m512i s = step64(log2_nb, kc, run, h, regs, column + (kc > 1 ? 64 * h : 0), &kept);
			if (dst) {
				emit64(shape, s, raw, &kept, dst);
				dst += 64 * size;
			} else {
				_mm512_storeu_si512(symbol, s);
				symbol += 64;
			}
		}
}

RANS_INLINE void groups_flush(const enum rans_shape shape, struct rans_run *run, const struct rans_consts *consts, struct rans_raw *raw)
{
	(void)shape, (void)run, (void)consts, (void)raw;
}

#endif

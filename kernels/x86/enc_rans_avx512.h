/* enc_rans_avx512.h: the encoder of lit.rans in AVX-512 (F, BW, VL, VBMI, VBMI2), 128 words at a time.
 *
 * The mirror of rans_avx512.h: tables are looked up by byte permutes, states are byte planes. x / freq is a 16-bit multiplication by a
 * reciprocal and one correction, for even and for odd bytes; bytes given away are compressed (vpcompressb), moved to the top of their
 * register and stored below the ones before. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_ENC_RANS_AVX512_H
#define KERNELS_X86_ENC_RANS_AVX512_H

#include <immintrin.h>

#include "kernels/enc_rans.h"

#define ENC_RANS_VECTOR

ENC_INLINE __m512i enc_lookup(const uint8_t *table, __m512i index, const unsigned nregs)
{
	const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);

	if (nregs == 1)
		return _mm512_permutexvar_epi8(index, t0);
	if (nregs == 2)
		return _mm512_permutex2var_epi8(t0, index, t1);
	return _mm512_mask_mov_epi8(_mm512_permutex2var_epi8(t0, index, t1), _mm512_movepi8_mask(index),
				    _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), index, _mm512_loadu_si512(table + 192)));
}

/* 64 words less the base as bytes; *big: those that do not fit one. */
ENC_INLINE __m512i enc_offsets(const struct enc_rans *run, size_t i, const bool wide, __mmask64 *big)
{
	const unsigned base = run->table->base, mask = (unsigned)mask_bits(run->table->width);

	*big = 0;
	if (!wide)
		return _mm512_and_si512(_mm512_sub_epi8(_mm512_loadu_si512((const uint8_t *)run->args->src + i), _mm512_set1_epi8((char)base)),
					_mm512_set1_epi8((char)mask));
	const uint8_t *src = (const uint8_t *)run->args->src + 2 * i;
	const __m512i m = _mm512_set1_epi16((short)mask), b = _mm512_set1_epi16((short)base), high = _mm512_set1_epi16((short)0xff00);
	const __m512i w0 = _mm512_and_si512(_mm512_sub_epi16(_mm512_loadu_si512(src), b), m);
	const __m512i w1 = _mm512_and_si512(_mm512_sub_epi16(_mm512_loadu_si512(src + 64), b), m);
	*big = _mm512_test_epi16_mask(w0, high) | (__mmask64)_mm512_test_epi16_mask(w1, high) << 32;
	return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(w0)), _mm512_cvtepi16_epi8(w1), 1);
}

ENC_INLINE void enc_choose_shape(const struct enc_rans *run, size_t n, const bool wide, const bool classed, const unsigned nregs)
{
	const __m128i log2_nb = _mm_cvtsi32_si128(run->table->log2_nb);
	const uint8_t *column;

	for (size_t i = 0; i < n; i += KN_GROUP) {
		const struct enc_rows *rows = enc_rows_at(run, i, &column);
		for (unsigned h = 0; h < KN_GROUP; h += 64) {
			__mmask64 big;
			const __m512i offset = enc_offsets(run, i + h, wide, &big), known = enc_lookup(run->index_of, offset, 4);
			const __m512i class = classed ? _mm512_loadu_si512(column + h) : _mm512_setzero_si512();
			__m512i index = classed ? _mm512_or_si512(known, _mm512_sll_epi16(class, log2_nb)) : known;
			const __m512i freq = enc_lookup(rows->freq, index, nregs);
			const __mmask64 special = _mm512_testn_epi8_mask(freq, freq) | _mm512_movepi8_mask(known) | big;
			index = _mm512_mask_permutexvar_epi8(index, special, class, _mm512_loadu_si512(rows->absent));
			index = _mm512_mask_permutexvar_epi8(index, big, class, _mm512_loadu_si512(rows->patched));
			_mm512_storeu_si512(run->index + i + h, index);
			run->special[(i + h) / 64] = special;
		}
	}
}

/* One step of 64 lanes. column: their classes, ignored if kc is 1. */
ENC_INLINE void enc_step64(const struct enc_rows *rows, const uint8_t *index, const uint8_t *column, const unsigned nregs, const unsigned kc,
			   __m512i *low, __m512i *high, uint8_t **at)
{
	const __m512i low_byte = _mm512_set1_epi16(255), one = _mm512_set1_epi16(1);
	const __m512i line = _mm512_set_epi64(0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120, 0x1f1e1d1c1b1a1918,
					      0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
	const __m512i j = _mm512_loadu_si512(index), freq = enc_lookup(rows->freq, j, nregs);
	__m512i lo = *low, hi = *high;

	const __mmask64 full = _mm512_cmpge_epu8_mask(hi, freq);
	const unsigned given = (unsigned)_mm_popcnt_u64(full);
	const __m512i bytes = _mm512_permutexvar_epi8(_mm512_add_epi8(line, _mm512_set1_epi8((char)given)), _mm512_maskz_compress_epi8(full, lo));
	_mm512_storeu_si512(*at - 64, bytes);
	*at -= given;
	lo = _mm512_mask_mov_epi8(lo, full, hi);
	hi = _mm512_maskz_mov_epi8(~full, hi);

	/* even and odd bytes as 16-bit numbers: quotient and remainder */
	const __m512i rl = enc_lookup(rows->low, j, nregs), rh = enc_lookup(rows->high, j, nregs);
	const __m512i f0 = _mm512_and_si512(freq, low_byte), f1 = _mm512_srli_epi16(freq, 8);
	const __m512i x0 = _mm512_ternarylogic_epi64(low_byte, lo, _mm512_slli_epi16(hi, 8), 0xca);
	const __m512i x1 = _mm512_ternarylogic_epi64(low_byte, _mm512_srli_epi16(lo, 8), hi, 0xca);
	__m512i q0 = _mm512_mulhi_epu16(x0, _mm512_ternarylogic_epi64(low_byte, rl, _mm512_slli_epi16(rh, 8), 0xca));
	__m512i q1 = _mm512_mulhi_epu16(x1, _mm512_ternarylogic_epi64(low_byte, _mm512_srli_epi16(rl, 8), rh, 0xca));
	__m512i r0 = _mm512_sub_epi16(x0, _mm512_mullo_epi16(q0, f0)), r1 = _mm512_sub_epi16(x1, _mm512_mullo_epi16(q1, f1));
	const __mmask32 more0 = _mm512_cmpge_epu16_mask(r0, f0), more1 = _mm512_cmpge_epu16_mask(r1, f1);
	q0 = _mm512_mask_add_epi16(q0, more0, q0, one), r0 = _mm512_mask_sub_epi16(r0, more0, r0, f0);
	q1 = _mm512_mask_add_epi16(q1, more1, q1, one), r1 = _mm512_mask_sub_epi16(r1, more1, r1, f1);
	*high = _mm512_ternarylogic_epi64(low_byte, q0, _mm512_slli_epi16(q1, 8), 0xca);

	const __m512i rank = _mm512_add_epi8(enc_lookup(rows->start, j, nregs), _mm512_ternarylogic_epi64(low_byte, r0, _mm512_slli_epi16(r1, 8), 0xca));
	__m512i position = enc_lookup(rows->position, rank, 4);
	if (kc > 1) {
		const __m512i class = _mm512_loadu_si512(column);
		for (unsigned c = 1; c < kc; c++)
			position = _mm512_mask_mov_epi8(position, _mm512_cmpeq_epi8_mask(class, _mm512_set1_epi8((char)c)),
							enc_lookup(rows->position + 256 * c, rank, 4));
	}
	*low = position;
}

ENC_INLINE void enc_code_shape(struct enc_rans *run, size_t n, const unsigned nregs, const unsigned kc)
{
	__m512i low[2], high[2];
	uint8_t plane[2][RANS_LANES], *at = run->at;
	const uint8_t *column;

	for (unsigned k = 0; k < RANS_LANES; k++)
		plane[0][k] = (uint8_t)run->state[k], plane[1][k] = (uint8_t)(run->state[k] >> 8);
	for (unsigned h = 0; h < 2; h++)
		low[h] = _mm512_loadu_si512(plane[0] + 64 * h), high[h] = _mm512_loadu_si512(plane[1] + 64 * h);
	for (size_t i = n; i > 0;) {
		i -= KN_GROUP;
		const struct enc_rows *rows = enc_rows_at(run, i, &column);
		enc_step64(rows, run->index + i + 64, kc > 1 ? column + 64 : NULL, nregs, kc, &low[1], &high[1], &at);
		enc_step64(rows, run->index + i, column, nregs, kc, &low[0], &high[0], &at);
	}
	for (unsigned h = 0; h < 2; h++)
		_mm512_storeu_si512(plane[0] + 64 * h, low[h]), _mm512_storeu_si512(plane[1] + 64 * h, high[h]);
	for (unsigned k = 0; k < RANS_LANES; k++)
		run->state[k] = (uint16_t)(plane[0][k] | plane[1][k] << 8);
	run->at = at;
}

/* The shapes are compiled apart: 1, 2 or 4 column classes; 1, 2 or 4 registers a table. */
static unsigned enc_kc(const struct enc_rans *run) { return run->args->col_class ? run->table->kc : 1; }

static unsigned enc_nregs(const struct enc_rans *run)
{
	const unsigned nindex = enc_kc(run) << run->table->log2_nb;
	return nindex <= 64 ? 1 : nindex <= 128 ? 2 : 4;
}

static void enc_choose_groups(const struct enc_rans *run, size_t n)
{
	const bool wide = run->table->width > 8, classed = enc_kc(run) > 1;

	switch (enc_nregs(run)) {
	case 1:
		if (!classed)
			wide ? enc_choose_shape(run, n, true, false, 1) : enc_choose_shape(run, n, false, false, 1);
		else
			wide ? enc_choose_shape(run, n, true, true, 1) : enc_choose_shape(run, n, false, true, 1);
		break;
	case 2: wide ? enc_choose_shape(run, n, true, true, 2) : enc_choose_shape(run, n, false, true, 2); break;
	default: wide ? enc_choose_shape(run, n, true, true, 4) : enc_choose_shape(run, n, false, true, 4);
	}
}

static void enc_code_groups(struct enc_rans *run, size_t n)
{
	const unsigned kc = enc_kc(run);

	switch (enc_nregs(run)) {
	case 1: kc == 1 ? enc_code_shape(run, n, 1, 1) : kc == 2 ? enc_code_shape(run, n, 1, 2) : enc_code_shape(run, n, 1, 4); break;
	case 2: kc == 2 ? enc_code_shape(run, n, 2, 2) : enc_code_shape(run, n, 2, 4); break;
	default: enc_code_shape(run, n, 4, 4);
	}
}

#endif

/* lookup_avx512.h: words of a small dictionary by permutes, of a large one by gathers (AVX-512 F, BW, VBMI).
 *
 * A dictionary is read with a mask: nothing behind it. The indices are below its entries. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_LOOKUP_AVX512_H
#define KERNELS_X86_LOOKUP_AVX512_H

#include <immintrin.h>

#include "common/base.h"

#define LOOKUP512_INLINE static inline __attribute__((always_inline))

/* n bytes, 0..64, from p on; the others are 0. */
LOOKUP512_INLINE __m512i lookup512_load(const uint8_t *p, size_t n) { return _mm512_maskz_loadu_epi8(mask_bits((unsigned)MIN(n, 64u)), p); }

/* Register k of a dictionary of `nbytes` bytes. */
LOOKUP512_INLINE __m512i lookup512_part(const uint8_t *dictionary, size_t nbytes, unsigned k)
{
	return 64u * k < nbytes ? lookup512_load(dictionary + 64u * k, nbytes - 64u * k) : _mm512_setzero_si512();
}

/* Bytes of up to 256. */
LOOKUP512_INLINE void lookup512_bytes(uint8_t *out, const uint8_t *dictionary, size_t entries, const uint8_t *index, size_t n)
{
	__m512i part[4];

	for (unsigned k = 0; k < 4; k++)
		part[k] = lookup512_part(dictionary, entries, k);
	for (size_t i = 0; i < n; i += 64) {
		const __mmask64 there = mask_bits((unsigned)MIN(n - i, (size_t)64));
		const __m512i at = _mm512_maskz_loadu_epi8(there, index + i);
		const __m512i low = _mm512_permutex2var_epi8(part[0], at, part[1]), high = _mm512_permutex2var_epi8(part[2], at, part[3]);
		_mm512_mask_storeu_epi8(out + i, there, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(at), high));
	}
}

/* Words of 2 bytes of up to 256, 64 a pair of registers. */
LOOKUP512_INLINE void lookup512_halves(uint8_t *out, const uint8_t *dictionary, size_t entries, const uint8_t *index, size_t n, const unsigned pairs)
{
	__m512i part[8];

	for (unsigned k = 0; k < 2 * pairs; k++)
		part[k] = lookup512_part(dictionary, 2 * entries, k);
	for (size_t i = 0; i < n; i += 32) {
		const __mmask32 there = (__mmask32)mask_bits((unsigned)MIN(n - i, (size_t)32));
		const __m512i at = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(there, index + i));
		__m512i word = _mm512_permutex2var_epi16(part[0], at, part[1]);
		if (pairs > 1) {
			const __mmask32 bit6 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64)), bit7 = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
			const __m512i high = _mm512_mask_mov_epi16(_mm512_permutex2var_epi16(part[4], at, part[5]), bit6,
								   _mm512_permutex2var_epi16(part[6], at, part[7]));
			word = _mm512_mask_mov_epi16(word, bit6, _mm512_permutex2var_epi16(part[2], at, part[3]));
			word = _mm512_mask_mov_epi16(word, bit7, high);
		}
		_mm512_mask_storeu_epi16(out + 2 * i, there, word);
	}
}

/* 16 indices of 1, 2 or 4 bytes, as dwords. */
LOOKUP512_INLINE __m512i lookup512_index(const uint8_t *index, const unsigned size, __mmask16 there)
{
	if (size == 1)
		return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(there, index));
	if (size == 2)
		return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, index));
	return _mm512_maskz_loadu_epi32(there, index);
}

/* Words of 4 bytes: of up to 32 by permutes, of more by gathers. */
LOOKUP512_INLINE void lookup512_words(uint8_t *out, const uint8_t *dictionary, size_t entries, const uint8_t *index, const unsigned size, size_t n)
{
	const __m512i low = lookup512_part(dictionary, 4 * entries, 0), high = lookup512_part(dictionary, 4 * entries, 1);
	const bool few = entries <= 32;

	for (size_t i = 0; i < n; i += 16) {
		const __mmask16 there = (__mmask16)mask_bits((unsigned)MIN(n - i, (size_t)16));
		const __m512i at = lookup512_index(index + i * size, size, there);
		_mm512_mask_storeu_epi32(out + 4 * i, there, few ? _mm512_permutex2var_epi32(low, at, high) :
					 _mm512_mask_i32gather_epi32(low, there, at, dictionary, 4));
	}
}

/* n words of `size` bytes; false, and nothing done, for shapes that plain loads do as well. */
static inline bool lookup512_piece(uint8_t *out, unsigned size, const uint8_t *dictionary, size_t entries, const uint8_t *index, unsigned index_size,
				    size_t n)
{
	const size_t held = MIN(entries, (size_t)256); /* indices of a byte reach no further */

	if (size == 1 && index_size == 1)
		lookup512_bytes(out, dictionary, held, index, n);
	else if (size == 2 && index_size == 1 && entries <= 64)
		lookup512_halves(out, dictionary, held, index, n, 1);
	else if (size == 2 && index_size == 1)
		lookup512_halves(out, dictionary, held, index, n, 4);
	else if (size == 4 && index_size == 1)
		lookup512_words(out, dictionary, entries, index, 1, n);
	else if (size == 4 && index_size == 2)
		lookup512_words(out, dictionary, entries, index, 2, n);
	else if (size == 4)
		lookup512_words(out, dictionary, entries, index, 4, n);
	else
		return false;
	return true;
}

#endif

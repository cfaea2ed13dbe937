/* scatter_avx2.h: words spread to where a mask is 1, eight at a time: which word goes where is a pdep of 0..7 by the mask's bytes (AVX2, BMI2).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_SCATTER_AVX2_H
#define KERNELS_X86_SCATTER_AVX2_H

#include <immintrin.h>

#include "common/base.h"

/* The first words of a scatter of words of 2 or 4 bytes, whole groups of 8; returns how many, and how many words they took. Reads up to 32 bytes behind
 * the words. */
static inline size_t scatter256_groups(void *out, unsigned size, const uint8_t *words, const uint8_t *mask, size_t n, uint64_t rest, size_t *taken)
{
	const __m128i rest16 = _mm_set1_epi16((short)rest), twice = _mm_set1_epi16(0x0202), odd = _mm_set1_epi16(0x0100);
	const __m256i rest32 = _mm256_set1_epi32((int)rest);
	size_t i = 0, at = 0;

	if (size != 2 && size != 4)
		return 0;
	for (; i + 8 <= n; i += 8) {
		const uint64_t bits = load_u64(mask + i), bytes = bits * 0xff;
		const __m128i from = _mm_cvtsi64_si128((long long)_pdep_u64(0x0706050403020100, bytes)), choose = _mm_cvtsi64_si128((long long)bytes);
		if (size == 2) {
			const __m128i pairs = _mm_add_epi16(_mm_mullo_epi16(_mm_cvtepu8_epi16(from), twice), odd);
			const __m128i spread = _mm_shuffle_epi8(_mm_loadu_si128((const void *)(words + 2 * at)), pairs);
			_mm_storeu_si128((void *)((uint8_t *)out + 2 * i), _mm_blendv_epi8(rest16, spread, _mm_cvtepi8_epi16(choose)));
		} else {
			const __m256i spread = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const void *)(words + 4 * at)), _mm256_cvtepu8_epi32(from));
			_mm256_storeu_si256((void *)((uint8_t *)out + 4 * i), _mm256_blendv_epi8(rest32, spread, _mm256_cvtepi8_epi32(choose)));
		}
		at += (size_t)__builtin_popcountll(bits);
	}
	*taken = at;
	return i;
}

#endif

/* scatter_avx512.h: words spread to where a mask is 1: vpexpand (AVX-512 F, BW, VBMI2). SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_SCATTER_AVX512_H
#define KERNELS_X86_SCATTER_AVX512_H

#include <immintrin.h>

#include "common/base.h"

/* One step of 64 / size words: those of `words` in order where `bits` are 1, of `rest` elsewhere. */
static inline __attribute__((always_inline)) __m512i scatter512_step(const unsigned size, __m512i rest, uint64_t bits, __m512i words)
{
	switch (size) {
	case 1: return _mm512_mask_expand_epi8(rest, bits, words);
	case 2: return _mm512_mask_expand_epi16(rest, (__mmask32)bits, words);
	case 4: return _mm512_mask_expand_epi32(rest, (__mmask16)bits, words);
	default: return _mm512_mask_expand_epi64(rest, (__mmask8)bits, words);
	}
}

static inline __attribute__((always_inline)) size_t scatter512(uint8_t *out, const unsigned size, const uint8_t *words, const uint8_t *mask, size_t n,
							       __m512i rest, size_t *taken)
{
	const unsigned step = 64 / size;
	size_t i = 0, at = 0;

	for (; i + 64 <= n; i += 64) {
		uint64_t bits = _mm512_test_epi8_mask(_mm512_loadu_si512(mask + i), _mm512_set1_epi8(1));
#pragma GCC unroll 8
		for (unsigned k = 0; k < size; k++) {
			const uint64_t here = bits & mask_bits(step);
			_mm512_storeu_si512(out + (i + k * step) * size, scatter512_step(size, rest, here, _mm512_loadu_si512(words + at * size)));
			at += (size_t)__builtin_popcountll(here);
			bits = step == 64 ? 0 : bits >> (step % 64);
		}
	}
	*taken = at;
	return i;
}

/* The first words of a scatter, whole groups of 64 of them; returns how many, and how many words they took. Reads up to 64 bytes behind the words. */
static inline size_t scatter512_groups(void *out, unsigned size, const uint8_t *words, const uint8_t *mask, size_t n, uint64_t rest, size_t *taken)
{
	switch (size) {
	case 1: return scatter512(out, 1, words, mask, n, _mm512_set1_epi8((char)rest), taken);
	case 2: return scatter512(out, 2, words, mask, n, _mm512_set1_epi16((short)rest), taken);
	case 4: return scatter512(out, 4, words, mask, n, _mm512_set1_epi32((int)rest), taken);
	default: return scatter512(out, 8, words, mask, n, _mm512_set1_epi64((long long)rest), taken);
	}
}

#endif

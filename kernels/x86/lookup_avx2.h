/* lookup_avx2.h: bytes looked up in tables of up to 256 entries, in AVX2, and what else its bodies share.
 *
 * vpshufb looks 16 entries up; the bits of the index above the fourth then choose among the results. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_LOOKUP_AVX2_H
#define KERNELS_X86_LOOKUP_AVX2_H

#include <stdint.h>

#include "kernels/x86/simd_x86.h"

#define LOOKUP_INLINE static inline __attribute__((always_inline))

LOOKUP_INLINE __m256i load256(const void *p) { return _mm256_loadu_si256(p); }
LOOKUP_INLINE void store256(void *p, __m256i v) { _mm256_storeu_si256(p, v); }

/* 16 bytes from each of two places. */
LOOKUP_INLINE __m256i load_halves(const uint8_t *low, const uint8_t *high)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)low)), _mm_loadu_si128((const void *)high), 1);
}

/* The bytes of b where the mask's bytes have the highest bit, else those of a. In assembly because gcc, when a mask serves twice, first spreads its
 * highest bits by a comparison. */
LOOKUP_INLINE __m256i select256(__m256i a, __m256i b, __m256i mask)
{
#ifdef __AVX2__
	__m256i out;

	__asm__("vpblendvb %3, %2, %1, %0" : "=x"(out) : "x"(a), "x"(b), "x"(mask));
	return out;
#else /* through SIMDe */
	return _mm256_blendv_epi8(a, b, mask);
#endif
}

/* 16 entries of a table, for both halves. */
LOOKUP_INLINE __m256i part16(const uint8_t *table, unsigned i)
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(table + 16 * i)));
}

/* part[i]: what the low 4 bits of the index find in entries 16 * i to 16 * i + 15. Returns what the whole index finds. parts: 1, 2, 4, 8 or 16. */
LOOKUP_INLINE __m256i choose_part(__m256i *part, __m256i index, const unsigned parts)
{
#pragma GCC unroll 4
	for (unsigned left = parts / 2, up = 3; left; left /= 2, up--) { /* by bit 4, then 5, ... */
		const __m256i upper = _mm256_slli_epi16(index, (int)up);
#pragma GCC unroll 8
		for (unsigned i = 0; i < left; i++)
			part[i] = select256(part[2 * i], part[2 * i + 1], upper);
	}
	return part[0];
}

/* A table of 16 * parts entries in registers; parts is 1, 2, 4 or 8. vpshufb looks at bit 7 and the low 4: the others need no mask. */
LOOKUP_INLINE __m256i lookup_kept(const __m256i *table, __m256i index, const unsigned parts)
{
	__m256i part[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < parts; i++)
		part[i] = _mm256_shuffle_epi8(table[i], index);
	return choose_part(part, index, parts);
}

/* The same in memory; parts is 1, 2, 4, 8 or 16. */
LOOKUP_INLINE __m256i lookup_bytes(const uint8_t *table, __m256i index, const unsigned parts)
{
	const __m256i low4 = parts == 16 ? _mm256_and_si256(index, _mm256_set1_epi8(15)) : index;
	__m256i part[16];

#pragma GCC unroll 16
	for (unsigned i = 0; i < parts; i++)
		part[i] = _mm256_shuffle_epi8(part16(table, i), low4);
	return choose_part(part, index, parts);
}

/* 32 nibbles, low ones first, looked up in a table of 16; bit k of the result: nibble k is 15. Reads 16 bytes, writes 32. */
LOOKUP_INLINE uint32_t lookup_nibbles32(const uint8_t *table, const uint8_t *nibbles, uint8_t *out)
{
	const __m128i both = _mm_loadu_si128((const void *)nibbles), low4 = _mm_set1_epi8(15);
	const __m128i even = _mm_and_si128(both, low4), odd = _mm_and_si128(_mm_srli_epi16(both, 4), low4);
	const __m256i index = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_unpacklo_epi8(even, odd)), _mm_unpackhi_epi8(even, odd), 1);

	store256(out, _mm256_shuffle_epi8(part16(table, 0), index));
	return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(index, _mm256_set1_epi8(15)));
}
#define RANS_NIBBLES 1

/* table[index[k]] for 8 dwords: on many CPUs single loads are quicker than vpgatherdd, on Zen 4 twice as quick. */
LOOKUP_INLINE __m256i load_each(const uint32_t *table, __m256i index)
{
	const __m128i low = _mm256_castsi256_si128(index), high = _mm256_extracti128_si256(index, 1);
	const uint64_t i01 = (uint64_t)_mm_cvtsi128_si64(low), i23 = (uint64_t)_mm_extract_epi64(low, 1);
	const uint64_t i45 = (uint64_t)_mm_cvtsi128_si64(high), i67 = (uint64_t)_mm_extract_epi64(high, 1);
	__m128i a = _mm_cvtsi32_si128((int)table[(uint32_t)i01]), b = _mm_cvtsi32_si128((int)table[(uint32_t)i45]);

	a = _mm_insert_epi32(a, (int)table[i01 >> 32], 1), b = _mm_insert_epi32(b, (int)table[i45 >> 32], 1);
	a = _mm_insert_epi32(a, (int)table[(uint32_t)i23], 2), b = _mm_insert_epi32(b, (int)table[(uint32_t)i67], 2);
	a = _mm_insert_epi32(a, (int)table[i23 >> 32], 3), b = _mm_insert_epi32(b, (int)table[i67 >> 32], 3);
	return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

#endif

/* classes_x86.h: the vectors of enc_classes.c, in AVX-512 or AVX2. Lanes of 16 bytes: a shuffle looks up within them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CLASSES_X86_H
#define KERNELS_CLASSES_X86_H

#include "kernels/x86/simd_x86.h"

#ifdef KN_SET_avx512
typedef __m512i vec;
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#define TABLE(p) _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(p)))
#define LOOK(table, v) _mm512_shuffle_epi8(table, v)
#define ADD8(a, b) _mm512_add_epi8(a, b)
#define ADD16(a, b) _mm512_add_epi16(a, b)
#define LOW(v) _mm512_unpacklo_epi8(v, _mm512_setzero_si512())
#define HIGH(v) _mm512_unpackhi_epi8(v, _mm512_setzero_si512())
#define ZERO _mm512_setzero_si512()
#define ALL(x) _mm512_set1_epi8(x)
#define XOR(a, b) _mm512_xor_si512(a, b)
#else
typedef __m256i vec;
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define TABLE(p) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p)))
#define LOOK(table, v) _mm256_shuffle_epi8(table, v)
#define ADD8(a, b) _mm256_add_epi8(a, b)
#define ADD16(a, b) _mm256_add_epi16(a, b)
#define LOW(v) _mm256_unpacklo_epi8(v, _mm256_setzero_si256())
#define HIGH(v) _mm256_unpackhi_epi8(v, _mm256_setzero_si256())
#define ZERO _mm256_setzero_si256()
#define ALL(x) _mm256_set1_epi8(x)
#define XOR(a, b) _mm256_xor_si256(a, b)
#endif
#define FIRST(v) ADD8(v, ALL(0x70))     /* symbols 16.. get their top bit set */
#define SECOND(v) ADD8(XOR(v, ALL(0x10)), ALL(0x70))

#endif

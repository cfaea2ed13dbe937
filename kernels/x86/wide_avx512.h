/* wide_avx512.h: groups of 64 words of lit.wide, and raw fields joined to them, in AVX-512 (F, BW, VL, DQ, VBMI, VBMI2).
 *
 * The values of the symbols are two planes of 256 bytes, looked up by byte permutes. What takes the time are the 64 loads of a group from tables of
 * 16 kilobytes a class pair. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_WIDE_AVX512_H
#define KERNELS_X86_WIDE_AVX512_H

#include <immintrin.h>

#include "kernels/wide_item.h"
#include "kernels/x86/lookup_avx2.h"

#define WIDE_VECTORS 1

/* One plane of the values; few: the table has at most 128 symbols. */
static inline __m512i plane_lookup(const uint8_t *plane, __m512i index, bool few)
{
	const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(plane), index, _mm512_loadu_si512(plane + 64));

	if (few)
		return low;
	const __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(plane + 128), index, _mm512_loadu_si512(plane + 192));
	return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
}

static inline __attribute__((always_inline)) void wide_vector_group(struct wide_run *run, const struct kn_wide *t, const uint32_t *slot,
								    const uint8_t *column, uint8_t *out, const unsigned size)
{
	const __m512i slot_mask = _mm512_set1_epi32((1 << WIDE_BITS) - 1);
	const uint8_t *at = run->at;
	__m128i part[4];

#pragma GCC unroll 4
	for (unsigned q = 0; q < 4; q++) {
		const __m512i state = _mm512_loadu_si512(run->state + 16 * q);
		__m512i index = _mm512_and_si512(state, slot_mask);
		if (column) {
			const __m512i class = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(column + 16 * q)));
			index = _mm512_or_si512(index, _mm512_slli_epi32(class, WIDE_BITS));
		}
		const __m512i entry = _mm512_inserti64x4(_mm512_castsi256_si512(load_each(slot, _mm512_castsi512_si256(index))),
							 load_each(slot, _mm512_extracti64x4_epi64(index, 1)), 1);
		const __m512i x = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_srli_epi32(entry, 20), _mm512_srli_epi32(state, WIDE_BITS)),
						   _mm512_and_si512(entry, slot_mask));
		const __mmask16 small = _mm512_cmplt_epu32_mask(x, _mm512_set1_epi32(65536));
		const __m512i next = _mm512_maskz_expand_epi32(small, _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at)));
		_mm512_storeu_si512(run->state + 16 * q, _mm512_mask_or_epi32(x, small, _mm512_slli_epi32(x, 16), next));
		at += 2 * _mm_popcnt_u32(small);
		part[q] = _mm512_cvtepi32_epi8(_mm512_srli_epi32(entry, 12));
	}
	run->at = at;

	const __m512i index = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(part[1], part[0])), _mm256_set_m128i(part[3], part[2]), 1);
	const bool few = t->nsym <= 128;
	__m512i low = plane_lookup(run->low, index, few);
	if (size == 1) {
		_mm512_storeu_si512(out, low);
	} else {
		const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
		const __m512i high = _mm512_permutexvar_epi64(order, plane_lookup(run->high, index, few));
		low = _mm512_permutexvar_epi64(order, low);
		_mm512_storeu_si512(out, _mm512_unpacklo_epi8(low, high));
		_mm512_storeu_si512(out + 64, _mm512_unpackhi_epi8(low, high));
	}
	if (!t->has_escape)
		return;
	for (uint64_t m = _mm512_cmpeq_epi8_mask(index, _mm512_set1_epi8((char)(t->nsym - 1))); m; m &= m - 1)
		set_word(out, size, (size_t)__builtin_ctzll(m), wide_literal(&run->literals));
}

/* What stays the same while words are joined to their raw field: field k of a step begins at bit k * w, which is in byte from[k][0]. */
struct wide_join {
	uint8_t from[64];
	union { uint16_t word[32]; uint32_t dword[16]; } down;
};

static void wide_join_start(struct wide_join *join, const struct kn_args *a)
{
	const unsigned w = a->field[0].width, step = a->width == 16 ? 32 : 16, each = 64 / step;

	for (unsigned k = 0; k < step; k++) {
		for (unsigned b = 0; b < each; b++)
			join->from[each * k + b] = (uint8_t)((k * w / 8 + b) & 63);
		if (a->width == 16)
			join->down.word[k] = (uint16_t)(k * w % 8);
		else
			join->down.dword[k] = k * w % 8;
	}
}

/* n words, a multiple of 32: values (bytes or u16) above one raw field, as wide_can_join() wants it. */
static inline __attribute__((always_inline)) void wide_vector_join(const struct wide_join *join, const struct kn_args *a, uint8_t *dst,
								   const uint8_t *value, const unsigned value_size, const uint8_t *raw, size_t n)
{
	const unsigned w = a->field[0].width;
	const __m128i below = _mm_cvtsi32_si128((int)w);
	const __m512i spread = _mm512_loadu_si512(join->from), down = _mm512_loadu_si512(&join->down);

	if (a->width == 16) {
		const __m512i mask = _mm512_set1_epi16((short)mask_bits(w)), rotate = _mm512_set1_epi16(a->rotate);
		for (size_t i = 0; i < n; i += 32, raw += 4 * w) {
			const __m512i field = _mm512_srlv_epi16(_mm512_permutexvar_epi8(spread, _mm512_loadu_si512(raw)), down);
			const __m512i v = value_size == 1 ? _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(value + i))) :
							    _mm512_loadu_si512(value + 2 * i);
			const __m512i word = _mm512_or_si512(_mm512_sll_epi16(v, below), _mm512_and_si512(field, mask));
			_mm512_storeu_si512(dst + 2 * i, _mm512_shrdv_epi16(word, word, rotate));
		}
	} else {
		const __m512i mask = _mm512_set1_epi32((int)mask_bits(w)), rotate = _mm512_set1_epi32(a->rotate);
		for (size_t i = 0; i < n; i += 16, raw += 2 * w) {
			const __m512i field = _mm512_srlv_epi32(_mm512_permutexvar_epi8(spread, _mm512_loadu_si512(raw)), down);
			const __m512i v = value_size == 1 ? _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(value + i))) :
							    _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(value + 2 * i)));
			const __m512i word = _mm512_or_si512(_mm512_sll_epi32(v, below), _mm512_and_si512(field, mask));
			_mm512_storeu_si512(dst + 4 * i, _mm512_rorv_epi32(word, rotate));
		}
	}
}

#endif

/* wide_avx2.h: groups of 64 words of lit.wide, and raw fields joined to them, in AVX2.
 *
 * As in kernels/x86/wide_avx512.h, 8 words a step. What AVX2 lacks: the spreading of renormalisation words over the lanes that take one is a
 * permute by a table of 256 masks, and the values of the symbols are looked up 16 at a time. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_WIDE_AVX2_H
#define KERNELS_X86_WIDE_AVX2_H

#include "kernels/x86/simd_x86.h"

#include "kernels/wide_item.h"
#include "kernels/x86/lookup_avx2.h"

#define WIDE_VECTORS 1

/* spread[m]: the number of bits of m below bit k, for k = 0..7: which of the next words lane k takes. */
#define LANE(m, k) __builtin_popcount((m) & ((1u << (k)) - 1))
#define MASK1(m) { LANE(m, 0), LANE(m, 1), LANE(m, 2), LANE(m, 3), LANE(m, 4), LANE(m, 5), LANE(m, 6), LANE(m, 7) }
#define MASK4(m) MASK1(m), MASK1((m) + 1), MASK1((m) + 2), MASK1((m) + 3)
#define MASK16(m) MASK4(m), MASK4((m) + 4), MASK4((m) + 8), MASK4((m) + 12)
#define MASK64(m) MASK16(m), MASK16((m) + 16), MASK16((m) + 32), MASK16((m) + 48)
static const uint8_t wide_spread[256][8] __attribute__((aligned(64))) = { MASK64(0u), MASK64(64u), MASK64(128u), MASK64(192u) };
#undef LANE
#undef MASK1
#undef MASK4
#undef MASK16
#undef MASK64

static inline __attribute__((always_inline)) __m256i plane_lookup(const uint8_t *plane, __m256i index, unsigned nsym)
{
	return nsym <= 64 ? lookup_bytes(plane, index, 4) : nsym <= 128 ? lookup_bytes(plane, index, 8) : lookup_bytes(plane, index, 16);
}

static inline __attribute__((always_inline)) void wide_vector_group(struct wide_run *run, const struct kn_wide *t, const uint32_t *slot,
								    const uint8_t *column, uint8_t *out, const unsigned size)
{
	const __m256i slot_mask = _mm256_set1_epi32((1 << WIDE_BITS) - 1), zero = _mm256_setzero_si256();
	const uint8_t *at = run->at;
	__m256i entries[8];

#pragma GCC unroll 8
	for (unsigned q = 0; q < 8; q++) {
		const __m256i state = _mm256_loadu_si256((const void *)(run->state + 8 * q));
		__m256i index = _mm256_and_si256(state, slot_mask);
		if (column) {
			const __m256i class = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(column + 8 * q)));
			index = _mm256_or_si256(index, _mm256_slli_epi32(class, WIDE_BITS));
		}
		const __m256i entry = load_each(slot, index);
		const __m256i x = _mm256_add_epi32(_mm256_mullo_epi32(_mm256_srli_epi32(entry, 20), _mm256_srli_epi32(state, WIDE_BITS)),
						   _mm256_and_si256(entry, slot_mask));
		const __m256i small = _mm256_cmpeq_epi32(_mm256_srli_epi32(x, 16), zero);
		const unsigned taken = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(small));
		const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)at));
		const __m256i next = _mm256_permutevar8x32_epi32(words, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)wide_spread[taken])));
		_mm256_storeu_si256((void *)(run->state + 8 * q), _mm256_blendv_epi8(x, _mm256_or_si256(_mm256_slli_epi32(x, 16), next), small));
		at += 2 * _mm_popcnt_u32(taken);
		entries[q] = _mm256_and_si256(_mm256_srli_epi32(entry, 12), _mm256_set1_epi32(255));
	}
	run->at = at;
#pragma GCC unroll 2
	for (unsigned h = 0; h < 2; h++, out += 32 * size) {
		const __m256i *e = entries + 4 * h;
		/* packs work within halves: dwords come out in the order 0 4 1 5 2 6 3 7 */
		const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(e[0], e[1]), _mm256_packus_epi32(e[2], e[3]));
		const __m256i index = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
		__m256i low = plane_lookup(run->low, index, t->nsym);
		if (size == 1) {
			_mm256_storeu_si256((void *)out, low);
		} else {
			const __m256i high = _mm256_permute4x64_epi64(plane_lookup(run->high, index, t->nsym), 0xd8);
			low = _mm256_permute4x64_epi64(low, 0xd8);
			_mm256_storeu_si256((void *)out, _mm256_unpacklo_epi8(low, high));
			_mm256_storeu_si256((void *)(out + 32), _mm256_unpackhi_epi8(low, high));
		}
		if (!t->has_escape)
			continue;
		const __m256i escaped = _mm256_cmpeq_epi8(index, _mm256_set1_epi8((char)(t->nsym - 1)));
		for (uint32_t m = (uint32_t)_mm256_movemask_epi8(escaped); m; m &= m - 1)
			set_word(out, size, (size_t)__builtin_ctz(m), wide_literal(&run->literals));
	}
}

/* What stays the same while words are joined to their raw field: field k of a step begins at bit k * w. The steps' second halves, of 16 bytes
 * each, begin at byte `half`. Words get their fields to the top by multiplication: there are no variable shifts of 16 bits. */
struct wide_join {
	uint8_t from[32];
	union { uint16_t up[16]; uint32_t down[8]; } by;
	unsigned half;
};

static void wide_join_start(struct wide_join *join, const struct kn_args *a)
{
	const unsigned w = a->field[0].width, step = a->width == 16 ? 8 : 4, each = 16 / step;

	join->half = step * w / 8;
	for (unsigned k = 0; k < 2 * step; k++) {
		const unsigned bit = k * w - k / step * join->half * 8;
		for (unsigned b = 0; b < each; b++)
			join->from[each * k + b] = (uint8_t)((bit / 8 + b) & 15);
		if (a->width == 16)
			join->by.up[k] = (uint16_t)(1u << (16 - w - bit % 8));
		else
			join->by.down[k] = bit % 8;
	}
}

/* n words, a multiple of 32: values (bytes or u16) above one raw field, as wide_can_join() wants it. */
static inline __attribute__((always_inline)) void wide_vector_join(const struct wide_join *join, const struct kn_args *a, uint8_t *dst,
								   const uint8_t *value, const unsigned value_size, const uint8_t *raw, size_t n)
{
	const unsigned w = a->field[0].width;
	const __m128i below = _mm_cvtsi32_si128((int)w), rest = _mm_cvtsi32_si128((int)(a->width - w));
	const __m128i right = _mm_cvtsi32_si128(a->rotate), left = _mm_cvtsi32_si128(a->width - a->rotate);
	const __m256i spread = load256(join->from), by = load256(&join->by);

	if (a->width == 16) {
		for (size_t i = 0; i < n; i += 16, raw += 2 * w) {
			const __m256i packed = load_halves(raw, raw + join->half);
			const __m256i field = _mm256_srl_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(packed, spread), by), rest);
			const __m256i v = value_size == 1 ? _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(value + i))) : load256(value + 2 * i);
			const __m256i word = _mm256_or_si256(_mm256_sll_epi16(v, below), field);
			store256(dst + 2 * i, _mm256_or_si256(_mm256_srl_epi16(word, right), _mm256_sll_epi16(word, left)));
		}
	} else {
		const __m256i mask = _mm256_set1_epi32((int)mask_bits(w));
		for (size_t i = 0; i < n; i += 8, raw += w) {
			const __m256i packed = load_halves(raw, raw + join->half);
			const __m256i field = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(packed, spread), by), mask);
			const __m256i v = value_size == 1 ? _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(value + i))) :
							    _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(value + 2 * i)));
			const __m256i word = _mm256_or_si256(_mm256_sll_epi32(v, below), field);
			store256(dst + 4 * i, _mm256_or_si256(_mm256_srl_epi32(word, right), _mm256_sll_epi32(word, left)));
		}
	}
}

#endif

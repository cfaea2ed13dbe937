/* alias_avx2.h: groups of 128 words of lit.alias in AVX2.
 *
 * 32 words a step: what a bucket says is looked up in planes of bytes; low and high bytes then become words. Packing words to bytes and unpacking them
 * again keeps within halves of a register: bytes stand in the order of words 0-7, 16-23, 8-15, 24-31. Spreading renormalisation words
 * over the lanes that take one is a permute by a table of 256 masks. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_ALIAS_AVX2_H
#define KERNELS_X86_ALIAS_AVX2_H

#include "kernels/alias_item.h"
#include "kernels/x86/lookup_avx2.h"

#define ALIAS_VECTORS 1

/* alias_spread[m]: for lanes k = 0..7 the two bytes of the word that lane k takes: its number is that of the bits of m below bit k. */
#define LANE(m, k) 2 * __builtin_popcount((m) & ((1u << (k)) - 1)), 2 * __builtin_popcount((m) & ((1u << (k)) - 1)) + 1
#define MASK1(m) { LANE(m, 0), LANE(m, 1), LANE(m, 2), LANE(m, 3), LANE(m, 4), LANE(m, 5), LANE(m, 6), LANE(m, 7) }
#define MASK4(m) MASK1(m), MASK1((m) + 1), MASK1((m) + 2), MASK1((m) + 3)
#define MASK16(m) MASK4(m), MASK4((m) + 4), MASK4((m) + 8), MASK4((m) + 12)
#define MASK64(m) MASK16(m), MASK16((m) + 16), MASK16((m) + 32), MASK16((m) + 48)
static const uint8_t alias_spread[256][16] __attribute__((aligned(64))) = { MASK64(0u), MASK64(64u), MASK64(128u), MASK64(192u) };
#undef LANE
#undef MASK1
#undef MASK4
#undef MASK16
#undef MASK64

/* The next words for 8 lanes, where the mask has a bit. */
LOOKUP_INLINE __m128i alias_take(const uint8_t **at, unsigned mask)
{
	const __m128i words = _mm_shuffle_epi8(_mm_loadu_si128((const void *)*at), _mm_load_si128((const void *)alias_spread[mask]));

	*at += 2 * _mm_popcnt_u32(mask);
	return words;
}

/* Where a is not below b, unsigned words. */
LOOKUP_INLINE __m256i not_below16(__m256i a, __m256i b) { return _mm256_cmpeq_epi16(_mm256_max_epu16(a, b), a); }

/* Words from planes of low and of high bytes: h = 0: the first 16, 1: the others. */
LOOKUP_INLINE __m256i join_planes(__m256i low, __m256i high, unsigned h)
{
	return h ? _mm256_unpackhi_epi8(low, high) : _mm256_unpacklo_epi8(low, high);
}

/* 128 words; parts: 16ths of the entries. */
LOOKUP_INLINE void alias_group_parts(struct alias_run *run, const struct kn_alias *t, const struct kn_alias_rows *rows, const uint8_t *column, uint8_t *out,
				     const unsigned size, const unsigned parts)
{
	const __m128i down = _mm_cvtsi32_si128(16 - t->log2_nb);
	const __m256i position_mask = _mm256_set1_epi16((short)((1u << (16 - t->log2_nb)) - 16)), zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
	const uint8_t *at = run->at;

	for (unsigned from = 0; from < ALIAS_LANES; from += 32, out += 32 * size) {
		__m256i low[2], high[2], alias[2], small[2];
		for (unsigned h = 0; h < 2; h++)
			low[h] = load256(run->low + from + 16 * h), high[h] = load256(run->high + from + 16 * h);
		__m256i bucket = _mm256_packus_epi16(_mm256_srl_epi16(low[0], down), _mm256_srl_epi16(low[1], down));
		if (column)
			bucket = _mm256_or_si256(bucket, _mm256_permute4x64_epi64(load256(column + from), 0xd8));
		const __m256i limit[2] = { lookup_bytes(rows->limit_plane[0], bucket, parts), lookup_bytes(rows->limit_plane[1], bucket, parts) };
		const __m256i add[2] = { lookup_bytes(rows->add_plane[0], bucket, parts), lookup_bytes(rows->add_plane[1], bucket, parts) };
		for (unsigned h = 0; h < 2; h++)
			alias[h] = not_below16(low[h], join_planes(limit[0], limit[1], h));
		const __m256i symbol = select256(bucket, lookup_bytes(rows->alias, bucket, parts), _mm256_packs_epi16(alias[0], alias[1]));
		const __m256i freq[2] = { lookup_bytes(rows->freq_plane[0], symbol, parts), lookup_bytes(rows->freq_plane[1], symbol, parts) };
		for (unsigned h = 0; h < 2; h++) {
			const __m256i f = join_planes(freq[0], freq[1], h), own = _mm256_and_si256(low[h], position_mask);
			const __m256i rank = select256(own, _mm256_add_epi16(low[h], join_planes(add[0], add[1], h)), alias[h]);
			low[h] = _mm256_add_epi16(_mm256_mullo_epi16(f, high[h]), rank);
			/* one more if the sum went over: it is below its part */
			high[h] = _mm256_add_epi16(_mm256_add_epi16(_mm256_mulhi_epu16(f, high[h]), one), not_below16(low[h], rank));
			small[h] = _mm256_cmpeq_epi16(high[h], zero);
		}
		const unsigned mask = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(small[0], small[1]));
		for (unsigned h = 0; h < 2; h++) { /* the mask's bytes are of words 0-7, 16-23, 8-15, 24-31 */
			const __m128i first = alias_take(&at, mask >> (8 * h) & 255), second = alias_take(&at, mask >> (16 + 8 * h) & 255);
			const __m256i words = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
			const __m256i more = _mm256_and_si256(small[h], _mm256_or_si256(low[h], _mm256_srli_epi16(words, WIDE_BITS)));
			store256(run->high + from + 16 * h, _mm256_or_si256(high[h], more));
			store256(run->low + from + 16 * h, select256(low[h], _mm256_slli_epi16(words, 4), small[h]));
		}
		const __m256i value = lookup_bytes(rows->value_plane[0], symbol, parts);
		if (size == 1)
			store256(out, _mm256_permute4x64_epi64(value, 0xd8));
		if (size == 1 && !t->has_escape)
			continue;
		const __m256i upper = lookup_bytes(rows->value_plane[1], symbol, parts), marker = _mm256_set1_epi16((short)t->marker);
		uint32_t escaped;
		if (size == 1) { /* the marker's upper byte is all ones, that of values 0 */
			escaped = (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(upper, 0xd8));
		} else {
			const __m256i words[2] = { join_planes(value, upper, 0), join_planes(value, upper, 1) };
			store256(out, words[0]), store256(out + 32, words[1]);
			const __m256i found = _mm256_packs_epi16(_mm256_cmpeq_epi16(words[0], marker), _mm256_cmpeq_epi16(words[1], marker));
			escaped = (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(found, 0xd8));
		}
		for (; escaped; escaped &= escaped - 1)
			set_word(out, size, (size_t)__builtin_ctz(escaped), alias_literal(run, t));
	}
	run->at = at;
}

static void alias_vector_group(struct alias_run *run, const struct kn_alias *t, const struct kn_alias_rows *rows, const uint8_t *column, uint8_t *out, unsigned size)
{
	const unsigned parts = (unsigned)t->kc << t->log2_nb >> 4;

#define PARTS(n)                                                                                         \
	if (parts <= n) {                                                                                \
		if (size == 1)                                                                           \
			alias_group_parts(run, t, rows, column, out, 1, n);                              \
		else                                                                                     \
			alias_group_parts(run, t, rows, column, out, 2, n);                              \
		return;                                                                                  \
	}
	PARTS(1)
	PARTS(2)
	PARTS(4)
	PARTS(8)
	PARTS(16)
#undef PARTS
}

#endif

/* enc_rans_avx2.h: the encoder of lit.rans in AVX2, 128 words at a time.
 *
 * Choice: bytes are looked up in 16 entries at a time (vpshufb), of which only the parts of index_of that hold symbols are visited.
 * Coding: states are 16-bit words, 16 of them at once. What is known of their symbols is looked up as bytes too in tables of up to 64 entries, loaded word by
 * word from longer ones; new positions are looked up without column classes, loaded with them. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_ENC_RANS_AVX2_H
#define KERNELS_X86_ENC_RANS_AVX2_H

#include "kernels/x86/lookup_avx2.h"

#include "kernels/enc_rans.h"

#define ENC_RANS_VECTOR

enum { ENC_MAX_PARTS = 4 };

/* Shuffles that move the bytes chosen by an 8-bit mask to the top of 8, in order: each bit that is set shifts in its number from above. */
#define PACK_BIT(m, k, below) ((below) >> ((m) >> (k) & 1) * 8 | (uint64_t)((m) >> (k) & 1) * (k) << 56)
#define PACK_1(m) PACK_BIT(m, 7, PACK_BIT(m, 6, PACK_BIT(m, 5, PACK_BIT(m, 4, PACK_BIT(m, 3, PACK_BIT(m, 2, PACK_BIT(m, 1, PACK_BIT(m, 0, 0ull))))))))
#define PACK_4(m) PACK_1(m), PACK_1((m) + 1), PACK_1((m) + 2), PACK_1((m) + 3)
#define PACK_16(m) PACK_4(m), PACK_4((m) + 4), PACK_4((m) + 8), PACK_4((m) + 12)
#define PACK_64(m) PACK_16(m), PACK_16((m) + 16), PACK_16((m) + 32), PACK_16((m) + 48)
static const uint64_t enc_pack[256] = { PACK_64(0), PACK_64(64), PACK_64(128), PACK_64(192) };

/* table[index], where index lies in the 16 entries of this row; 0 elsewhere. */
ENC_INLINE __m256i enc_row(const uint8_t *table, unsigned row, __m256i index)
{
	const __m256i entries = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(table + 16 * row)));
	const __m256i at = _mm256_xor_si256(index, _mm256_set1_epi8((char)(row << 4)));
	return _mm256_shuffle_epi8(entries, _mm256_adds_epu8(at, _mm256_set1_epi8(0x70)));
}

ENC_INLINE __m256i enc_short_lookup(const uint8_t *table, __m256i index)
{
	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table)), index);
}

/* 32 words less the base as bytes; *big: all ones where they do not fit one. */
ENC_INLINE __m256i enc_offsets(const struct enc_rans *run, size_t i, const bool wide, __m256i *big)
{
	const unsigned base = run->table->base, mask = (unsigned)mask_bits(run->table->width);

	*big = _mm256_setzero_si256();
	if (!wide)
		return _mm256_and_si256(_mm256_sub_epi8(_mm256_loadu_si256((const void *)((const uint8_t *)run->args->src + i)),
							_mm256_set1_epi8((char)base)), _mm256_set1_epi8((char)mask));
	const uint8_t *src = (const uint8_t *)run->args->src + 2 * i;
	const __m256i m = _mm256_set1_epi16((short)mask), b = _mm256_set1_epi16((short)base), low_byte = _mm256_set1_epi16(255);
	const __m256i w0 = _mm256_and_si256(_mm256_sub_epi16(_mm256_loadu_si256((const void *)src), b), m);
	const __m256i w1 = _mm256_and_si256(_mm256_sub_epi16(_mm256_loadu_si256((const void *)(src + 32)), b), m);
	const __m256i high = _mm256_packus_epi16(_mm256_srli_epi16(w0, 8), _mm256_srli_epi16(w1, 8));
	const __m256i low = _mm256_packus_epi16(_mm256_and_si256(w0, low_byte), _mm256_and_si256(w1, low_byte));
	const __m256i fits = _mm256_cmpeq_epi8(_mm256_permute4x64_epi64(high, 0xd8), *big);
	*big = _mm256_xor_si256(fits, _mm256_set1_epi8(-1));
	return _mm256_permute4x64_epi64(low, 0xd8);
}

struct enc_symbols {
	uint8_t index[256];             /* symbol index + 1; 0: none */
	unsigned nrows, row[16];        /* rows of 16 bytes that have any */
};

static void find_symbols(const struct enc_rans *run, struct enc_symbols *out)
{
	out->nrows = 0;
	for (unsigned row = 0; row < 16; row++) {
		unsigned any = 0;
		for (unsigned i = 16 * row; i < 16 * row + 16; i++)
			out->index[i] = (uint8_t)(run->index_of[i] + 1), any |= out->index[i];
		if (any)
			out->row[out->nrows++] = row;
	}
}

ENC_INLINE uint32_t enc_choose32(const struct enc_rans *run, const struct enc_symbols *symbols, const struct enc_rows *rows, const uint8_t *column,
				 size_t i, const bool wide)
{
	const unsigned nindex = (column ? run->table->kc : 1u) << run->table->log2_nb;
	const __m256i zero = _mm256_setzero_si256();
	__m256i big, known = zero, freq = zero, class = zero;
	const __m256i offset = enc_offsets(run, i, wide, &big);

	for (unsigned r = 0; r < symbols->nrows; r++)
		known = _mm256_or_si256(known, enc_row(symbols->index, symbols->row[r], offset));
	__m256i index = _mm256_sub_epi8(known, _mm256_set1_epi8(1));
	if (column) {
		class = _mm256_loadu_si256((const void *)column);
		index = _mm256_or_si256(index, _mm256_sll_epi16(class, _mm_cvtsi32_si128(run->table->log2_nb)));
	}
	for (unsigned r = 0; r < nindex / 16; r++)
		freq = _mm256_or_si256(freq, enc_row(rows->freq, r, index));
	const __m256i none = _mm256_or_si256(_mm256_or_si256(_mm256_cmpeq_epi8(known, zero), _mm256_cmpeq_epi8(freq, zero)), big);
	index = _mm256_blendv_epi8(index, enc_short_lookup(rows->absent, class), none);
	if (wide)
		index = _mm256_blendv_epi8(index, enc_short_lookup(rows->patched, class), big);
	_mm256_storeu_si256((void *)(run->index + i), index);
	return (uint32_t)_mm256_movemask_epi8(none);
}

ENC_INLINE void enc_choose_shape(const struct enc_rans *run, size_t n, const bool wide)
{
	struct enc_symbols symbols;
	const uint8_t *column;

	find_symbols(run, &symbols);
	for (size_t i = 0; i < n; i += KN_GROUP) {
		const struct enc_rows *rows = enc_rows_at(run, i, &column);
		for (unsigned h = 0; h < KN_GROUP; h += 64) {
			const uint64_t low = enc_choose32(run, &symbols, rows, column ? column + h : NULL, i + h, wide);
			const uint64_t high = enc_choose32(run, &symbols, rows, column ? column + h + 32 : NULL, i + h + 32, wide);
			run->special[(i + h) / 64] = low | high << 32;
		}
	}
}

static void enc_choose_groups(const struct enc_rans *run, size_t n)
{
	run->table->width > 8 ? enc_choose_shape(run, n, true) : enc_choose_shape(run, n, false);
}

/* What is known of the symbols of 16 words: 16-bit numbers. start: the class above it. */
struct enc_found {
	__m256i freq, reciprocal, start;
};

/* 32 words, in the order of unpacking: words 0-7 and 16-23, then the others. Tables of up to `parts` times 16 entries are looked up in registers; longer
 * ones are loaded word by word. */
ENC_INLINE void enc_find32(const struct enc_rows *rows, const uint8_t *index, __m256i class, const unsigned parts, struct enc_found found[2])
{
	const __m256i zero = _mm256_setzero_si256();

	if (parts <= ENC_MAX_PARTS) {
		const __m256i j = load256(index), freq = lookup_bytes(rows->freq, j, parts), start = lookup_bytes(rows->start, j, parts);
		const __m256i low = lookup_bytes(rows->low, j, parts), high = lookup_bytes(rows->high, j, parts);
		found[0] = (struct enc_found){ _mm256_unpacklo_epi8(freq, zero), _mm256_unpacklo_epi8(low, high), _mm256_unpacklo_epi8(start, class) };
		found[1] = (struct enc_found){ _mm256_unpackhi_epi8(freq, zero), _mm256_unpackhi_epi8(low, high), _mm256_unpackhi_epi8(start, class) };
		return;
	}
	const __m256i low_byte = _mm256_set1_epi16(255), low_half = _mm256_set1_epi32(0xffff);
	uint32_t code[32];
#pragma GCC unroll 8
	for (unsigned k = 32; k-- > 0;)         /* what is read first is stored first */
		code[k] = rows->packed[index[k]];
	for (unsigned k = 0; k < 2; k++) {
		const uint8_t *at = (const uint8_t *)(code + 8 * k);
		const __m256i c0 = load_halves(at, at + 64), c1 = load_halves(at + 16, at + 80);
		const __m256i pair = _mm256_packus_epi32(_mm256_and_si256(c0, low_half), _mm256_and_si256(c1, low_half));
		found[k].reciprocal = _mm256_packus_epi32(_mm256_srli_epi32(c0, 16), _mm256_srli_epi32(c1, 16));
		found[k].freq = _mm256_srli_epi16(pair, 8);
		found[k].start = _mm256_or_si256(_mm256_and_si256(pair, low_byte), k ? _mm256_unpackhi_epi8(zero, class) : _mm256_unpacklo_epi8(zero, class));
	}
}

/* 16 words: the states' new high bytes (in place) and places in position[]; which lanes gave away their low byte is returned. */
ENC_INLINE __m256i enc_divide16(__m256i *state, const struct enc_found *found, __m256i *place)
{
	__m256i x = *state;

	const __m256i full = _mm256_cmpeq_epi16(_mm256_max_epu16(x, _mm256_slli_epi16(found->freq, 8)), x);
	x = _mm256_blendv_epi8(x, _mm256_srli_epi16(x, 8), full);
	__m256i q = _mm256_mulhi_epu16(x, found->reciprocal), r = _mm256_sub_epi16(x, _mm256_mullo_epi16(q, found->freq));
	const __m256i enough = _mm256_cmpgt_epi16(found->freq, r);     /* the remainder is below 2 * 255 */
	q = _mm256_add_epi16(q, _mm256_add_epi16(_mm256_set1_epi16(1), enough));
	r = _mm256_sub_epi16(r, _mm256_andnot_si256(enough, found->freq));
	*state = _mm256_slli_epi16(q, 8);
	*place = _mm256_add_epi16(found->start, r);
	return full;
}

/* Gives away the bytes of 32 lanes: the low ones of two registers of 16. */
ENC_INLINE uint8_t *enc_give32(uint8_t *at, __m256i x0, __m256i x1, __m256i full0, __m256i full1)
{
	const __m256i low_byte = _mm256_set1_epi16(255);
	const __m256i bytes = _mm256_packus_epi16(_mm256_and_si256(x0, low_byte), _mm256_and_si256(x1, low_byte));
	const uint32_t mask = (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(full0, full1));
	const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);

#define GIVE8(v, m) \
	do { \
		_mm_storel_epi64((void *)(at - 8), _mm_shuffle_epi8(v, _mm_loadl_epi64((const void *)&enc_pack[m]))); \
		at -= (unsigned)__builtin_popcount(m); \
	} while (0)
	GIVE8(_mm_unpackhi_epi64(high, high), mask >> 24);
	GIVE8(high, mask >> 16 & 255);
	GIVE8(_mm_unpackhi_epi64(low, low), mask >> 8 & 255);
	GIVE8(low, mask & 255);
#undef GIVE8
	return at;
}

/* 16 new states: the positions join the high bytes. */
ENC_INLINE __m256i enc_place16(const uint8_t *position, __m256i high, __m256i place)
{
	const uint64_t part[4] = { (uint64_t)_mm256_extract_epi64(place, 0), (uint64_t)_mm256_extract_epi64(place, 1),
				   (uint64_t)_mm256_extract_epi64(place, 2), (uint64_t)_mm256_extract_epi64(place, 3) };
	uint64_t out[4];

	for (unsigned k = 0; k < 4; k++)
		out[k] = position[part[k] & 0xffff] | (uint64_t)position[part[k] >> 16 & 0xffff] << 16 |
			 (uint64_t)position[part[k] >> 32 & 0xffff] << 32 | (uint64_t)position[part[k] >> 48] << 48;
	return _mm256_or_si256(high, _mm256_set_epi64x((long long)out[3], (long long)out[2], (long long)out[1], (long long)out[0]));
}

/* 32 new states: the positions join the high bytes. Without classes they are looked up as bytes. */
ENC_INLINE void enc_place32(const uint8_t *position, const bool classed, __m256i state[2], const __m256i place[2])
{
	if (classed) {
		for (unsigned k = 0; k < 2; k++)
			state[k] = enc_place16(position, state[k], place[k]);
		return;
	}
	const __m256i bytes = lookup_bytes(position, _mm256_packus_epi16(place[0], place[1]), 16), zero = _mm256_setzero_si256();
	state[0] = _mm256_or_si256(state[0], _mm256_unpacklo_epi8(bytes, zero));
	state[1] = _mm256_or_si256(state[1], _mm256_unpackhi_epi8(bytes, zero));
}

ENC_INLINE void enc_code_shape(struct enc_rans *run, size_t n, const unsigned parts, const bool classed)
{
	__m256i state[8];
	uint8_t *at = run->at;
	const uint8_t *column;

	for (unsigned h = 0; h < 4; h++)        /* in the order of unpacking */
		for (unsigned k = 0; k < 2; k++)
			state[2 * h + k] = load_halves((const uint8_t *)(run->state + 32 * h + 8 * k), (const uint8_t *)(run->state + 32 * h + 16 + 8 * k));
	for (size_t i = n; i > 0;) {
		i -= KN_GROUP;
		const struct enc_rows *rows = enc_rows_at(run, i, &column);
		for (unsigned h = 4; h-- > 0;) {
			__m256i *s = state + 2 * h, place[2], full[2];
			const __m256i x0 = s[0], x1 = s[1];
			struct enc_found found[2];
			enc_find32(rows, run->index + i + 32 * h, classed ? load256(column + 32 * h) : _mm256_setzero_si256(), parts, found);
			for (unsigned k = 0; k < 2; k++)
				full[k] = enc_divide16(&s[k], &found[k], &place[k]);
			at = enc_give32(at, x0, x1, full[0], full[1]);
			enc_place32(rows->position, classed, s, place);
		}
	}
	for (unsigned h = 0; h < 4; h++) {
		store256(run->state + 32 * h, _mm256_permute2x128_si256(state[2 * h], state[2 * h + 1], 0x20));
		store256(run->state + 32 * h + 16, _mm256_permute2x128_si256(state[2 * h], state[2 * h + 1], 0x31));
	}
	run->at = at;
}

static void enc_code_groups(struct enc_rans *run, size_t n)
{
	const bool classed = run->args->col_class && run->table->kc > 1;

	switch ((classed ? run->table->kc : 1u) << run->table->log2_nb >> 4) {
	case 1: enc_code_shape(run, n, 1, false); break;
	case 2: classed ? enc_code_shape(run, n, 2, true) : enc_code_shape(run, n, 2, false); break;
	case 4: classed ? enc_code_shape(run, n, 4, true) : enc_code_shape(run, n, 4, false); break;
	default: enc_code_shape(run, n, 16, true);
	}
}

#endif

/* alias_avx512.h: lit.alias, alone or under a merge, in AVX-512 (F, BW, VL, DQ, VBMI, VBMI2).
 *
 * Nothing is gathered: up to 64 entries, 32 words look up 16 bits at a time in one or two registers; above, 64 words look up byte planes, whose bytes
 * are then put together. Both branches are looked up at once where the tables fit in registers, so that the comparison with the bucket's
 * limit is off the way from state to state. Raw fields come by a byte permute and a shift of each byte within its 8; values of symbols already
 * stand where they belong in the word. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_ALIAS_AVX512_H
#define KERNELS_X86_ALIAS_AVX512_H

#include <immintrin.h>

#include "kernels/alias_plain.h"

#define ALIAS_INLINE static inline __attribute__((always_inline))

/* Words loaded, then expanded: with an operand in memory the one is slow that does both. */
ALIAS_INLINE __m512i expand_words(__m512i otherwise, __mmask32 where, const uint8_t *at)
{
	__m512i words = _mm512_loadu_si512(at);
	__asm__("" : "+v"(words));
	return _mm512_mask_expand_epi16(otherwise, where, words);
}

/* Which bytes of two registers of words are the low (high) ones. */
ALIAS_INLINE __m512i even_bytes(void)
{
	return _mm512_set_epi64(0x7e7c7a7876747270, 0x6e6c6a6866646260, 0x5e5c5a5856545250, 0x4e4c4a4846444240, 0x3e3c3a3836343230, 0x2e2c2a2826242220,
				0x1e1c1a1816141210, 0x0e0c0a0806040200);
}
ALIAS_INLINE __m512i odd_bytes(void) { return _mm512_or_si512(even_bytes(), _mm512_set1_epi8(1)); }

/* What becomes of the values. OUT: joined with raw fields to words of so many bits. */
enum alias_shape { ALIAS_BYTES, ALIAS_WORDS, ALIAS_OUT8, ALIAS_OUT16, ALIAS_OUT16_2, ALIAS_OUT32, ALIAS_SHAPES };

/* Raw fields in the word, byte by byte: `shift` counts from the first bit of the 8 bytes that `spread` brings. */
struct alias_join {
	unsigned lift;                  /* values are moved up by so many bits in their 16, the highest of a word */
	uint8_t spread[2][64], shift[2][64], mask[2][64];
};

/* Where byte h of a word has bits of a field that begins at bit `from` of the word before its rotation: the mask of these bits, and by how much
 * the field's bit exceeds the byte's. False if by more than one number. */
static inline bool alias_join_byte(const struct kn_args *a, unsigned width, unsigned from, unsigned h, uint8_t *mask, int *by)
{
	*mask = 0, *by = 0;
	for (unsigned t = 8 * h; t < 8 * h + 8; t++) {
		const unsigned u = (t + a->rotate) % a->width;
		if (t >= a->width || u < from || u >= from + width)
			continue;
		const int more = (int)(u - from) - (int)(t - 8 * h);
		if (*mask && more != *by)
			return false;
		*mask |= (uint8_t)(1u << (t - 8 * h)), *by = more;
	}
	return true;
}

/* The shape of a fused call, or ALIAS_SHAPES: none. join: filled in unless NULL. */
static unsigned alias_shape_of(const struct kn_args *a, struct alias_join *join)
{
	const unsigned below = a->width - a->coded_width, word = a->width / 8u;

	if ((a->width != 8 && a->width != 16 && a->width != 32) || a->rotate > below || (a->width == 32 && below - a->rotate < 16) || a->nfield < 1 ||
	    a->nfield > (a->width == 16 ? 2 : 1))
		return ALIAS_SHAPES;
	for (unsigned f = 0, from = 0; f < a->nfield; from += a->field[f++].width) {
		const unsigned w = a->field[f].width;
		uint8_t mask[4];
		int by[4];
		if (8 / word * w > 57)
			return ALIAS_SHAPES;
		for (unsigned h = 0; h < word; h++)
			if (!alias_join_byte(a, w, from, h, &mask[h], &by[h]))
				return ALIAS_SHAPES;
		for (unsigned at = 0; join && at < 64; at++) {
			const unsigned first = at / 8 * (8 / word) * w / 8, bit = at / word * w - 8 * first; /* of the 8 bytes; of the word in them */
			join->spread[f][at] = (uint8_t)(first + at % 8);
			join->shift[f][at] = (uint8_t)(((int)bit + by[at % word]) & 63);
			join->mask[f][at] = mask[at % word];
		}
	}
	if (join)
		join->lift = below - a->rotate - (a->width == 32 ? 16 : 0);
	return a->width == 8 ? ALIAS_OUT8 : a->width == 32 ? ALIAS_OUT32 : a->nfield == 2 ? ALIAS_OUT16_2 : ALIAS_OUT16;
}

/* The tables of one row class. Words: up to 64 entries in one or two registers, [0] the alias, [1] own. Planes: in memory but for the values, which are
 * moved up. */
struct alias_regs {
	__m512i limit[2], freq[2][2], add[2], value[2][2];
	const struct kn_alias_rows *rows;
	uint8_t plane[2][ALIAS_MAX_ENTRIES];
};

/* Values moved up, and the marker all ones then, which no value is: its lowest bits are 0. */
ALIAS_INLINE __m512i alias_lift(const uint16_t *value, uint16_t marker, unsigned lift)
{
	const __m512i v = _mm512_loadu_si512(value);
	const __m512i up = _mm512_sll_epi16(v, _mm_cvtsi32_si128((int)lift));
	return lift ? _mm512_mask_set1_epi16(up, _mm512_cmpeq_epi16_mask(v, _mm512_set1_epi16((short)marker)), -1) : v;
}

ALIAS_INLINE void alias_load(struct alias_regs *regs, const struct kn_alias_rows *rows, const unsigned entries, uint16_t marker, unsigned lift)
{
	regs->rows = rows;
	if (entries <= 64) {
		for (unsigned i = 0; i < (entries + 31) / 32; i++) {
			regs->limit[i] = _mm512_loadu_si512((entries > 32 ? rows->alias_limit : rows->limit) + 32 * i);
			regs->add[i] = _mm512_loadu_si512(rows->add + 32 * i);
			for (unsigned own = 0; own < 2; own++) {
				regs->freq[own][i] = _mm512_loadu_si512(rows->freq[own] + 32 * i);
				regs->value[own][i] = alias_lift(rows->value[own] + 32 * i, marker, lift);
			}
		}
		return;
	}
	for (unsigned i = 0; i < entries; i += 64) {
		const __m512i v = alias_lift(rows->value[1] + i, marker, lift), w = alias_lift(rows->value[1] + i + 32, marker, lift);
		_mm512_storeu_si512(regs->plane[0] + i, _mm512_permutex2var_epi8(v, even_bytes(), w));
		_mm512_storeu_si512(regs->plane[1] + i, _mm512_permutex2var_epi8(v, odd_bytes(), w));
	}
}

ALIAS_INLINE __m512i lookup_words(const __m512i *table, __m512i index, const unsigned entries)
{
	return entries <= 32 ? _mm512_permutexvar_epi16(index, table[0]) : _mm512_permutex2var_epi16(table[0], index, table[1]);
}

/* From table[0] where `alias`, else from table[1]. */
ALIAS_INLINE __m512i lookup_either(__m512i table[2][2], __mmask32 alias, __m512i index, const unsigned entries)
{
	const __m512i own = lookup_words(table[1], index, entries);
	return entries <= 32 ? _mm512_mask_permutexvar_epi16(own, alias, index, table[0][0]) :
			       _mm512_mask_mov_epi16(own, alias, _mm512_permutex2var_epi16(table[0][0], index, table[0][1]));
}

ALIAS_INLINE __m512i lookup_plane(const uint8_t *plane, __m512i index, __mmask64 upper, const unsigned entries)
{
	const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(plane), index, _mm512_loadu_si512(plane + 64));
	if (entries <= 128)
		return low;
	return _mm512_mask_mov_epi8(low, upper, _mm512_permutex2var_epi8(_mm512_loadu_si512(plane + 128), index, _mm512_loadu_si512(plane + 192)));
}

/* Where a run of groups stands, and what stays the same in it. */
struct alias_groups {
	__m512i low[4], high[4];
	const uint8_t *at;
	const uint8_t *literal;         /* as words are before they are joined: 2 bytes, or one where values are looked up as bytes */
	const uint8_t *raw[2];
	__m512i marker, position_mask, spread[2], shift[2], field_mask[2];
	bool escapes, many;             /* whether there are any; so many that a branch for them does not pay */
};

/* The next states of 32 lanes, from frequencies and ranks (<< 4). */
ALIAS_INLINE void alias_next(struct alias_groups *g, unsigned h, __m512i freq, __m512i rank)
{
	const __m512i product = _mm512_mullo_epi16(freq, g->high[h]), upper = _mm512_mulhi_epu16(freq, g->high[h]);
	const __m512i low = _mm512_add_epi16(product, rank);
	const __m512i high = _mm512_mask_sub_epi16(upper, _mm512_cmplt_epu16_mask(low, rank), upper, _mm512_set1_epi16(-1));
	const __mmask32 small = _mm512_testn_epi16_mask(high, high);
	const __m512i word = expand_words(_mm512_setzero_si512(), small, g->at);

	g->at += 2 * _mm_popcnt_u32(small);
	g->high[h] = _mm512_or_si512(_mm512_mask_mov_epi16(high, small, low), _mm512_srli_epi16(word, WIDE_BITS));
	g->low[h] = _mm512_mask_slli_epi16(low, small, word, 4);
}

/* Values with the literals of escapes in their places. */
ALIAS_INLINE __m512i alias_literals(struct alias_groups *g, __m512i value)
{
	const __mmask32 escaped = _mm512_cmpeq_epi16_mask(value, g->marker);

	if (g->many || __builtin_expect(escaped, 0)) {
		value = expand_words(value, escaped, g->literal);
		g->literal += 2 * _mm_popcnt_u32(escaped);
	}
	return value;
}

/* One vector's worth of a raw field's bits below `above`. */
ALIAS_INLINE __m512i alias_field(struct alias_groups *g, const unsigned f, __m512i above, unsigned nbytes)
{
	const __m512i bits = _mm512_multishift_epi64_epi8(g->shift[f], _mm512_permutexvar_epi8(g->spread[f], _mm512_loadu_si512(g->raw[f])));

	g->raw[f] += nbytes;
	return _mm512_ternarylogic_epi64(above, bits, g->field_mask[f], 0xf8);
}

/* 32 words of more than a byte, from their values. */
ALIAS_INLINE void alias_emit(struct alias_groups *g, const struct kn_args *a, const enum alias_shape shape, __m512i value, uint8_t *dst)
{
	switch (shape) {
	case ALIAS_WORDS: _mm512_storeu_si512(dst, value); return;
	case ALIAS_OUT16_2: value = alias_field(g, 1, value, 4u * a->field[1].width); /* fall through */
	case ALIAS_OUT16: _mm512_storeu_si512(dst, alias_field(g, 0, value, 4u * a->field[0].width)); return;
	case ALIAS_OUT32: {
		const __m512i line = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
		const __m512i low = _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, line, value);
		const __m512i high = _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_add_epi16(line, _mm512_set1_epi16(16)), value);
		_mm512_storeu_si512(dst, alias_field(g, 0, low, 2u * a->field[0].width));
		_mm512_storeu_si512(dst + 64, alias_field(g, 0, high, 2u * a->field[0].width));
		return;
	}
	default: return;
	}
}

/* Whether words are bytes; their values have no more than 8 bits either. */
ALIAS_INLINE bool alias_is_bytes(const enum alias_shape shape) { return shape == ALIAS_BYTES || shape == ALIAS_OUT8; }

/* 64 words of a byte each. */
ALIAS_INLINE void alias_emit_bytes(struct alias_groups *g, const struct kn_args *a, const enum alias_shape shape, __m512i value, uint8_t *dst)
{
	_mm512_storeu_si512(dst, shape == ALIAS_OUT8 ? alias_field(g, 0, value, 8u * a->field[0].width) : value);
}

/* Bytes of a word that is stored. */
ALIAS_INLINE unsigned alias_out_nbytes(const enum alias_shape shape)
{
	return alias_is_bytes(shape) ? 1 : shape == ALIAS_OUT32 ? 4 : 2;
}

/* Quarter h of a group, or, where words are bytes, every second time two. */
ALIAS_INLINE void alias_emit_either(struct alias_groups *g, const struct kn_args *a, const enum alias_shape shape, const __m512i *values, unsigned h, uint8_t *dst)
{
	if (!alias_is_bytes(shape))
		alias_emit(g, a, shape, values[h], dst + 32 * h * alias_out_nbytes(shape));
	else if (h % 2)
		alias_emit_bytes(g, a, shape, _mm512_permutex2var_epi8(values[h - 1], even_bytes(), values[h]), dst + 32 * (h - 1));
}

/* 128 words by tables of words: both symbols of a bucket are looked up at once. */
ALIAS_INLINE void alias_words128(struct alias_groups *g, const struct kn_args *a, struct alias_regs *regs, const uint8_t *column, const enum alias_shape shape,
				 const unsigned entries, const unsigned shift, uint8_t *dst)
{
	__m512i values[4];

#pragma GCC unroll 4
	for (unsigned h = 0; h < 4; h++) {
		const __m512i low = g->low[h];
		__m512i bucket = _mm512_srl_epi16(low, _mm_cvtsi32_si128((int)shift));
		if (column)
			bucket = _mm512_or_si512(bucket, _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(column + 32 * h))));
		const __mmask32 alias = _mm512_cmpge_epu16_mask(low, lookup_words(regs->limit, bucket, entries));
		const __m512i freq = lookup_either(regs->freq, alias, bucket, entries), value = lookup_either(regs->value, alias, bucket, entries);
		alias_next(g, h, freq, _mm512_mask_add_epi16(_mm512_and_si512(low, g->position_mask), alias, low, lookup_words(regs->add, bucket, entries)));
		values[h] = g->escapes ? alias_literals(g, value) : value;
		alias_emit_either(g, a, shape, values, h, dst);
	}
}

/* The same by tables that take two permutes a lookup: there it is quicker to know the symbol first. */
ALIAS_INLINE void alias_symbols128(struct alias_groups *g, const struct kn_args *a, const struct alias_regs *regs, const uint8_t *column,
				   const enum alias_shape shape, const unsigned entries, const unsigned shift, uint8_t *dst)
{
	const __m128i down = _mm_cvtsi32_si128((int)shift);
	__m512i values[4];

#pragma GCC unroll 4
	for (unsigned h = 0; h < 4; h++) {
		const __m512i low = g->low[h], class = column ? _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(column + 32 * h))) : _mm512_setzero_si512();
		const __m512i bucket = _mm512_or_si512(_mm512_srl_epi16(low, down), class), limit = lookup_words(regs->limit, bucket, entries);
		const __m512i position = _mm512_and_si512(low, g->position_mask);
		const __mmask32 alias = _mm512_cmpge_epu16_mask(position, _mm512_and_si512(limit, g->position_mask));
		const __m512i symbol = _mm512_or_si512(_mm512_srl_epi16(_mm512_mask_mov_epi16(low, alias, limit), down), class);
		const __m512i value = lookup_words(regs->value[1], symbol, entries);
		alias_next(g, h, lookup_words(regs->freq[1], symbol, entries),
			   _mm512_mask_add_epi16(position, alias, low, lookup_words(regs->add, bucket, entries)));
		values[h] = g->escapes ? alias_literals(g, value) : value;
		alias_emit_either(g, a, shape, values, h, dst);
	}
}

/* Words from planes of low and of high bytes: h = 0: the first 32, 1: the others. */
ALIAS_INLINE __m512i join_planes(const __m512i plane[2], unsigned h)
{
	return h ? _mm512_unpackhi_epi8(plane[0], plane[1]) : _mm512_unpacklo_epi8(plane[0], plane[1]);
}

/* 128 words by planes of bytes, 64 at a time. Bytes stand as packing leaves them, which works within quarters of a register; unpacking takes that back. */
ALIAS_INLINE void alias_planes128(struct alias_groups *g, const struct kn_args *a, const struct alias_regs *regs, const uint8_t *column,
				  const enum alias_shape shape, const unsigned entries, const unsigned shift, uint8_t *dst)
{
	const struct kn_alias_rows *rows = regs->rows;
	const __m512i packed = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), natural = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
	const __m128i down = _mm_cvtsi32_si128((int)shift);

#pragma GCC unroll 2
	for (unsigned q = 0; q < 4; q += 2) {
		__m512i bucket = _mm512_packus_epi16(_mm512_srl_epi16(g->low[q], down), _mm512_srl_epi16(g->low[q + 1], down)), other[2];
		if (column)
			bucket = _mm512_or_si512(bucket, _mm512_permutexvar_epi64(packed, _mm512_loadu_si512(column + 32 * q)));
		const __mmask64 upper = _mm512_movepi8_mask(bucket);
		const __m512i limit[2] = { lookup_plane(rows->limit_plane[0], bucket, upper, entries), lookup_plane(rows->limit_plane[1], bucket, upper, entries) };
		const __m512i add[2] = { lookup_plane(rows->add_plane[0], bucket, upper, entries), lookup_plane(rows->add_plane[1], bucket, upper, entries) };
		__mmask32 alias[2];
		for (unsigned h = 0; h < 2; h++) {
			alias[h] = _mm512_cmpge_epu16_mask(g->low[q + h], join_planes(limit, h));
			other[h] = _mm512_movm_epi16(alias[h]);
		}
		const __m512i symbol = _mm512_ternarylogic_epi64(_mm512_packs_epi16(other[0], other[1]), lookup_plane(rows->alias, bucket, upper, entries), bucket, 0xca);
		const __mmask64 above = _mm512_movepi8_mask(symbol);
		const __m512i freq[2] = { lookup_plane(rows->freq_plane[0], symbol, above, entries), lookup_plane(rows->freq_plane[1], symbol, above, entries) };
		__m512i value[2] = { lookup_plane(regs->plane[0], symbol, above, entries), _mm512_setzero_si512() };
		if (!alias_is_bytes(shape) || g->escapes)
			value[1] = lookup_plane(regs->plane[1], symbol, above, entries);
		for (unsigned h = 0; h < 2; h++) {
			const __m512i low = g->low[q + h];
			alias_next(g, q + h, join_planes(freq, h),
				   _mm512_mask_add_epi16(_mm512_and_si512(low, g->position_mask), alias[h], low, join_planes(add, h)));
		}
		if (alias_is_bytes(shape)) {
			__m512i bytes = _mm512_permutexvar_epi64(natural, value[0]);
			if (g->escapes) { /* the marker's high byte is all ones, that of other values 0 */
				const __mmask64 escaped = _mm512_movepi8_mask(_mm512_permutexvar_epi64(natural, value[1]));
				__m512i literals = _mm512_loadu_si512(g->literal);
				__asm__("" : "+v"(literals));
				bytes = _mm512_mask_expand_epi8(bytes, escaped, literals);
				g->literal += _mm_popcnt_u64(escaped);
			}
			alias_emit_bytes(g, a, shape, bytes, dst + 32 * q);
			continue;
		}
		for (unsigned h = 0; h < 2; h++) {
			const __m512i words = join_planes(value, h);
			alias_emit(g, a, shape, g->escapes ? alias_literals(g, words) : words, dst + 32 * (q + h) * alias_out_nbytes(shape));
		}
	}
}

/* Whole groups, `groups` of them from word i on. False if the item ends too early. */
ALIAS_INLINE bool alias_groups(struct alias_run *run, const struct kn_args *a, const struct alias_join *join, size_t i, size_t groups, uint8_t *dst,
			       const enum alias_shape shape, const unsigned entries, const bool columns)
{
	enum { MANY = 128 };            /* words to a literal, below which a branch is mispredicted too often */
	const struct kn_alias *t = &a->table->alias;
	const unsigned lift = shape > ALIAS_WORDS ? join->lift : 0, size = (t->width + 7) / 8, shift = 16u - t->log2_nb;
	const bool bytes = alias_is_bytes(shape) && entries > 64, rows = a->row_class && t->kr > 1;
	struct alias_groups g;
	struct alias_regs regs;

	for (unsigned h = 0; h < 4; h++)
		g.low[h] = _mm512_loadu_si512(run->low + 32 * h), g.high[h] = _mm512_loadu_si512(run->high + 32 * h);
	g.at = run->at, g.escapes = t->has_escape, g.many = run->nliterals > groups * ALIAS_LANES / MANY;
	g.literal = a->scratch;
	for (size_t k = 0; k < run->nliterals; k++)
		if (bytes)
			a->scratch[k] = (uint8_t)(run->literal[k] << lift);
		else
			store_u16(a->scratch + 2 * k, (uint16_t)(get_word(run->literal, size, k) << lift));
	g.marker = _mm512_set1_epi16(lift ? -1 : (short)t->marker);
	g.position_mask = _mm512_set1_epi16((short)((1u << shift) - 16));
	for (unsigned f = 0; f < (shape > ALIAS_WORDS ? a->nfield : 0u); f++) {
		g.raw[f] = a->field[f].pay + i * a->field[f].width / 8;
		g.spread[f] = _mm512_loadu_si512(join->spread[f]), g.shift[f] = _mm512_loadu_si512(join->shift[f]);
		g.field_mask[f] = _mm512_loadu_si512(join->mask[f]);
	}
	const struct kn_alias_rows *now = &t->row[rows && groups ? a->row_class[run->walk.row] : 0];
	alias_load(&regs, now, entries, t->marker, lift);
	for (; groups; groups--, dst += ALIAS_LANES * alias_out_nbytes(shape), class_walk_step(&run->walk)) {
		const struct kn_alias_rows *row = &t->row[rows ? a->row_class[run->walk.row] : 0];
		const uint8_t *column = columns ? a->col_class + run->walk.column : NULL;
		if (g.at > run->end)
			return false;
		if (row != now)
			alias_load(&regs, now = row, entries, t->marker, lift);
		if (entries > 32 && entries <= 64)
			alias_symbols128(&g, a, &regs, column, shape, entries, shift, dst);
		else if (entries <= 64)
			alias_words128(&g, a, &regs, column, shape, entries, shift, dst);
		else
			alias_planes128(&g, a, &regs, column, shape, entries, shift, dst);
	}
	for (unsigned h = 0; h < 4; h++)
		_mm512_storeu_si512(run->low + 32 * h, g.low[h]), _mm512_storeu_si512(run->high + 32 * h, g.high[h]);
	run->at = g.at;
	const size_t used = (size_t)(g.literal - a->scratch) / (bytes ? 1 : 2);
	if (used > run->nliterals)
		return false;
	run->literal += used * size, run->nliterals -= used;
	return true;
}

/* An instance for each shape, number of entries and whether there are column classes. */
typedef bool alias_groups_fn(struct alias_run *run, const struct kn_args *a, const struct alias_join *join, size_t i, size_t groups, uint8_t *dst);
#define ALIAS_SHAPE(I) ALIAS_ENTRIES(I, ALIAS_BYTES) ALIAS_ENTRIES(I, ALIAS_WORDS) ALIAS_ENTRIES(I, ALIAS_OUT8) ALIAS_ENTRIES(I, ALIAS_OUT16) \
	ALIAS_ENTRIES(I, ALIAS_OUT16_2) ALIAS_ENTRIES(I, ALIAS_OUT32)
#define ALIAS_ENTRIES(I, shape) I(shape, 32, 0) I(shape, 32, 1) I(shape, 64, 0) I(shape, 64, 1) I(shape, 128, 0) I(shape, 128, 1) I(shape, 256, 0) I(shape, 256, 1)
#define ALIAS_DEFINE(shape, entries, columns)                                                                                                                \
	static __attribute__((noinline)) bool groups_##shape##_##entries##_##columns(struct alias_run *run, const struct kn_args *a,                          \
										      const struct alias_join *join, size_t i, size_t groups, uint8_t *dst)   \
	{                                                                                                                                                     \
		return alias_groups(run, a, join, i, groups, dst, shape, entries, columns);                                                                   \
	}
ALIAS_SHAPE(ALIAS_DEFINE)
#define ALIAS_CELL(shape, entries, columns) [shape][(entries) > 128 ? 3 : (entries) > 64 ? 2 : (entries) > 32][columns] = groups_##shape##_##entries##_##columns,
static alias_groups_fn *const alias_groups_of[ALIAS_SHAPES][4][2] = { ALIAS_SHAPE(ALIAS_CELL) };

static alias_groups_fn *alias_instance(const struct kn_args *a, enum alias_shape shape)
{
	const struct kn_alias *t = &a->table->alias;
	const unsigned entries = (unsigned)t->kc << t->log2_nb;
	return alias_groups_of[shape][entries > 128 ? 3 : entries > 64 ? 2 : entries > 32][a->col_class && t->kc > 1];
}

static bool vector_alias(const struct kn_args *a)
{
	const enum alias_shape shape = a->width <= 8 ? ALIAS_BYTES : ALIAS_WORDS;
	const size_t whole = a->n / ALIAS_LANES * ALIAS_LANES;
	uint8_t *const rest = (uint8_t *)a->dst + whole * word_nbytes(a->width);
	struct alias_run run;

	return alias_start(&run, a) && alias_instance(a, shape)(&run, a, NULL, 0, whole / ALIAS_LANES, a->dst) &&
	       alias_words(&run, a, a->n - whole, rest, word_nbytes(a->width)) && alias_rest(&run, a->carry);
}

/* A fused call of a shape of alias_shape_of(). */
static bool vector_alias_merge(const struct kn_args *a, enum alias_shape shape, const struct alias_join *join)
{
	const size_t waiting = fields_waiting(a), whole = (a->n - waiting) / ALIAS_LANES * ALIAS_LANES;
	struct alias_run run;
	uint16_t value[FIELD_WAITING];

	if (!alias_start(&run, a) || !alias_instance(a, shape)(&run, a, join, 0, waiting / ALIAS_LANES, a->dst) ||
	    !alias_instance(a, ALIAS_WORDS)(&run, a, NULL, waiting, whole / ALIAS_LANES, (uint8_t *)value) ||
	    !alias_words(&run, a, a->n - waiting - whole, (uint8_t *)(value + whole), 2) || !alias_rest(&run, a->carry))
		return false;
	fields_join_waiting(a, waiting, value, 2, 0, a->carry);
	return true;
}

#endif

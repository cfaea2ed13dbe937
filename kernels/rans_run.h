/* rans_run.h: a whole lit.rans register, fused or not, in any vector set: what is around the groups of 128 words.
 *
 * The including file has included a backend before (kernels/x86/rans_avx512.h and its like), which brings struct rans_run, struct
 * rans_regs, run_load(), run_store(), load_rows(), group128() (or, with RANS_OWN_GROUPS, groups128() and groups_flush()) and emit_symbols(). This file handles rows,
 * bounds, the last words and the carry.
 *
 * Bounds: a group takes at most 128 bytes and may read 64 more, so it may start while the position is not beyond the end of the item: the
 * pad behind it covers the rest. Groups are run in batches that need no look at the position. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_RANS_RUN_H
#define KERNELS_RANS_RUN_H

#include "kernels/rans_shape.h"

/* One step of one lane, for the last words: the definition of docs/FORMAT.md, 5.3. */
static inline uint8_t step1(const unsigned log2_nb, uint8_t *lo, uint8_t *hi, const struct kn_rans_rows *rows, unsigned column,
			    const uint8_t *map, unsigned escape_index, const uint8_t **at, const uint8_t **escape)
{
	const unsigned b = *lo >> (8 - log2_nb) | column;
	const bool own = *lo < rows->threshold[b];
	const unsigned j = own ? b : rows->alias[b], rank = own ? *lo & ((256u >> log2_nb) - 1) : (*lo + rows->before[b]) & 255u;
	uint32_t x = (uint32_t)rows->freq[j] * *hi + rank;

	if (x < 256)
		x = x << 8 | *(*at)++;
	*lo = (uint8_t)x, *hi = (uint8_t)(x >> 8);
	return (j & ((1u << log2_nb) - 1)) == escape_index ? *(*escape)++ : map[j & 63];
}

/* Fills in the map, and the marker. */
static inline void rans_map(struct rans_consts *consts, const struct kn_rans *t, uint8_t add, unsigned coded)
{
	const unsigned nb = 1u << t->log2_nb;
	bool used[256] = { false };

	for (unsigned i = 0; i < 64; i++) {
		consts->map[i] = (uint8_t)(t->map[i] + add) & (uint8_t)mask_bits(MIN(coded, 8u));
		used[consts->map[i]] = true;
	}
	for (consts->marker = 0; used[consts->marker];)
		consts->marker++;
	for (unsigned i = t->escape; i < 64; i += nb)
		consts->map[i] = consts->marker;
}

/* The highest byte that any word can have; a base of at most 256 fits any. */
static inline unsigned rans_highest(const struct rans_consts *consts, const struct kn_rans *t, const uint8_t *escape, size_t nescapes)
{
	uint8_t highest = 0;

	if (consts->base <= 256)
		return 0;
	for (unsigned j = 0; j < 1u << t->log2_nb; j++)
		highest = j == t->escape ? highest : MAX(highest, consts->map[j]);
	for (size_t i = 0; i < nescapes; i++)
		highest = MAX(highest, escape[i]);
	return highest;
}

enum { RANS_TAIL_WORDS = 1280 };        /* at least 1024 (128 bytes of 1-bit fields) and two groups */

/* The words of the last groups: their raw bits may be in the carry, so that they wait for the final states. */
struct rans_tail {
	size_t first, n;                /* first is a multiple of 128 */
	uint8_t symbol[RANS_TAIL_WORDS + 64];
	uint8_t raw[2][RANS_TAIL_WORDS * 4 + 64];
	uint8_t word[RANS_TAIL_WORDS * 4 + 256];
};

RANS_INLINE void finish_tail(const struct kn_args *a, const enum rans_shape shape, struct rans_tail *tail, const uint8_t *carry,
			     const struct rans_consts *consts)
{
	struct rans_raw raw = { { tail->raw[0], tail->raw[1] } };

	for (unsigned f = 0; f < 2 && rans_shape_of[shape].raw[f]; f++) {
		const struct kn_field *field = &a->field[f];
		const size_t from = tail->first * field->width / 8, to = packed_nbytes(a->n, field->width);
		const size_t stored = field->carried ? to - BC_CARRY_NBYTES : to;
		if (stored > from)
			memcpy(tail->raw[f], field->pay + from, stored - from);
		if (field->carried) /* the tail begins at or before the first carried byte */
			memcpy(tail->raw[f] + (stored - from), carry, BC_CARRY_NBYTES);
	}
	emit_symbols(shape, tail->symbol, (tail->n + 63) / 64 * 64, &raw, consts, tail->word);
}

/* The first group whose raw fields are not all in the payload. */
RANS_INLINE size_t tail_first(const struct kn_args *a, const enum rans_shape shape)
{
	size_t first = a->n / RANS_LANES * RANS_LANES;

	for (unsigned f = 0; f < 2 && rans_shape_of[shape].raw[f]; f++)
		if (a->field[f].carried)
			first = MIN(first, (packed_nbytes(a->n, a->field[f].width) - BC_CARRY_NBYTES) * 8 / a->field[f].width / RANS_LANES * RANS_LANES);
	return first;
}

#ifndef RANS_OWN_GROUPS
/* Some groups, one after the other. */
RANS_INLINE void groups128(const enum rans_shape shape, const unsigned log2_nb, const unsigned kc, struct rans_run *run, const struct rans_regs *regs,
			   const uint8_t *column, const struct rans_consts *consts, struct rans_raw *raw, size_t groups, uint8_t *dst, uint8_t *symbol)
{
	const unsigned size = word_nbytes(rans_shape_of[shape].width);

	for (size_t g = 0; g < groups; g++, column += kc > 1 ? RANS_LANES : 0)
		group128(shape, log2_nb, kc, run, regs, column, consts, raw, dst ? dst + g * RANS_LANES * size : NULL, symbol + g * RANS_LANES);
}

RANS_INLINE void groups_flush(const enum rans_shape shape, struct rans_run *run, const struct rans_consts *consts, struct rans_raw *raw)
{
	(void)shape, (void)run, (void)consts, (void)raw;
}
#endif

/* A whole register. dst is written in words of the shape. Everything constant is folded: one instance for each nb, kc and shape. */
RANS_INLINE bool rans_run_all(const struct kn_args *a, const enum rans_shape shape, const unsigned log2_nb, const unsigned kc)
{
	const struct kn_rans *t = &a->table->rans;
	const unsigned size = word_nbytes(rans_shape_of[shape].width);
	const unsigned coded = a->coded_width ? a->coded_width : a->width, below = a->coded_width ? a->width - a->coded_width : 0;
	const uint8_t add = coded <= 8 ? (uint8_t)t->base : 0;
	struct rans_item item;
	struct rans_tail tail; /* large: only what is used of it is written */
	struct rans_raw raw = { { NULL, NULL } };
	struct rans_run run;
	struct rans_regs regs;
	uint8_t low[RANS_LANES], high[RANS_LANES], carry[BC_CARRY_NBYTES];

	if (!rans_item_parse(a->pay, a->pay_nbytes, a->n, &item) || !rans_item_escapes(&item, t, add, a->scratch))
		return false;
	for (unsigned f = 0; f < 2 && rans_shape_of[shape].raw[f]; f++)
		raw.at[f] = a->field[f].pay;
	tail.first = tail_first(a, shape), tail.n = a->n - tail.first;
	struct rans_consts consts = { .escape = t->escape, .base = coded > 8 ? t->base : 0 };
	rans_map(&consts, t, add, coded);
#ifdef RANS_ADDS_IN_PLACE
	if (rans_shape_of[shape].raw[0] == 7 && consts.base + rans_highest(&consts, t, a->scratch, item.nescapes) > 511)
		return plain_rans_merge(a);
#endif
	run_load(&run, item.states);
	run.at = item.renorm, run.escape = a->scratch;

	/* Into a block that stays in the first-level cache, if there is a drain and no patches, which come behind everything. */
	uint8_t block[KN_DRAIN_NBYTES] __attribute__((aligned(64)));
	struct kn_drain *const drain = item.npatches ? NULL : a->drain;
	const size_t block_words = drain ? KN_DRAIN_NBYTES / size : SIZE_MAX;
	size_t block_at = 0;
	const size_t whole = a->n / RANS_LANES * RANS_LANES;
	const uint8_t *const escape_end = a->scratch + a->n;
	size_t row_left = 0, column = 0, i = 0;
	unsigned row_now = 0;
	const size_t row_words = a->row_class || a->col_class ? a->row_words : a->n + 1;
	size_t row = a->row_class || a->col_class ? a->first / row_words : 0;
	column = a->row_class || a->col_class ? a->first % row_words : 0;
	row_left = row_words - column;
	uint8_t *const dst = drain ? block : a->dst;

	load_rows(&regs, &t->row[0], log2_nb, kc, &consts);
	while (i < whole) {
		/* Groups of this row that need no look at the end of the item, and do not cross into the tail. */
		if (run.at > item.end || run.escape > escape_end)
			return false;
		size_t groups = MIN((size_t)(item.end - run.at) / RANS_LANES + 1, (row_left + RANS_LANES - 1) / RANS_LANES);
		const bool in_tail = i >= tail.first;
		groups = MIN(groups, ((in_tail ? whole : MIN(tail.first, block_at + block_words)) - i) / RANS_LANES);
		if (a->row_class && t->kr > 1 && a->row_class[row] != row_now) {
			row_now = a->row_class[row];
			load_rows(&regs, &t->row[row_now], log2_nb, kc, &consts);
		}
		groups128(shape, log2_nb, kc, &run, &regs, kc > 1 ? a->col_class + column : NULL, &consts, &raw, groups, in_tail ? NULL : dst + (i - block_at) * size,
			  tail.symbol + (in_tail ? i - tail.first : 0));
		i += groups * RANS_LANES, column += groups * RANS_LANES;
		for (; column >= row_words; column -= row_words)
			row++;
		row_left = row_words - column;
		if (drain && !in_tail && (i == tail.first || i == block_at + block_words)) {
			groups_flush(shape, &run, &consts, &raw);
			drain->put(drain, block, (i - block_at) * size);
			block_at = i;
		}
	}
	groups_flush(shape, &run, &consts, &raw);
	run_store(&run, low, high);
	if (run.at > item.end || run.escape > escape_end)
		return false;
	const struct kn_rans_rows *rows = &t->row[a->row_class && t->kr > 1 && i < a->n ? a->row_class[row] : 0];
	for (unsigned k = 0; i < a->n; i++, k++)
		tail.symbol[i - tail.first] = step1(log2_nb, &low[k], &high[k], rows, kc > 1 ? a->col_class[column + k] : 0, consts.map, t->escape, &run.at,
						    &run.escape);
	const bool good = run.at == item.end && run.escape == a->scratch + item.nescapes && rans_final(low, high, a->carry ? carry : NULL);
	finish_tail(a, shape, &tail, carry, &consts);
	if (drain && tail.n)
		drain->put(drain, tail.word, tail.n * size);
	if (!drain)
		memcpy((uint8_t *)a->dst + tail.first * size, tail.word, tail.n * size);
	if (a->carry)
		memcpy(a->carry, carry, BC_CARRY_NBYTES);
	return good && rans_item_patch(&item, a->dst, a->n, a->width, coded, below, a->rotate);
}

#endif

/* op_rans.c: lit.rans, and its merge with raw fields (docs/FORMAT.md, 5.3).
 *
 * The plain body below is the reference of every set. Sets with vectors bring a backend; kernels/rans_run.h is what is
 * around it. Shapes without a vector body of their own are decoded to bytes in blocks and merged by the plain loop.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/fields.h"
#include "kernels/rans_item.h"

#if defined(KN_SET_avx512)
#include "kernels/x86/rans_avx512.h"
#define HAVE_VECTORS 1
#endif
#ifdef HAVE_VECTORS
#include "kernels/rans_run.h"
#endif

/* Position of the low byte -> freq << 24 | rank << 8 | symbol index, of all columns of one row class: a scalar loop wants one lookup. */
struct flat_rows {
	uint32_t entry[KN_MAX_COLS << 8];
};

static void flatten(const struct kn_rans *t, unsigned row, struct flat_rows *flat)
{
	const struct kn_rans_rows *rows = &t->row[row];
	const unsigned nb = 1u << t->log2_nb, log2_c = 8 - t->log2_nb;

	for (unsigned c = 0; c < t->kc; c++)
		for (unsigned lo = 0; lo < 256; lo++) {
			const unsigned b = c * nb + (lo >> log2_c);
			const bool own = lo < rows->threshold[b];
			const unsigned j = own ? b : rows->alias[b], rank = own ? lo & ((1u << log2_c) - 1) : (lo + rows->before[b]) & 255;
			flat->entry[c << 8 | lo] = (uint32_t)rows->freq[j] << 24 | rank << 8 | (j & (nb - 1));
		}
}

/* Decodes words in order, a block at a time. */
struct plain_run {
	const struct kn_args *args;
	const struct kn_rans *table;
	struct rans_item item;
	struct flat_rows flat;
	uint32_t state[RANS_LANES];
	const uint8_t *at;
	size_t i, escapes;
	unsigned row_now;
};

static bool plain_start(struct plain_run *run, const struct kn_args *args)
{
	const struct kn_rans *t = &args->table->rans;

	*run = (struct plain_run){ .args = args, .table = t, .row_now = 256 };
	if (!rans_item_parse(args->pay, args->pay_nbytes, args->n, &run->item) ||
	    !rans_item_escapes(&run->item, t, 0, args->n, args->scratch))
		return false;
	for (unsigned k = 0; k < RANS_LANES; k++)
		run->state[k] = run->item.states[k] | (uint32_t)run->item.states[RANS_LANES + k] << 8;
	run->at = run->item.renorm;
	return true;
}

/* The next group of at most 128 words: coded fields without base. False if the item ends too early or has too few escapes. */
static bool plain_group(struct plain_run *run, size_t n, uint8_t symbol[RANS_LANES])
{
	const struct kn_args *a = run->args;
	const struct kn_rans *t = run->table;
	const size_t at = a->first + run->i;
	const bool cols = a->col_class && t->kc > 1, rows = a->row_class && t->kr > 1;
	const unsigned row = rows ? a->row_class[at / a->row_words] : 0;
	const uint8_t *column = cols ? a->col_class + at % a->row_words : NULL;

	if (run->at > run->item.end)
		return false;
	if (row != run->row_now)
		flatten(t, row, &run->flat), run->row_now = row;
	for (size_t k = 0; k < n; k++) {
		const unsigned class_at = cols ? (unsigned)column[k] >> t->log2_nb << 8 : 0;
		const uint32_t e = run->flat.entry[class_at | (run->state[k] & 255)];
		uint32_t x = (e >> 24) * (run->state[k] >> 8) + (e >> 8 & 255);
		const uint32_t small = x < 256;
		x = x << (8 * small) | (*run->at & (0 - small));
		run->at += small;
		run->state[k] = x;
		const unsigned j = e & 63;
		symbol[k] = t->map[j];
		if (j == t->escape) {
			if (run->escapes == run->item.nescapes)
				return false;
			symbol[k] = a->scratch[run->escapes++];
		}
	}
	run->i += n;
	return true;
}

static bool plain_end(struct plain_run *run)
{
	uint8_t low[RANS_LANES], high[RANS_LANES];

	for (unsigned k = 0; k < RANS_LANES; k++)
		low[k] = (uint8_t)run->state[k], high[k] = (uint8_t)(run->state[k] >> 8);
	return run->at == run->item.end && run->escapes == run->item.nescapes && rans_final(low, high, run->args->carry);
}

static bool plain_rans(const struct kn_args *args)
{
	struct plain_run run;
	uint8_t symbol[RANS_LANES];
	const uint32_t mask = (uint32_t)mask_bits(args->width), base = args->table->rans.base;

	if (!plain_start(&run, args))
		return false;
	while (run.i < args->n) {
		const size_t at = run.i, n = MIN(args->n - at, (size_t)RANS_LANES);
		if (!plain_group(&run, n, symbol))
			return false;
		if (args->width <= 8)
			for (size_t k = 0; k < n; k++)
				((uint8_t *)args->dst)[at + k] = (uint8_t)((symbol[k] + base) & mask);
		else
			for (size_t k = 0; k < n; k++)
				((uint16_t *)args->dst)[at + k] = (uint16_t)((symbol[k] + base) & mask);
	}
	return plain_end(&run) && rans_item_patch(&run.item, args->dst, args->n, args->width, args->width, 0, 0);
}

/* The hot shapes as plain loops over one group; false if this is none. */
static bool merge_group(const struct kn_args *a, const uint8_t *symbol, uint32_t base, size_t at, size_t n)
{
	const uint8_t *raw = a->field[0].pay;
	const bool carried = a->field[0].carried;

	if (a->nfield != 1 || (carried && (at + n) * a->field[0].width / 8 + 8 > a->field[0].pay_nbytes))
		return false;
	if (a->width == 16 && a->field[0].width == 8 && a->rotate == 1) {
		uint16_t *dst = (uint16_t *)a->dst + at;
		for (size_t k = 0; k < n; k++) {
			const uint32_t v = (symbol[k] + base) << 8 | raw[at + k];
			dst[k] = (uint16_t)(v >> 1 | v << 15);
		}
		return true;
	}
	if (a->width == 16 && a->field[0].width == 7 && a->rotate == 1 && n % 8 == 0) {
		uint16_t *dst = (uint16_t *)a->dst + at;
		for (size_t k = 0; k < n; k += 8) {
			const uint64_t packed = load_u64(raw + (at + k) * 7 / 8);
			for (unsigned b = 0; b < 8; b++) {
				const uint32_t v = (symbol[k + b] + base) << 7 | (packed >> (7 * b) & 127);
				dst[k + b] = (uint16_t)((v & 0xffff) >> 1 | v << 15);
			}
		}
		return true;
	}
	if (a->width == 32 && a->field[0].width == 24 && a->rotate == 1) {
		uint32_t *dst = (uint32_t *)a->dst + at;
		for (size_t k = 0; k < n; k++) {
			const uint32_t v = (symbol[k] + base) << 24 | (load_u32(raw + 3 * (at + k)) & 0xffffff);
			dst[k] = v >> 1 | v << 31;
		}
		return true;
	}
	return false;
}

static bool plain_rans_merge(const struct kn_args *args)
{
	struct plain_run run;
	uint8_t symbol[RANS_LANES], carry[BC_CARRY_NBYTES];
	const unsigned size = word_nbytes(args->width), below = args->width - args->coded_width;
	const uint64_t mask = mask_bits(args->coded_width), base = args->table->rans.base;
	struct kn_args own = *args;
	size_t waiting = args->n; /* words from here on wait for the carry */

	own.carry = args->carry ? carry : NULL;
	if (!plain_start(&run, &own))
		return false;
	while (run.i < args->n) {
		const size_t at = run.i, n = MIN(args->n - at, (size_t)RANS_LANES);
		if (!plain_group(&run, n, symbol))
			return false;
		if (waiting == args->n && merge_group(args, symbol, (uint32_t)base, at, n))
			continue;
		for (size_t k = 0; k < n; k++)
			set_word(args->dst, size, at + k, ((symbol[k] + base) & mask) << below);
		waiting = MIN(waiting, at);
	}
	if (!plain_end(&run))
		return false;
	kn_merge_fields(args, carry, waiting, args->n);
	if (args->carry)
		memcpy(args->carry, carry, BC_CARRY_NBYTES);
	return rans_item_patch(&run.item, args->dst, args->n, args->width, args->coded_width, below, args->rotate);
}

#ifdef HAVE_VECTORS
/* Instances of the vector body: RUN(log2_nb, kc) for one shape. NULL: none, the plain body serves. */
#define INSTANCE(shape, log2_nb, kc) \
	static bool run_##shape##_##log2_nb##_##kc(const struct kn_args *a) { return rans_run_all(a, SHAPE_##shape, log2_nb, kc); }
#define INSTANCES(shape)                                                                                        \
	INSTANCE(shape, 4, 1) INSTANCE(shape, 4, 2) INSTANCE(shape, 4, 4) INSTANCE(shape, 5, 1) INSTANCE(shape, 5, 2) INSTANCE(shape, 5, 4) \
	INSTANCE(shape, 6, 1) INSTANCE(shape, 6, 2) INSTANCE(shape, 6, 4)
#define ROW(shape)                                                                                              \
	[SHAPE_##shape] = { { run_##shape##_4_1, run_##shape##_4_2, run_##shape##_4_4 },                         \
			    { run_##shape##_5_1, run_##shape##_5_2, run_##shape##_5_4 },                         \
			    { run_##shape##_6_1, run_##shape##_6_2, run_##shape##_6_4 } },
#define SHAPES(X) X(BYTES) X(8_8_ROT) X(7_9_ROT) X(8_2_6) X(8_1_7) X(24_8_ROT) X(23_9_ROT) X(2_6) X(3_5)
SHAPES(INSTANCES)
static kn_fn *const run_of[SHAPE_COUNT][3][3] = { SHAPES(ROW) };

static kn_fn *instance(unsigned shape, const struct kn_rans *t) { return run_of[shape][t->log2_nb - 4][t->kc / 2]; }

/* The shape of a fused call, or SHAPE_BYTES: none. */
static unsigned shape_of(const struct kn_args *a)
{
	for (unsigned s = SHAPE_BYTES + 1; s < SHAPE_COUNT; s++) {
		const unsigned nfield = rans_shape_of[s].raw[1] ? 2 : 1;
		if (run_of[s][0][0] && a->width == rans_shape_of[s].width && a->coded_width == rans_shape_of[s].coded && a->rotate == rans_shape_of[s].rotate &&
		    a->nfield == nfield && a->field[0].width == rans_shape_of[s].raw[0] && (nfield == 1 || a->field[1].width == rans_shape_of[s].raw[1]))
			return s;
	}
	return SHAPE_BYTES;
}
#endif

bool KN(rans)(const struct kn_args *args)
{
#ifdef HAVE_VECTORS
	if (args->width <= 8)
		return instance(SHAPE_BYTES, &args->table->rans)(args);
#endif
	return plain_rans(args);
}

bool KN(rans_merge)(const struct kn_args *args)
{
#ifdef HAVE_VECTORS
	const unsigned shape = shape_of(args);
	if (shape != SHAPE_BYTES)
		return instance(shape, &args->table->rans)(args);
#endif
	return plain_rans_merge(args);
}

bool KN(can_fuse)(enum kn_id id, const struct kn_args *shape)
{
	if (id == KN_FUSED_WIDE_MERGE)
		return shape->nfield == 1 && shape->width == 16;
#ifdef HAVE_VECTORS
	return shape_of(shape) != SHAPE_BYTES;
#else
	return true;
#endif
}

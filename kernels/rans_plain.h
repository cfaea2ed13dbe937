/* rans_plain.h: lit.rans in plain C, alone or under a merge: the reference of every set, and the body of what has no vectors.
 *
 * Lanes are independent, so one lane's multiply hides behind another's: what counts is the number of instructions a word. One lookup
 * of kn_rans.flat tells frequency, rank and byte; the only branch of a word is that for escapes. A group of 128 words takes at most 128
 * renormalisation bytes: it may start while the position is not beyond the end of the item, and the pad covers the rest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_RANS_PLAIN_H
#define KERNELS_RANS_PLAIN_H

#include "kernels/branchless.h"
#include "kernels/class_walk.h"
#include "kernels/fields.h"
#include "kernels/rans_item.h"

struct plain_run {
	const struct kn_args *args;
	struct rans_item item;
	struct class_walk walk;
	uint16_t state[RANS_LANES];
	const uint8_t *at;              /* renormalisation bytes */
	const uint8_t *escape;          /* next escape's byte */
};

static bool plain_start(struct plain_run *run, const struct kn_args *args)
{
	const struct kn_rans *t = &args->table->rans;

	run->args = args;
	if (!rans_item_parse(args->pay, args->pay_nbytes, args->n, &run->item) ||
	    !rans_item_escapes(&run->item, t, t->width <= 8 ? (uint8_t)t->base : 0, args->scratch))
		return false;
	for (unsigned k = 0; k < RANS_LANES; k++)
		run->state[k] = (uint16_t)(run->item.states[k] | run->item.states[RANS_LANES + k] << 8);
	run->walk = class_walk_start(args);
	run->at = run->item.renorm, run->escape = args->scratch;
	return true;
}

/* One group of n <= 128 words. column: class * nb of each lane, or NULL; << log2_c makes it the index of the class in flat. */
static inline __attribute__((always_inline)) void plain_group(struct plain_run *run, const uint32_t *flat, const uint8_t *column, const unsigned log2_c,
							      const size_t n, uint8_t *symbol)
{
	const uint8_t *at = run->at, *escape = run->escape;

#pragma GCC unroll 4
	for (size_t k = 0; k < n; k++) {
		const uint32_t state = run->state[k], e = flat[(column ? (uint32_t)column[k] << log2_c : 0) + (state & 255)];
		const uint32_t x = (e >> 24) * (state >> 8) + (e >> 8 & 255), more = x << 8 | *at;
		const bool small = x < 256;
		at += small;
		run->state[k] = (uint16_t)choose_u32(small, more, x);
		symbol[k] = (uint8_t)e;
		if (__builtin_expect(e & 1 << 16, 0))
			symbol[k] = *escape++;
	}
	run->at = at, run->escape = escape;
}

/* The next n words' bytes, n a multiple of 128 but at the end. False if the item ends too early. */
static bool plain_words(struct plain_run *run, size_t n, uint8_t *symbol)
{
	const struct kn_args *a = run->args;
	const struct kn_rans *t = &a->table->rans;
	const bool rows = a->row_class && t->kr > 1, cols = a->col_class && t->kc > 1;
	const unsigned log2_c = 8u - t->log2_nb;

	for (size_t i = 0; i < n; i += RANS_LANES, class_walk_step(&run->walk)) {
		const uint32_t *flat = t->flat + (rows ? (size_t)a->row_class[run->walk.row] * t->kc << 8 : 0);
		if (run->at > run->item.end)
			return false;
		if (n - i < RANS_LANES)
			plain_group(run, flat, cols ? a->col_class + run->walk.column : NULL, log2_c, n - i, symbol + i);
		else if (cols)
			plain_group(run, flat, a->col_class + run->walk.column, log2_c, RANS_LANES, symbol + i);
		else
			plain_group(run, flat, NULL, log2_c, RANS_LANES, symbol + i);
	}
	return true;
}

static bool plain_end(struct plain_run *run, uint8_t *carry)
{
	uint8_t low[RANS_LANES], high[RANS_LANES];

	for (unsigned k = 0; k < RANS_LANES; k++)
		low[k] = (uint8_t)run->state[k], high[k] = (uint8_t)(run->state[k] >> 8);
	return run->at == run->item.end && run->escape == run->args->scratch + run->item.nescapes && rans_final(low, high, carry);
}

static bool plain_rans_merge(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width), base = args->coded_width > 8 ? args->table->rans.base : 0;
	const size_t waiting = fields_waiting(args);
	struct plain_run run;
	uint8_t symbol[FIELD_WAITING];

	if (!plain_start(&run, args))
		return false;
	for (size_t i = 0; i < waiting; i += FIELD_BLOCK) {
		const size_t n = MIN(waiting - i, (size_t)FIELD_BLOCK);
		if (!plain_words(&run, n, symbol))
			return false;
		fields_join_stored(args, (uint8_t *)args->dst + i * size, i, symbol, 1, base, n);
	}
	if (!plain_words(&run, args->n - waiting, symbol) || !plain_end(&run, args->carry))
		return false;
	fields_join_waiting(args, waiting, symbol, 1, base, args->carry);
	return rans_item_patch(&run.item, args->dst, args->n, args->width, args->coded_width, args->width - args->coded_width, args->rotate);
}

static bool plain_rans(const struct kn_args *args)
{
	struct plain_run run;

	if (args->width > 8) {
		/* Bytes become words with the base added: a merge without raw fields. */
		struct kn_args alone = *args;
		alone.coded_width = args->width, alone.nfield = alone.rotate = 0;
		return plain_rans_merge(&alone);
	}
	return plain_start(&run, args) && plain_words(&run, args->n, args->dst) && plain_end(&run, args->carry) &&
	       rans_item_patch(&run.item, args->dst, args->n, args->width, args->width, 0, 0);
}

#endif

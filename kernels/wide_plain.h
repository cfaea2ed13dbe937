/* wide_plain.h: lit.wide in plain C, alone or under a merge: the reference of every set.
 *
 * One lookup of 4 bytes a word tells frequency, symbol and rank. Vectors hook in at two places: a set that has gathers defines WIDE_VECTORS,
 * wide_vector_group() for whole groups of 64 words, and wide_vector_join() for what wide_can_join() allows, before it includes this file.
 * A group of 64 words takes at most 128 bytes: it may start while the position is not beyond the end of the item.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_WIDE_PLAIN_H
#define KERNELS_WIDE_PLAIN_H

#include "kernels/branchless.h"
#include "kernels/class_walk.h"
#include "kernels/fields.h"
#include "kernels/wide_item.h"

/* n <= 64 words from lane 0 on, to out as words of `size` bytes. slot: of the row class; column: classes of the lanes, or NULL. */
static inline __attribute__((always_inline)) void wide_group(struct wide_run *run, const struct kn_wide *t, const uint32_t *slot, const uint8_t *column,
							     const size_t n, void *out, const unsigned size)
{
	const unsigned escape = t->has_escape ? t->nsym - 1u : 256;
	const uint8_t *at = run->at;

#pragma GCC unroll 4
	for (size_t k = 0; k < n; k++) {
		const uint32_t state = run->state[k], e = slot[(column ? (uint32_t)column[k] << WIDE_BITS : 0) + (state & ((1u << WIDE_BITS) - 1))];
		const uint32_t x = (e >> 20) * (state >> WIDE_BITS) + (e & 4095), more = x << 16 | load_u16(at);
		const bool small = x < 65536;
		const unsigned j = e >> 12 & 255;
		unsigned value = t->value[j];
		at += 2 * small;
		run->state[k] = choose_u32(small, more, x);
		if (__builtin_expect(j == escape, 0))
			value = wide_literal(&run->literals);
		if (size == 1)
			((uint8_t *)out)[k] = (uint8_t)value;
		else
			store_u16((uint8_t *)out + 2 * k, (uint16_t)value);
	}
	run->at = at;
}

/* The next n words, n a multiple of 128 but at the end. False if the item ends too early. */
static inline bool wide_words(struct wide_run *run, const struct kn_args *a, size_t n, uint8_t *out, unsigned size)
{
	const struct kn_wide *t = &a->table->wide;
	const bool rows = a->row_class && t->kr > 1, cols = a->col_class && t->kc > 1;

	for (size_t i = 0; i < n; i += KN_GROUP, class_walk_step(&run->walk)) {
		const uint32_t *slot = t->slot + (rows ? (size_t)a->row_class[run->walk.row] * t->kc << WIDE_BITS : 0);
		for (size_t at = i; at < MIN(n, i + KN_GROUP); at += WIDE_LANES) {
			const size_t lanes = MIN(n - at, (size_t)WIDE_LANES);
			const uint8_t *column = cols ? a->col_class + run->walk.column + (at - i) : NULL;
			if (run->at > run->end)
				return false;
#ifdef WIDE_VECTORS
			if (lanes == WIDE_LANES && !cols && size == 1)
				wide_vector_group(run, t, slot, NULL, out + at, 1);
			else if (lanes == WIDE_LANES && !cols)
				wide_vector_group(run, t, slot, NULL, out + 2 * at, 2);
			else if (lanes == WIDE_LANES && size == 1)
				wide_vector_group(run, t, slot, column, out + at, 1);
			else if (lanes == WIDE_LANES)
				wide_vector_group(run, t, slot, column, out + 2 * at, 2);
			else
#else
			if (lanes == WIDE_LANES && !cols && size == 1)
				wide_group(run, t, slot, NULL, WIDE_LANES, out + at, 1);
			else if (lanes == WIDE_LANES && !cols)
				wide_group(run, t, slot, NULL, WIDE_LANES, out + 2 * at, 2);
			else
#endif
				wide_group(run, t, slot, column, lanes, out + at * size, size);
		}
	}
	return true;
}

static inline bool wide_rest(const struct wide_run *run, uint8_t *carry)
{
	return run->at == run->end && run->literals.left == 0 && !run->literals.bad && wide_final(run->state, carry);
}

static bool wide_alone(const struct kn_args *args)
{
	struct wide_run run;

	return wide_start(&run, args) && wide_words(&run, args, args->n, args->dst, word_nbytes(args->width)) && wide_rest(&run, args->carry);
}

#ifndef WIDE_VECTORS
struct wide_join { char unused; };
#endif

/* n words from word i on, a multiple of 128, whose raw bits are all in the payload. join: NULL if vectors cannot. */
static inline void wide_join_stored(const struct wide_join *join, const struct kn_args *a, size_t i, const void *value, unsigned value_size, size_t n)
{
	uint8_t *dst = (uint8_t *)a->dst + i * word_nbytes(a->width);

#ifdef WIDE_VECTORS
	if (join) {
		wide_vector_join(join, a, dst, value, value_size, a->field[0].pay + i * a->field[0].width / 8, n);
		return;
	}
#else
	(void)join;
#endif
	fields_join_stored(a, dst, i, value, value_size, 0, n);
}

static bool wide_merged(const struct kn_args *args)
{
	const unsigned coded_size = word_nbytes(args->coded_width);
	const size_t waiting = fields_waiting(args), block = WIDE_BLOCK;
	struct wide_join start, *join = NULL;
	struct wide_run run;
	uint16_t value[FIELD_WAITING];

	if (!wide_start(&run, args))
		return false;
#ifdef WIDE_VECTORS
	if (wide_can_join(args))
		wide_join_start(join = &start, args);
#else
	(void)start;
#endif
	for (size_t i = 0; i < waiting; i += block) {
		const size_t n = MIN(waiting - i, block);
		if (!wide_words(&run, args, n, (uint8_t *)value, coded_size))
			return false;
		if (coded_size == 1)
			wide_join_stored(join, args, i, value, 1, n);
		else
			wide_join_stored(join, args, i, value, 2, n);
	}
	if (!wide_words(&run, args, args->n - waiting, (uint8_t *)value, coded_size) || !wide_rest(&run, args->carry))
		return false;
	fields_join_waiting(args, waiting, value, coded_size, 0, args->carry);
	return true;
}

#endif

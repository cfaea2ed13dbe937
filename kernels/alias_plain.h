/* alias_plain.h: lit.alias in plain C, alone or under a merge: the reference of every set.
 *
 * A set with vectors of its own defines ALIAS_VECTORS and alias_vector_group() for whole groups before it includes this file.
 * The bucket tells where its alias begins; the cell of the one or the other has all else. A group of 128 words takes at most 256
 * renormalisation bytes: it may start while the position is not beyond the end of the item, and the pad covers the rest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_ALIAS_PLAIN_H
#define KERNELS_ALIAS_PLAIN_H

#include "kernels/alias_item.h"
#include "kernels/branchless.h"
#include "kernels/fields.h"

/* n <= 128 words, to out as words of `size` bytes. column: class * nb of the lanes, or NULL. */
static inline __attribute__((always_inline)) void alias_group(struct alias_run *run, const struct kn_alias *t, const struct kn_alias_rows *rows,
							      const uint8_t *column, const size_t n, void *out, const unsigned size)
{
	const unsigned shift = 16u - t->log2_nb;
	const uint8_t *at = run->at;

#pragma GCC unroll 4
	for (size_t k = 0; k < n; k++) {
		const unsigned low = run->low[k], bucket = (column ? column[k] : 0) + (low >> shift);
		const struct kn_alias_cell *cell = &rows->cell[bucket][low < rows->cell[bucket][0].limit];
		const uint32_t x = (uint32_t)cell->freq * run->high[k] + (uint16_t)(low + cell->add), more = x << 16 | (uint32_t)load_u16(at) << 4;
		const bool small = x < 65536;
		const uint32_t next = choose_u32(small, more, x);
		unsigned value = cell->value;
		at += 2 * small;
		run->high[k] = (uint16_t)(next >> 16), run->low[k] = (uint16_t)next;
		if (__builtin_expect(value == t->marker, 0))
			value = alias_literal(run, t);
		if (size == 1)
			((uint8_t *)out)[k] = (uint8_t)value;
		else
			store_u16((uint8_t *)out + 2 * k, (uint16_t)value);
	}
	run->at = at;
}

/* The next n words, n a multiple of 128 but at the end. False if the item ends too early. */
static inline bool alias_words(struct alias_run *run, const struct kn_args *a, size_t n, uint8_t *out, unsigned size)
{
	const struct kn_alias *t = &a->table->alias;
	const bool cols = a->col_class && t->kc > 1;

	for (size_t i = 0; i < n; i += KN_GROUP, class_walk_step(&run->walk)) {
		const struct kn_alias_rows *rows = &t->row[a->row_class && t->kr > 1 ? a->row_class[run->walk.row] : 0];
		const uint8_t *column = cols ? a->col_class + run->walk.column : NULL;
		if (run->at > run->end)
			return false;
		if (n - i < ALIAS_LANES)
			alias_group(run, t, rows, column, n - i, out + i * size, size);
#ifdef ALIAS_VECTORS
		else
			alias_vector_group(run, t, rows, column, out + i * size, size);
#else
		else if (size == 1)
			alias_group(run, t, rows, column, ALIAS_LANES, out + i, 1);
		else
			alias_group(run, t, rows, column, ALIAS_LANES, out + 2 * i, 2);
#endif
	}
	return true;
}

static inline bool plain_alias(const struct kn_args *args)
{
	struct alias_run run;

	return alias_start(&run, args) && alias_words(&run, args, args->n, args->dst, word_nbytes(args->width)) && alias_rest(&run, args->carry);
}

static inline bool plain_alias_merge(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width), coded_size = word_nbytes(args->coded_width);
	const size_t waiting = fields_waiting(args);
	struct alias_run run;
	uint16_t value[FIELD_WAITING];

	if (!alias_start(&run, args))
		return false;
	for (size_t i = 0; i < waiting; i += FIELD_BLOCK) {
		const size_t n = MIN(waiting - i, (size_t)FIELD_BLOCK);
		if (!alias_words(&run, args, n, (uint8_t *)value, coded_size))
			return false;
		if (coded_size == 1)
			fields_join_stored(args, (uint8_t *)args->dst + i * size, i, value, 1, 0, n);
		else
			fields_join_stored(args, (uint8_t *)args->dst + i * size, i, value, 2, 0, n);
	}
	if (!alias_words(&run, args, args->n - waiting, (uint8_t *)value, coded_size) || !alias_rest(&run, args->carry))
		return false;
	fields_join_waiting(args, waiting, value, coded_size, 0, args->carry);
	return true;
}

#endif

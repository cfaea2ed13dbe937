/* op_wide.c: lit.wide, and its merge with raw fields (docs/FORMAT.md, 5.3): rANS with 12-bit probabilities for up to 256 symbols.
 *
 * One table lookup of 4 bytes a word tells frequency, symbol and rank; with gathers where the set has them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/wide_item.h"


#ifndef WIDE_VECTOR_GROUP
struct wide_run {
	uint32_t state[WIDE_LANES];
	const uint8_t *at;
};

static void wide_load(struct wide_run *run, const uint8_t *states) { memcpy(run->state, states, sizeof(run->state)); }
static void wide_store(const struct wide_run *run, uint32_t *state) { memcpy(state, run->state, sizeof(run->state)); }
#endif

/* n <= 64 words from lane 0 on, as symbol indices: the definition. */
static void wide_words(uint32_t *state, const uint8_t **at, const struct kn_wide *t, const uint32_t *const *slot_of, size_t n, uint8_t *index)
{
	const uint8_t *p = *at;

	(void)t;
	for (size_t k = 0; k < n; k++) {
		const uint32_t e = slot_of[k][state[k] & ((1u << WIDE_BITS) - 1)];
		uint32_t x = (e >> 20) * (state[k] >> WIDE_BITS) + (e & 4095);
		const uint32_t small = x < 65536;
		x = small ? x << 16 | load_u16(p) : x;
		p += 2 * small;
		state[k] = x;
		index[k] = (uint8_t)(e >> 12);
	}
	*at = p;
}

/* Symbol indices of one group of 64 (or, at the end, fewer) words. */
static void wide_group(struct wide_run *run, const struct kn_args *a, size_t i, size_t n, uint8_t *index)
{
	const struct kn_wide *t = &a->table->wide;
	const bool cols = a->col_class && t->kc > 1;
	const size_t at = a->first + i;
	/* the row class is that of the group of 128 words */
	const unsigned r = a->row_class && t->kr > 1 ? a->row_class[(a->first + i / KN_GROUP * KN_GROUP) / a->row_words] : 0;
	const uint32_t *base = t->slot + ((size_t)r * t->kc << WIDE_BITS);
	const uint8_t *column = cols ? a->col_class + at % a->row_words : NULL;

#ifdef WIDE_VECTOR_GROUP
	if (n == WIDE_LANES) {
		wide_vector_group(run, base, column, index);
		return;
	}
#endif
	const uint32_t *slot_of[WIDE_LANES];
	uint32_t state[WIDE_LANES];
	for (size_t k = 0; k < n; k++)
		slot_of[k] = base + ((size_t)(cols ? column[k] : 0) << WIDE_BITS);
	wide_store(run, state);
	wide_words(state, &run->at, t, slot_of, n, index);
	wide_load(run, (const uint8_t *)state);
}

/* Coded fields of a group: values of the indices, escapes from the literals. False if these run out. */
static bool wide_values(const struct kn_wide *t, const uint8_t *index, size_t n, struct wide_literals *literals, uint16_t *value)
{
	const unsigned escape = t->has_escape ? t->nsym - 1u : 256;

	for (size_t k = 0; k < n; k++)
		value[k] = t->value[index[k]];
	if (t->has_escape)
		for (size_t k = 0; k < n; k++)
			if (index[k] == escape && !wide_literal(literals, &value[k]))
				return false;
	return true;
}

/* Decodes all words; each(context, first word, n, values) takes them in groups of at most 64. */
typedef void wide_each(void *context, size_t at, size_t n, const uint16_t *value);

static bool wide_all(const struct kn_args *a, uint8_t *carry, wide_each *each, void *context)
{
	const struct kn_wide *t = &a->table->wide;
	struct wide_item item;
	struct wide_run run;
	uint32_t state[WIDE_LANES];
	uint16_t value[WIDE_LANES];
	uint8_t index[WIDE_LANES];

	if (!wide_item_parse(a->pay, a->pay_nbytes, a->n, t->width, &item))
		return false;
	wide_load(&run, item.states);
	run.at = item.renorm;
	for (size_t i = 0; i < a->n; i += WIDE_LANES) {
		const size_t n = MIN(a->n - i, (size_t)WIDE_LANES);
		if (run.at > item.end)
			return false;
		wide_group(&run, a, i, n, index);
		if (!wide_values(t, index, n, &item.literals, value))
			return false;
		each(context, i, n, value);
	}
	wide_store(&run, state);
	return run.at == item.end && item.literals.left == 0 && wide_final(state, carry);
}

static void put_bytes(void *context, size_t at, size_t n, const uint16_t *value)
{
	for (size_t k = 0; k < n; k++)
		((uint8_t *)context)[at + k] = (uint8_t)value[k];
}

static void put_halves(void *context, size_t at, size_t n, const uint16_t *value) { memcpy((uint16_t *)context + at, value, 2 * n); }

bool KN(wide)(const struct kn_args *args)
{
	return wide_all(args, args->carry, args->width <= 8 ? put_bytes : put_halves, args->dst);
}

struct merge_run {
	const struct kn_args *args;
	size_t waiting;
};

/* The coded field in its place; the raw fields join at once where all their bits are there, in the hot shapes. */
static void put_coded(void *context, size_t at, size_t n, const uint16_t *value)
{
	struct merge_run *run = context;
	const struct kn_args *a = run->args;
	const unsigned below = a->width - a->coded_width, size = word_nbytes(a->width);
	const struct kn_field *f = &a->field[0];

	if (run->waiting == a->n && a->nfield == 1 && a->width == 16 && f->width == below && (at + n) * below / 8 + 16 <= f->pay_nbytes) {
		uint16_t *dst = (uint16_t *)a->dst + at;
		for (size_t k = 0; k < n; k++) {
			const size_t bit = (at + k) * below;
			const uint32_t v = (uint32_t)value[k] << below | (load_u32(f->pay + bit / 8) >> bit % 8 & ((1u << below) - 1));
			dst[k] = (uint16_t)v;
		}
		if (a->rotate)
			for (size_t k = 0; k < n; k++)
				dst[k] = (uint16_t)(dst[k] >> a->rotate | dst[k] << (16 - a->rotate));
		return;
	}
	run->waiting = MIN(run->waiting, at);
	for (size_t k = 0; k < n; k++)
		set_word(a->dst, size, at + k, (uint64_t)value[k] << below);
}

bool KN(wide_merge)(const struct kn_args *args)
{
	uint8_t carry[BC_CARRY_NBYTES];
	struct merge_run run = { args, args->n };

	if (!wide_all(args, args->carry ? carry : NULL, put_coded, &run))
		return false;
	kn_merge_fields(args, carry, run.waiting, args->n);
	if (args->carry)
		memcpy(args->carry, carry, BC_CARRY_NBYTES);
	return true;
}

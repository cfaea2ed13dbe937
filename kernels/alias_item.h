/* alias_item.h: the parts of a lit.alias item (docs/FORMAT.md, 5.3). SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_ALIAS_ITEM_H
#define KERNELS_ALIAS_ITEM_H

#include "common/archive.h"
#include "kernels/class_walk.h"

enum { ALIAS_LOW_NBYTES = ALIAS_LANES * WIDE_BITS / 8, ALIAS_FLAG_NBYTES = ALIAS_LANES / 8 };

/* Where the decoding of an item stands. States are in two planes: x = high << 12 | low >> 4. */
struct alias_run {
	uint16_t high[ALIAS_LANES], low[ALIAS_LANES];
	const uint8_t *at, *end;        /* renormalisation words */
	const uint8_t *literal;         /* the next one */
	size_t nliterals;               /* left */
	bool bad;                       /* one was missing */
	struct class_walk walk;
};

static inline bool alias_start(struct alias_run *run, const struct kn_args *a)
{
	struct cursor c = { a->pay, a->pay + a->pay_nbytes, false };
	const struct kn_alias *t = &a->table->alias;
	const unsigned size = (t->width + 7) / 8;
	size_t flagged = 0;

	run->nliterals = cursor_varint(&c);
	if (c.bad || run->nliterals > a->n)
		return false;
	run->literal = cursor_bytes(&c, run->nliterals * size);
	const uint8_t *flags = cursor_bytes(&c, ALIAS_FLAG_NBYTES), *low = cursor_bytes(&c, ALIAS_LOW_NBYTES), *high = cursor_bytes(&c, ALIAS_LANES);
	if (c.bad)
		return false;
	for (unsigned k = 0; k < ALIAS_FLAG_NBYTES; k++)
		flagged += (size_t)__builtin_popcount(flags[k]);
	const uint8_t *higher = cursor_bytes(&c, flagged);
	if (c.bad || cursor_left(&c) % 2)
		return false;
	for (unsigned k = 0; k < ALIAS_LANES; k++) {
		const unsigned more = flags[k / 8] >> k % 8 & 1;
		const unsigned two = load_u16(low + k * WIDE_BITS / 8); /* the lane's bits begin at its first or at its fifth */
		run->low[k] = (uint16_t)(k % 2 ? two & 0xfff0 : two << 4);
		run->high[k] = (uint16_t)(high[k] | (more ? *higher << 8 : 0));
		higher += more;
	}
	for (size_t i = 0; i < run->nliterals; i++)
		if (get_word(run->literal, size, i) > mask_bits(t->width))
			return false;
	run->at = c.at, run->end = c.end, run->bad = false;
	run->walk = class_walk_start(a);
	return true;
}

/* What the next escape stands for. */
static inline unsigned alias_literal(struct alias_run *run, const struct kn_alias *t)
{
	if (!run->nliterals) {
		run->bad = true;
		return 0;
	}
	const unsigned word = t->width <= 8 ? *run->literal : load_u16(run->literal);
	run->literal += (t->width + 7) / 8, run->nliterals--;
	return word;
}

/* Whether final states are 4096 + c, 0 <= c < 65536; the c go to carry, or must be 0 without one. */
static inline bool alias_final(const struct alias_run *run, uint8_t *carry)
{
	bool good = true;

	for (unsigned k = 0; k < ALIAS_LANES; k++) {
		const uint32_t c = ((uint32_t)run->high[k] << WIDE_BITS | run->low[k] >> 4) - (1u << WIDE_BITS);
		good &= c < 65536 && (carry || c == 0);
		if (carry)
			store_u16(carry + 2 * k, (uint16_t)c);
	}
	return good;
}

static inline bool alias_rest(const struct alias_run *run, uint8_t *carry)
{
	return run->at == run->end && run->nliterals == 0 && !run->bad && alias_final(run, carry);
}

#endif

/* wide_item.h: the parts of a lit.wide item (docs/FORMAT.md, 5.3). SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_WIDE_ITEM_H
#define KERNELS_WIDE_ITEM_H

#include "common/archive.h"
#include "kernels/class_walk.h"

enum { WIDE_BLOCK = 256 };      /* words between decoding and joining: few, so that loads and stores of the one overlap with the other */

/* What escapes stand for. */
struct wide_literals {
	const uint8_t *at;
	size_t left;
	unsigned width;
	bool bad;                       /* one was missing, or no word of the width */
};

/* Where the decoding of an item stands. */
struct wide_run {
	uint32_t state[WIDE_LANES];
	const uint8_t *at, *end;        /* renormalisation words */
	struct wide_literals literals;
	struct class_walk walk;
	uint8_t low[256], high[256];    /* the bytes of kn_wide.value: what vectors look up */
};

/* Whether vectors join the raw fields of a fused merge: one, below a word that fills 2 or 4 bytes, each of its words within 2 (4) bytes. */
static inline bool wide_can_join(const struct kn_args *a)
{
	return a->nfield == 1 && ((a->width == 16 && a->field[0].width <= 9) || (a->width == 32 && a->field[0].width <= 25));
}

static inline bool wide_start(struct wide_run *run, const struct kn_args *a)
{
	struct cursor c = { a->pay, a->pay + a->pay_nbytes, false };
	const unsigned width = a->table->wide.width;
	const uint64_t nliterals = cursor_varint(&c);

	if (c.bad || nliterals > a->n)
		return false;
	run->literals = (struct wide_literals){ .left = nliterals, .width = width };
	run->literals.at = cursor_bytes(&c, nliterals * ((width + 7) / 8));
	const uint8_t *states = cursor_bytes(&c, sizeof(run->state));
	if (c.bad || cursor_left(&c) % 2)
		return false;
	memcpy(run->state, states, sizeof(run->state));
	run->at = c.at, run->end = c.end;
	run->walk = class_walk_start(a);
	for (unsigned j = 0; j < 256; j++)
		run->low[j] = (uint8_t)a->table->wide.value[j], run->high[j] = (uint8_t)(a->table->wide.value[j] >> 8);
	return true;
}

static inline unsigned wide_literal(struct wide_literals *literals)
{
	if (!literals->left) {
		literals->bad = true;
		return 0;
	}
	const unsigned word = literals->width <= 8 ? *literals->at : load_u16(literals->at);
	literals->at += (literals->width + 7) / 8;
	literals->left--;
	literals->bad = literals->bad || word > mask_bits(literals->width);
	return word & (unsigned)mask_bits(literals->width);
}

/* Whether final states are 65536 + c; the c go to carry, or must be 0 without one. */
static inline bool wide_final(const uint32_t *state, uint8_t *carry)
{
	bool good = true;

	for (unsigned k = 0; k < WIDE_LANES; k++) {
		good &= state[k] >> 16 == 1 && (carry || (state[k] & 0xffff) == 0);
		if (carry)
			store_u16(carry + 2 * k, (uint16_t)state[k]);
	}
	return good;
}

#endif

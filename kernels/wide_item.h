/* wide_item.h: the parts of a lit.wide item (docs/FORMAT.md, 5.3). SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_WIDE_ITEM_H
#define KERNELS_WIDE_ITEM_H

#include "common/archive.h"
#include "kernels/fields.h"
#include "kernels/kernel.h"

struct wide_literals {
	const uint8_t *at;
	size_t left;
	unsigned width;
};

struct wide_item {
	struct wide_literals literals;
	const uint8_t *states, *renorm, *end;
};

static inline bool wide_item_parse(const uint8_t *bytes, size_t nbytes, size_t n, unsigned width, struct wide_item *out)
{
	struct cursor c = { bytes, bytes + nbytes, false };

	out->literals.left = cursor_varint(&c), out->literals.width = width;
	if (c.bad || out->literals.left > n)
		return false;
	out->literals.at = cursor_bytes(&c, out->literals.left * ((width + 7) / 8));
	out->states = cursor_bytes(&c, WIDE_LANES * 4);
	out->renorm = c.at, out->end = c.end;
	return !c.bad && cursor_left(&c) % 2 == 0;
}

/* The next literal; false if there is none, or it is no word of the width. */
static inline bool wide_literal(struct wide_literals *literals, uint16_t *out)
{
	if (!literals->left)
		return false;
	*out = literals->width <= 8 ? *literals->at : load_u16(literals->at);
	literals->at += (literals->width + 7) / 8;
	literals->left--;
	return *out <= mask_bits(literals->width);
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

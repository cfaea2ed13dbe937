/* table_bits.h: what the bodies of lit.wide's and lit.alias's tables have in common (docs/FORMAT.md, 6.3). SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TABLE_BITS_H
#define KERNELS_TABLE_BITS_H

#include "common/archive.h"
#include "kernels/kernel.h"

/* A string of bits, least significant bit of each byte first. */
struct bits {
	struct cursor bytes;
	uint64_t held;
	unsigned count;
};

static inline unsigned take_bits(struct bits *bits, unsigned n)
{
	while (bits->count < n) {
		bits->held |= (uint64_t)cursor_u8(&bits->bytes) << bits->count;
		bits->count += 8;
	}
	unsigned value = (unsigned)(bits->held & mask_bits(n));
	bits->held >>= n, bits->count -= n;
	return value;
}

/* The values of n symbols, strictly increasing. False if one is no word of the width, or the body ends. */
static inline bool take_values(struct cursor *c, unsigned n, unsigned width, uint16_t *value)
{
	uint64_t last = 0;

	for (unsigned j = 0; j < n; j++) {
		const uint64_t gap = cursor_varint(c);
		last = j ? last + MIN(gap, 65536) + 1 : gap;
		if (c->bad || last > mask_bits(width))
			return false;
		value[j] = (uint16_t)last;
	}
	return true;
}

enum brv_status table_expand_alias(struct span body, struct kn_alias *alias, struct error *err);

#endif

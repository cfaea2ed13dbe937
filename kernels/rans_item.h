/* rans_item.h: the parts of a lit.rans item (docs/FORMAT.md, 5.3), found and checked once for all kernel sets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_RANS_ITEM_H
#define KERNELS_RANS_ITEM_H

#include "common/archive.h"
#include "kernels/kernel.h"

enum { RANS_PATCH_NBYTES = 6, RANS_STATE_NBYTES = 2 * RANS_LANES };

struct rans_item {
	size_t nescapes, nliterals, npatches;
	const uint8_t *nibbles, *literals, *patches;
	const uint8_t *states;          /* RANS_LANES low bytes, then as many high ones */
	const uint8_t *renorm, *end;
};

static inline bool rans_item_parse(const uint8_t *bytes, size_t nbytes, size_t n, struct rans_item *out)
{
	struct cursor c = { bytes, bytes + nbytes, false };

	out->nescapes = cursor_varint(&c), out->nliterals = cursor_varint(&c), out->npatches = cursor_varint(&c);
	if (c.bad || out->nescapes > n || out->nliterals > out->nescapes || out->npatches > n)
		return false;
	out->nibbles = cursor_bytes(&c, (out->nescapes + 1) / 2);
	out->literals = cursor_bytes(&c, out->nliterals);
	out->patches = cursor_bytes(&c, out->npatches * RANS_PATCH_NBYTES);
	out->states = cursor_bytes(&c, RANS_STATE_NBYTES);
	out->renorm = c.at, out->end = c.end;
	return !c.bad && !(out->nescapes % 2 && out->nibbles[out->nescapes / 2] >> 4);
}

/* The bytes that the item's escapes stand for, in order, `add` added to each (mod 2^width if that is below 8); behind them KN_PAD zeros: a damaged
 * item may have more escapes than it says, whose bytes are then whatever `out` held (it has room for as many as there are words). False if the
 * literals do not come out even. */
static inline bool rans_item_escapes(const struct rans_item *item, const struct kn_rans *table, uint8_t add, uint8_t *out)
{
	const uint8_t mask = (uint8_t)mask_bits(MIN(table->width, 8));
	uint8_t tail[16];
	size_t literal = 0;

	for (unsigned v = 0; v < 16; v++)
		tail[v] = (uint8_t)(table->tail[v] + add) & mask;
#ifdef RANS_NIBBLES
	for (size_t i = 0; i < item->nescapes; i += 32) {
		uint32_t literals = lookup_nibbles32(tail, item->nibbles + i / 2, out + i);
		if (item->nescapes - i < 32)
			literals &= (uint32_t)mask_bits((unsigned)(item->nescapes - i));
		for (; literals && literal < item->nliterals; literals &= literals - 1)
			out[i + (size_t)__builtin_ctz(literals)] = (uint8_t)(item->literals[literal++] + add) & mask;
		if (literals)
			return false;
	}
#else
	for (size_t i = 0; i < item->nescapes; i++) {
		unsigned v = item->nibbles[i / 2] >> (i % 2 * 4) & 15;
		if (v == 15 && literal == item->nliterals)
			return false;
		out[i] = v == 15 ? (uint8_t)(item->literals[literal++] + add) & mask : tail[v];
	}
#endif
	memset(out + item->nescapes, 0, KN_PAD);
	return literal == item->nliterals;
}

/* Puts the patches' words into the coded field of dst: `shift` raw bits below it, the whole rotated right by `rotate`. */
static inline bool rans_item_patch(const struct rans_item *item, void *dst, size_t n, unsigned width, unsigned coded, unsigned shift, unsigned rotate)
{
	const unsigned size = word_nbytes(width);
	const uint64_t mask = mask_bits(width);
	size_t next = 0;

	for (size_t i = 0; i < item->npatches; i++) {
		const size_t at = load_u32(item->patches + RANS_PATCH_NBYTES * i);
		const uint64_t word = load_u16(item->patches + RANS_PATCH_NBYTES * i + 4);
		if (at < next || at >= n || word > mask_bits(coded))
			return false;
		uint64_t v = get_word(dst, size, at);
		v = rotate ? (v << rotate | v >> (width - rotate)) & mask : v;
		v = (v & ~(mask_bits(coded) << shift)) | word << shift;
		v = rotate ? (v >> rotate | v << (width - rotate)) & mask : v;
		set_word(dst, size, at, v);
		next = at + 1;
	}
	return true;
}

/* Whether final states are 256 + c; the c go to carry, or must be 0 without one. */
static inline bool rans_final(const uint8_t *low, const uint8_t *high, uint8_t *carry)
{
	unsigned wrong = 0;

	for (unsigned k = 0; k < RANS_LANES; k++)
		wrong |= high[k] ^ 1u, wrong |= carry ? 0 : low[k];
	if (carry)
		memcpy(carry, low, RANS_LANES);
	return wrong == 0;
}

#endif

/* enc_alias.c: the encoder of lit.alias. Returns 0 if a word has no code and its class pair no escape. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/alias_item.h"
#include "kernels/enc_coded.h"

/* The symbol that the own cell of a bucket stands for. */
static unsigned symbol_of(const struct coded_table *e, const struct kn_alias *t, const struct kn_alias_cell *cell)
{
	return t->has_escape && cell->value == t->marker ? e->escape : e->index_of[cell->value];
}

/* Codes of a class pair and the positions of its slots, from the nb cells that its decoder has: each position's rank is what that makes of it. */
static void make_pair(struct coded_table *e, const struct kn_alias *t, struct coded_symbol code[256], uint16_t position[CODED_TOTAL],
		      const struct kn_alias_cell (*cell)[2])
{
	const unsigned shift = 16u - t->log2_nb;
	unsigned start = 0;

	for (unsigned b = 0; b < 1u << t->log2_nb; b++) {
		const unsigned freq = cell[b][1].freq >> 4;
		if (!freq)
			continue;
		code[symbol_of(e, t, cell[b] + 1)] = coded_symbol(freq, start);
		start += freq;
	}
	for (unsigned at = 0; at < CODED_TOTAL; at++) {
		const struct kn_alias_cell *bucket = cell[at << 4 >> shift], *one = bucket + (at << 4 < bucket->limit);
		position[code[symbol_of(e, t, one)].start + ((uint16_t)((at << 4) + one->add) >> 4)] = (uint16_t)at;
	}
}

static struct coded_table *alloc_table(const struct kn_enc_args *args)
{
	const struct kn_alias *t = &args->table->alias;
	const size_t pairs = (size_t)t->kr * t->kc;
	struct coded_table *e = calloc(1, sizeof(*e) + pairs * (sizeof(e->code[0]) + CODED_TOTAL * sizeof(*e->slot)));

	if (!e)
		return NULL;
	uint16_t *slot = (uint16_t *)(e->code + pairs);
	coded_start(e, args, t->width, t->value, t->nsym, t->has_escape);
	e->slot = slot;
	for (unsigned r = 0; r < t->kr; r++)
		for (unsigned c = 0; c < t->kc; c++) {
			const size_t pair = r * t->kc + c;
			make_pair(e, t, e->code[pair], slot + (pair << WIDE_BITS), t->row[r].cell + (c << t->log2_nb));
		}
	return e;
}

/* The states as docs/FORMAT.md, 5.3 has them. */
static uint8_t *put_states(uint8_t *dst, const uint32_t *state)
{
	uint8_t *flags = dst, *low = flags + ALIAS_FLAG_NBYTES, *high = low + ALIAS_LOW_NBYTES, *higher = high + ALIAS_LANES;

	memset(flags, 0, ALIAS_FLAG_NBYTES);
	for (unsigned k = 0; k < ALIAS_LANES; k += 2) {
		const uint32_t two = (state[k] & (CODED_TOTAL - 1)) | (state[k + 1] & (CODED_TOTAL - 1)) << WIDE_BITS;
		*low++ = (uint8_t)two, *low++ = (uint8_t)(two >> 8), *low++ = (uint8_t)(two >> 16);
	}
	for (unsigned k = 0; k < ALIAS_LANES; k++) {
		const unsigned top = state[k] >> (WIDE_BITS + 8);
		high[k] = (uint8_t)(state[k] >> WIDE_BITS);
		if (top)
			flags[k / 8] |= (uint8_t)(1u << k % 8), *higher++ = (uint8_t)top;
	}
	return higher;
}

size_t KN(enc_alias)(const struct kn_enc_args *args)
{
	static const struct coded_kind kind = { ALIAS_LANES, 28 - WIDE_BITS, CODED_TOTAL, put_states };
	struct coded_table *e = alloc_table(args);

	if (!e)
		return 0;
	const size_t nbytes = coded_encode(e, &kind);
	free(e);
	return nbytes;
}

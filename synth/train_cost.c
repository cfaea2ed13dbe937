/* train_cost.c: what coding with a table costs, in bits. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "kernels/kernel.h"
#include "synth/log2i.h"
#include "synth/train.h"

enum { PATCH_BITS = 48 };

static double huff_bits(const struct kn_huff *t, const uint32_t *counts, unsigned symbols)
{
	double bits = 0;

	for (unsigned s = 0; s < symbols; s++) {
		if (counts[s] && !t->length[s])
			return HUGE_VAL;
		bits += (double)counts[s] * t->length[s];
	}
	return bits;
}

static double rans_pair_bits(const struct kn_rans *t, const struct kn_rans_rows *rows, unsigned column, const uint32_t *counts)
{
	const unsigned nb = 1u << t->log2_nb, base = column * nb;
	const uint8_t *freq = rows->freq + base;
	uint8_t index_of[256], in_tail[256] = { 0 };
	double cost[64], filler = HUGE_VAL, bits = 0;

	memset(index_of, 255, sizeof(index_of));
	for (unsigned j = nb; j-- > 0;) {
		cost[j] = freq[j] ? 8 - log2i(freq[j]) : HUGE_VAL;
		if (j == t->escape)
			continue;
		filler = MIN(filler, cost[j]);
		index_of[t->width < 8 ? t->map[j] & mask_bits(t->width) : t->map[j]] = (uint8_t)j;
	}
	for (unsigned v = 0; v < 15; v++)
		in_tail[t->tail[v]] = 1;
	for (size_t s = 0; s < (size_t)1 << t->width; s++) {
		const unsigned offset = (unsigned)((s - t->base) & mask_bits(t->width));
		if (!counts[s])
			continue;
		if (offset < 256 && index_of[offset] != 255 && freq[index_of[offset]])
			bits += counts[s] * cost[index_of[offset]];
		else if (offset < 256 && t->escape != 255 && freq[t->escape])
			bits += counts[s] * (cost[t->escape] + 4 + (in_tail[offset] ? 0 : 8));
		else
			bits += counts[s] * (PATCH_BITS + MIN(filler, 8.0)); /* coded as the pair's commonest symbol */
	}
	return bits;
}

static double wide_pair_bits(const struct kn_wide *t, const uint32_t *slot, const uint32_t *counts)
{
	double cost[256], bits = 0, all = 0, inside = 0;

	for (unsigned j = 0; j < t->nsym; j++)
		cost[j] = HUGE_VAL;
	for (unsigned at = 0; at < 1u << WIDE_BITS; at += slot[at] >> 20)
		cost[slot[at] >> 12 & 255] = WIDE_BITS - log2i(slot[at] >> 20);
	for (size_t s = 0; s < (size_t)1 << t->width; s++)
		all += counts[s];
	for (unsigned j = 0; j < t->nsym - (unsigned)t->has_escape; j++)
		if (isfinite(cost[j]))
			bits += counts[t->value[j]] * cost[j], inside += counts[t->value[j]];
	if (all > inside)
		bits += t->has_escape ? (all - inside) * (cost[t->nsym - 1] + (t->width <= 8 ? 8 : 16)) : HUGE_VAL;
	return bits;
}

static double alias_pair_bits(const struct kn_alias *t, const struct kn_alias_cell (*cell)[2], const uint32_t *counts)
{
	double bits = 0, all = 0, inside = 0, escape = HUGE_VAL;

	for (size_t s = 0; s < (size_t)1 << t->width; s++)
		all += counts[s];
	for (unsigned b = 0; b < 1u << t->log2_nb; b++) {
		const struct kn_alias_cell *own = &cell[b][1];
		const double cost = own->freq ? WIDE_BITS - log2i(own->freq >> 4) : HUGE_VAL;
		if (own->value == t->marker)
			escape = MIN(escape, cost);
		else if (own->freq)
			bits += counts[own->value] * cost, inside += counts[own->value];
	}
	bits += all * alias_loss_bits;
	return all > inside ? bits + (all - inside) * (escape + (t->width <= 8 ? 8 : 16)) : bits;
}

double table_cost_bits(const struct kn_table *table, const uint32_t *counts)
{
	double bits = 0;

	if (table->kind == TABLE_HUFF) {
		/* counts cover the literal's width only; symbols without a code lie beyond it or do not occur */
		unsigned symbols = 256;
		while (symbols > 1 && !table->huff.length[symbols - 1])
			symbols--;
		return huff_bits(&table->huff, counts, symbols);
	}
	if (table->kind == TABLE_RANS) {
		const struct kn_rans *t = &table->rans;
		for (unsigned r = 0; r < t->kr; r++)
			for (unsigned c = 0; c < t->kc; c++)
				bits += rans_pair_bits(t, &t->row[r], c, counts + (((size_t)r * t->kc + c) << t->width));
		return bits;
	}
	if (table->kind == TABLE_ALIAS) {
		const struct kn_alias *t = &table->alias;
		for (unsigned r = 0; r < t->kr; r++)
			for (unsigned c = 0; c < t->kc; c++)
				bits += alias_pair_bits(t, t->row[r].cell + (c << t->log2_nb), counts + (((size_t)r * t->kc + c) << t->width));
		return bits;
	}
	const struct kn_wide *t = &table->wide;
	for (unsigned p = 0; p < (unsigned)t->kr * t->kc; p++)
		bits += wide_pair_bits(t, t->slot + ((size_t)p << WIDE_BITS), counts + ((size_t)p << t->width));
	return bits;
}

/* States: a lane starts from 2^L, which costs L bits, and ends somewhere, log-uniformly, in [2^L, 2^2L): L/2 of the 2L stored bits say nothing. That
 * is 1.5 * 8 * 128 bits for lit.rans and 1.5 * 16 * 64 for lit.wide: 192 bytes each. lit.alias starts from 2^12, ends in [2^12, 2^28), at 20 bits on
 * average, for which it stores 25: 17 * 128 bits are 272 bytes; with 16 bits to carry it starts higher, which takes 2.7 of these bits. */
double item_overhead_nbytes(enum bc_table kind, bool carry)
{
	enum { STATES_NBYTES = 192 };

	switch (kind) {
	case TABLE_HUFF: return 4 + 7 + 8; /* length, sizes of segments, a bit string's unused bits */
	case TABLE_RANS: return 4 + 5 + STATES_NBYTES - (carry ? BC_CARRY_NBYTES : 0);
	case TABLE_WIDE: return 4 + 1 + STATES_NBYTES - (carry ? BC_CARRY_NBYTES : 0);
	case TABLE_ALIAS: return 4 + 1 + (carry ? 59 : 272);
	default: return 0;
	}
}

/* enc_coded.h: what the encoders of lit.wide and lit.alias share: rANS with 12-bit probabilities and up to 256 symbols for each class pair. They run
 * backward through the words, so that the decoder runs forward.
 *
 * First, in word order, each word's symbol index is found and literals are collected; then the states go through the indices, which takes a
 * multiplication by a reciprocal and no branch. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_ENC_CODED_H
#define KERNELS_ENC_CODED_H

#include "common/archive.h"
#include "kernels/body.h"

/* With r = ceil(2^44 / freq), x * r >> 44 is x / freq for all x < freq << 20: x * r exceeds (x << 44) / freq by less than x, x * freq is below
 * 2^44 as freq < 2^12, and x * r stays below 2^64. */
enum { RECIPROCAL_SHIFT = 44, CODED_TOTAL = 1 << WIDE_BITS, CODED_MOST_LANES = ALIAS_LANES };

struct coded_symbol {
	uint64_t reciprocal;
	uint16_t freq, start;           /* start: the first of its slots */
};

struct coded_table {
	const struct kn_enc_args *args;
	const uint16_t *value;          /* by symbol index */
	unsigned width, kr, kc, escape; /* escape: its index, if has_escape */
	bool has_escape;
	uint8_t index_of[65536];        /* word -> symbol index, if value[] there agrees */
	const uint16_t *slot;           /* by class pair and slot: the position that a state takes; NULL: the slot itself */
	struct coded_symbol code[][256]; /* by class pair and symbol index; freq 0: no code */
};

/* What the two differ in; known when compiled. */
struct coded_kind {
	unsigned lanes, room;           /* a state has to be below freq << room before a symbol goes in */
	uint32_t lowest;                /* state, which carried bits are added to */
	uint8_t *(*put_states)(uint8_t *dst, const uint32_t *state);    /* returns what is behind them */
};

/* The symbols of a table; codes are the caller's to make. */
static inline void coded_start(struct coded_table *e, const struct kn_enc_args *args, unsigned width, const uint16_t *value, unsigned nsym, bool has_escape)
{
	const struct kn_table_shape shape = table_shape(args->table);

	e->args = args, e->value = value, e->width = width, e->kr = shape.kr, e->kc = shape.kc;
	e->has_escape = has_escape, e->escape = nsym - 1u;
	for (unsigned j = 0; j < nsym - (unsigned)has_escape; j++)
		e->index_of[value[j]] = (uint8_t)j;
}

static inline struct coded_symbol coded_symbol(unsigned freq, unsigned start)
{
	return (struct coded_symbol){ ((1ull << RECIPROCAL_SHIFT) + freq - 1) / freq, (uint16_t)freq, (uint16_t)start };
}

/* Class pair of the row of the words from i on, a multiple of the lanes, and column class 0; *column: their column classes, NULL if there is one class. */
static inline unsigned coded_pair(const struct coded_table *e, size_t i, const uint8_t **column)
{
	const struct kn_enc_args *a = e->args;

	*column = a->col_class && e->kc > 1 ? a->col_class + (a->first + i) % a->row_words : NULL;
	return a->row_class && e->kr > 1 ? a->row_class[(a->first + i / KN_GROUP * KN_GROUP) / a->row_words] * e->kc : 0;
}

/* Symbol indices of n words, at most as many as lanes, from i on; appends literals. False if a word cannot be coded. */
static inline __attribute__((always_inline)) bool find_indices(const struct coded_table *e, size_t i, size_t n, const unsigned size, uint8_t *index,
							       uint8_t **literal)
{
	const uint8_t *column, *src = (const uint8_t *)e->args->src + i * size;
	const unsigned pair = coded_pair(e, i, &column);

	for (size_t k = 0; k < n; k++) {
		const unsigned word = size == 1 ? src[k] : load_u16(src + 2 * k), j = e->index_of[word];
		const struct coded_symbol *codes = e->code[pair + (column ? column[k] : 0)];
		const bool known = e->value[j] == word && codes[j].freq;
		index[k] = (uint8_t)(known ? j : e->escape);
		if (known)
			continue;
		if (!e->has_escape || !codes[e->escape].freq)
			return false;
		memcpy(*literal, src + k * size, size);
		*literal += size;
	}
	return true;
}

/* n words, at most as many as lanes, from i on, the last first. Renormalisation words go below `at`; the one below them may be written. */
static inline __attribute__((always_inline)) uint8_t *code_words(const struct coded_table *e, const struct coded_kind *kind, size_t i, const size_t n,
								 const uint8_t *index, uint32_t *state, uint8_t *at)
{
	const uint8_t *column;
	const unsigned first = coded_pair(e, i, &column);

	for (size_t k = n; k-- > 0;) {
		const unsigned pair = first + (column ? column[k] : 0);
		const struct coded_symbol *c = &e->code[pair][index[k]];
		const uint32_t freq = c->freq, x = state[k];
		const bool full = x >= (uint64_t)freq << kind->room;
		const uint32_t rest = x >> (full ? 16 : 0);
		store_u16(at - 2, (uint16_t)x);
		at -= 2 * full;
		const uint32_t quotient = (uint32_t)(rest * c->reciprocal >> RECIPROCAL_SHIFT), slot = c->start + (rest - quotient * freq);
		state[k] = quotient << WIDE_BITS | (e->slot ? e->slot[(size_t)pair << WIDE_BITS | slot] : slot);
	}
	return at;
}

/* The item; 0 if a word has no code and its class pair no escape. */
static inline __attribute__((always_inline)) size_t coded_encode(const struct coded_table *e, const struct coded_kind *kind)
{
	const struct kn_enc_args *a = e->args;
	const unsigned lanes = kind->lanes;
	uint8_t *const index = a->scratch, *const literals = index + a->n, *literal = literals;
	uint8_t *const end = a->scratch + kn_encode_bound(a->n), *at = end;
	struct buffer head = { a->dst, 0, 10, false };
	uint32_t state[CODED_MOST_LANES];

	for (size_t i = 0; i < a->n; i += lanes) {
		const size_t n = MIN(a->n - i, (size_t)lanes);
		if (!(e->width <= 8 ? find_indices(e, i, n, 1, index + i, &literal) : find_indices(e, i, n, 2, index + i, &literal)))
			return 0;
	}
	for (unsigned k = 0; k < lanes; k++)
		state[k] = kind->lowest + (a->carry ? load_u16(a->carry + 2 * k) : 0);
	for (size_t i = ceil_div(a->n, lanes) * lanes; i > 0; i -= lanes) {
		const size_t from = i - lanes;
		if (i > a->n)
			at = code_words(e, kind, from, a->n - from, index + from, state, at);
		else
			at = code_words(e, kind, from, lanes, index + from, state, at);
	}
	buffer_put_varint(&head, (uint64_t)(literal - literals) / word_nbytes(e->width));
	uint8_t *dst = a->dst + head.nbytes;
	memcpy(dst, literals, (size_t)(literal - literals));
	dst = kind->put_states(dst + (literal - literals), state);
	memcpy(dst, at, (size_t)(end - at));
	return (size_t)(dst - a->dst) + (size_t)(end - at);
}

#endif

/* enc_alias.c: the encoder of lit.alias. Runs backward through the words, so that the decoder runs forward. Returns 0 if a word has no
 * code and its class pair no escape.
 *
 * First, in word order, each word's symbol index is found and literals are collected; then the states go through the indices, which takes a
 * multiplication by a reciprocal and a lookup of the position, and no branch. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/alias_item.h"
#include "kernels/body.h"

/* With r = ceil(2^40 / freq), x * r >> 40 is x / freq for all x < freq << 16: x * r exceeds (x << 40) / freq by less than x, x * freq is below
 * 2^40 as freq < 2^12, and x * r stays below 2^57. */
enum { RECIPROCAL_SHIFT = 40, TOTAL = 1 << WIDE_BITS };

struct alias_code {
	uint64_t reciprocal;
	uint16_t freq, start;           /* start: in position[] */
};

struct alias_pair {
	struct alias_code code[ALIAS_MAX_ENTRIES];      /* by symbol index; freq 0: no code */
	uint16_t position[TOTAL];       /* of each symbol, by rank */
};

struct enc_alias {
	const struct kn_enc_args *args;
	const struct kn_alias *table;
	uint8_t index_of[65536];        /* word -> symbol index, if value[] there agrees */
	struct alias_pair pair[];
};

/* The symbol that the own cell of a bucket stands for. */
static unsigned symbol_of(const struct enc_alias *e, const struct kn_alias_cell *cell)
{
	return e->table->has_escape && cell->value == e->table->marker ? e->table->nsym - 1u : e->index_of[cell->value];
}

/* Codes of a class pair, from the nb cells that its decoder has: each position's rank is what that makes of it. */
static void make_pair(const struct enc_alias *e, struct alias_pair *pair, const struct kn_alias_cell (*cell)[2])
{
	const unsigned shift = 16u - e->table->log2_nb;
	unsigned start = 0;

	for (unsigned b = 0; b < 1u << e->table->log2_nb; b++) {
		const unsigned freq = cell[b][1].freq >> 4;
		if (!freq)
			continue;
		pair->code[symbol_of(e, cell[b] + 1)] =
			(struct alias_code){ ((1ull << RECIPROCAL_SHIFT) + freq - 1) / freq, (uint16_t)freq, (uint16_t)start };
		start += freq;
	}
	for (unsigned at = 0; at < TOTAL; at++) {
		const struct kn_alias_cell *bucket = cell[at << 4 >> shift], *one = bucket + (at << 4 < bucket->limit);
		pair->position[pair->code[symbol_of(e, one)].start + ((uint16_t)((at << 4) + one->add) >> 4)] = (uint16_t)at;
	}
}

static struct enc_alias *alloc_enc_alias(const struct kn_enc_args *args)
{
	const struct kn_alias *t = &args->table->alias;
	struct enc_alias *e = calloc(1, sizeof(*e) + t->kr * t->kc * sizeof(e->pair[0]));

	if (!e)
		return NULL;
	e->args = args, e->table = t;
	for (unsigned j = 0; j < t->nsym - (unsigned)t->has_escape; j++)
		e->index_of[t->value[j]] = (uint8_t)j;
	for (unsigned r = 0; r < t->kr; r++)
		for (unsigned c = 0; c < t->kc; c++)
			make_pair(e, &e->pair[r * t->kc + c], t->row[r].cell + (c << t->log2_nb));
	return e;
}

/* Pairs of the row class of the words from i on, i a multiple of 128; *column: their column classes, NULL if there is one class. */
static inline const struct alias_pair *pairs_at(const struct enc_alias *e, size_t i, const uint8_t **column)
{
	const struct kn_enc_args *a = e->args;
	const struct kn_alias *t = e->table;

	*column = a->col_class && t->kc > 1 ? a->col_class + (a->first + i) % a->row_words : NULL;
	return e->pair + (a->row_class && t->kr > 1 ? a->row_class[(a->first + i) / a->row_words] * t->kc : 0);
}

/* Symbol indices of n <= 128 words from i on; appends literals. False if a word cannot be coded. */
static inline __attribute__((always_inline)) bool find_indices(const struct enc_alias *e, size_t i, size_t n, const unsigned size, uint8_t *index,
							       uint8_t **literal)
{
	const struct kn_alias *t = e->table;
	const uint8_t *column, *src = (const uint8_t *)e->args->src + i * size;
	const struct alias_pair *pair = pairs_at(e, i, &column);
	const unsigned escape = t->nsym - 1u;

	for (size_t k = 0; k < n; k++) {
		const unsigned word = size == 1 ? src[k] : load_u16(src + 2 * k), j = e->index_of[word];
		const struct alias_code *codes = pair[column ? column[k] : 0].code;
		const bool known = t->value[j] == word && codes[j].freq;
		index[k] = (uint8_t)(known ? j : escape);
		if (known)
			continue;
		if (!t->has_escape || !codes[escape].freq)
			return false;
		memcpy(*literal, src + k * size, size);
		*literal += size;
	}
	return true;
}

/* n <= 128 words from i on, the last first. Renormalisation words go below `at`; the one below them may be written. */
static inline __attribute__((always_inline)) uint8_t *code_words(const struct enc_alias *e, size_t i, const size_t n, const uint8_t *index, uint32_t *state,
								 uint8_t *at)
{
	const uint8_t *column;
	const struct alias_pair *pair = pairs_at(e, i, &column);

	for (size_t k = n; k-- > 0;) {
		const struct alias_pair *p = pair + (column ? column[k] : 0);
		const struct alias_code *c = &p->code[index[k]];
		const uint32_t freq = c->freq, x = state[k];
		const bool full = x >= freq << 16;
		const uint32_t rest = x >> (full ? 16 : 0);
		store_u16(at - 2, (uint16_t)x);
		at -= 2 * full;
		const uint32_t quotient = (uint32_t)(rest * c->reciprocal >> RECIPROCAL_SHIFT);
		state[k] = quotient << WIDE_BITS | p->position[c->start + (rest - quotient * freq)];
	}
	return at;
}

/* The states as docs/FORMAT.md, 5.3 has them; returns what is behind them. */
static uint8_t *put_states(uint8_t *dst, const uint32_t *state)
{
	uint8_t *flags = dst, *low = flags + ALIAS_FLAG_NBYTES, *high = low + ALIAS_LOW_NBYTES, *higher = high + ALIAS_LANES;

	memset(flags, 0, ALIAS_FLAG_NBYTES);
	for (unsigned k = 0; k < ALIAS_LANES; k += 2) {
		const uint32_t two = (state[k] & (TOTAL - 1)) | (state[k + 1] & (TOTAL - 1)) << WIDE_BITS;
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

static size_t encode(const struct enc_alias *e)
{
	const struct kn_enc_args *a = e->args;
	const unsigned width = e->table->width;
	uint8_t *const index = a->scratch, *const literals = index + a->n, *literal = literals;
	uint8_t *const end = a->scratch + kn_encode_bound(a->n), *at = end;
	struct buffer head = { a->dst, 0, 10, false };
	uint32_t state[ALIAS_LANES];

	for (size_t i = 0; i < a->n; i += ALIAS_LANES) {
		const size_t n = MIN(a->n - i, (size_t)ALIAS_LANES);
		if (!(width <= 8 ? find_indices(e, i, n, 1, index + i, &literal) : find_indices(e, i, n, 2, index + i, &literal)))
			return 0;
	}
	for (unsigned k = 0; k < ALIAS_LANES; k++)
		state[k] = TOTAL + (a->carry ? load_u16(a->carry + 2 * k) : 0);
	for (size_t i = ceil_div(a->n, ALIAS_LANES) * ALIAS_LANES; i > 0; i -= ALIAS_LANES) {
		const size_t from = i - ALIAS_LANES;
		if (i > a->n)
			at = code_words(e, from, a->n - from, index + from, state, at);
		else
			at = code_words(e, from, ALIAS_LANES, index + from, state, at);
	}
	buffer_put_varint(&head, (uint64_t)(literal - literals) / word_nbytes(width));
	uint8_t *dst = a->dst + head.nbytes;
	memcpy(dst, literals, (size_t)(literal - literals));
	dst = put_states(dst + (literal - literals), state);
	memcpy(dst, at, (size_t)(end - at));
	return (size_t)(dst - a->dst) + (size_t)(end - at);
}

size_t KN(enc_alias)(const struct kn_enc_args *args)
{
	struct enc_alias *e = alloc_enc_alias(args);

	if (!e)
		return 0;
	const size_t nbytes = encode(e);
	free(e);
	return nbytes;
}

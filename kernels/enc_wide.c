/* enc_wide.c: the encoder of lit.wide. Runs backward through the words, so that the decoder runs forward. Returns 0 if a word has no
 * code and its class pair no escape.
 *
 * First, in word order, each word's symbol index is found and literals are collected; then the states go through the indices, which takes a
 * multiplication by a reciprocal and no branch. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/archive.h"
#include "kernels/body.h"

/* With r = ceil(2^44 / freq), x * r >> 44 is x / freq for all x < freq << 20: x * r exceeds (x << 44) / freq by less than x, x * freq is below
 * 2^44 as freq < 2^12, and x * r stays below 2^64. */
enum { RECIPROCAL_SHIFT = 44 };

struct wide_code {
	uint64_t reciprocal;
	uint16_t freq, start;           /* start: the first slot */
};

struct enc_wide {
	const struct kn_enc_args *args;
	const struct kn_wide *table;
	uint8_t index_of[65536];        /* word -> symbol index, if value[] there agrees */
	struct wide_code code[][256];   /* by class pair and symbol index; freq 0: no code */
};

static struct enc_wide *alloc_enc_wide(const struct kn_enc_args *args)
{
	const struct kn_wide *t = &args->table->wide;
	const unsigned pairs = (unsigned)t->kr * t->kc;
	struct enc_wide *e = calloc(1, sizeof(*e) + pairs * sizeof(e->code[0]));

	if (!e)
		return NULL;
	e->args = args, e->table = t;
	for (unsigned j = 0; j < t->nsym - (unsigned)t->has_escape; j++)
		e->index_of[t->value[j]] = (uint8_t)j;
	for (unsigned pair = 0; pair < pairs; pair++)
		for (unsigned slot = 0; slot < 1u << WIDE_BITS;) {
			const uint32_t entry = t->slot[(size_t)pair << WIDE_BITS | slot], freq = entry >> 20;
			e->code[pair][entry >> 12 & 255] = (struct wide_code){ ((1ull << RECIPROCAL_SHIFT) + freq - 1) / freq, (uint16_t)freq, (uint16_t)slot };
			slot += freq;
		}
	return e;
}

/* Codes of the row class and column classes of the words from i on, i a multiple of 64; *column is NULL if there is one class. */
static inline const struct wide_code (*codes_at(const struct enc_wide *e, size_t i, const uint8_t **column))[256]
{
	const struct kn_enc_args *a = e->args;
	const struct kn_wide *t = e->table;

	*column = a->col_class && t->kc > 1 ? a->col_class + (a->first + i) % a->row_words : NULL;
	if (!a->row_class || t->kr == 1)
		return e->code;
	return e->code + a->row_class[(a->first + i / KN_GROUP * KN_GROUP) / a->row_words] * t->kc;
}

/* Symbol indices of n <= 64 words from i on; appends literals. False if a word cannot be coded. */
static inline __attribute__((always_inline)) bool find_indices(const struct enc_wide *e, size_t i, size_t n, const unsigned size, uint8_t *index,
							       uint8_t **literal)
{
	const struct kn_wide *t = e->table;
	const uint8_t *column, *src = (const uint8_t *)e->args->src + i * size;
	const struct wide_code (*code)[256] = codes_at(e, i, &column);
	const unsigned escape = t->nsym - 1u;

	for (size_t k = 0; k < n; k++) {
		const unsigned word = size == 1 ? src[k] : load_u16(src + 2 * k), j = e->index_of[word];
		const struct wide_code *codes = code[column ? column[k] : 0];
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

/* n <= 64 words from i on, the last first. Renormalisation words go below `at`; the one below them may be written. */
static inline __attribute__((always_inline)) uint8_t *code_words(const struct enc_wide *e, size_t i, const size_t n, const uint8_t *index, uint32_t *state,
								 uint8_t *at)
{
	const uint8_t *column;
	const struct wide_code (*code)[256] = codes_at(e, i, &column);

	for (size_t k = n; k-- > 0;) {
		const struct wide_code *c = &code[column ? column[k] : 0][index[k]];
		const uint32_t freq = c->freq, x = state[k];
		const bool full = x >= (uint64_t)freq << (32 - WIDE_BITS);
		const uint32_t rest = x >> (full ? 16 : 0);
		store_u16(at - 2, (uint16_t)x);
		at -= 2 * full;
		const uint32_t quotient = (uint32_t)(rest * c->reciprocal >> RECIPROCAL_SHIFT);
		state[k] = (quotient << WIDE_BITS) + c->start + (rest - quotient * freq);
	}
	return at;
}

static size_t encode(const struct enc_wide *e)
{
	const struct kn_enc_args *a = e->args;
	const unsigned width = e->table->width;
	uint8_t *const index = a->scratch, *const literals = index + a->n, *literal = literals;
	uint8_t *const end = a->scratch + kn_encode_bound(a->n), *at = end;
	struct buffer head = { a->dst, 0, 10, false };
	uint32_t state[WIDE_LANES];

	for (size_t i = 0; i < a->n; i += WIDE_LANES) {
		const size_t n = MIN(a->n - i, (size_t)WIDE_LANES);
		if (!(width <= 8 ? find_indices(e, i, n, 1, index + i, &literal) : find_indices(e, i, n, 2, index + i, &literal)))
			return 0;
	}
	for (unsigned k = 0; k < WIDE_LANES; k++)
		state[k] = 65536u + (a->carry ? load_u16(a->carry + 2 * k) : 0);
	for (size_t i = ceil_div(a->n, WIDE_LANES) * WIDE_LANES; i > 0; i -= WIDE_LANES) {
		const size_t from = i - WIDE_LANES;
		if (i > a->n)
			at = code_words(e, from, a->n - from, index + from, state, at);
		else
			at = code_words(e, from, WIDE_LANES, index + from, state, at);
	}
	buffer_put_varint(&head, (uint64_t)(literal - literals) / word_nbytes(width));
	uint8_t *dst = a->dst + head.nbytes;
	memcpy(dst, literals, (size_t)(literal - literals));
	dst += literal - literals;
	memcpy(dst, state, sizeof(state));
	dst += sizeof(state);
	memcpy(dst, at, (size_t)(end - at));
	return (size_t)(dst - a->dst) + (size_t)(end - at);
}

size_t KN(enc_wide)(const struct kn_enc_args *args)
{
	struct enc_wide *e = alloc_enc_wide(args);

	if (!e)
		return 0;
	const size_t nbytes = encode(e);
	free(e);
	return nbytes;
}

/* enc_wide.c: the encoder of lit.wide. Returns 0 if a word has no code and the table no escape for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/archive.h"
#include "kernels/body.h"

/* Frequency << 16 | start, by class pair and symbol index. */
struct enc_wide {
	uint16_t index_of[65536];       /* word -> symbol index; 65535: none */
	uint32_t range[KN_MAX_ROWS * KN_MAX_COLS][256];
};

static void turn_around(const struct kn_wide *t, struct enc_wide *out)
{
	const unsigned values = t->nsym - t->has_escape;

	memset(out->index_of, 255, sizeof(out->index_of));
	for (unsigned j = 0; j < values; j++)
		out->index_of[t->value[j]] = (uint16_t)j;
	memset(out->range, 0, sizeof(out->range));
	for (unsigned pair = 0; pair < (unsigned)t->kr * t->kc; pair++)
		for (unsigned slot = 0; slot < 1u << WIDE_BITS;) {
			const uint32_t e = t->slot[(size_t)pair << WIDE_BITS | slot];
			out->range[pair][e >> 12 & 255] = (e >> 20) << 16 | slot;
			slot += e >> 20;
		}
}

static inline unsigned word_at(const struct kn_enc_args *a, unsigned width, size_t i)
{
	return width <= 8 ? ((const uint8_t *)a->src)[i] : ((const uint16_t *)a->src)[i];
}

/* The symbol index to code for a word in a class pair; the escape if it has none. */
static inline unsigned index_for(const struct enc_wide *e, const struct kn_wide *t, const uint32_t *range, unsigned word)
{
	const unsigned j = e->index_of[word];
	return j != 65535 && range[j] ? j : t->nsym - 1u;
}

static inline unsigned pair_at(const struct kn_enc_args *a, const struct kn_wide *t, size_t i)
{
	const unsigned r = a->row_class && t->kr > 1 ? a->row_class[(a->first + i / KN_GROUP * KN_GROUP) / a->row_words] : 0;
	const unsigned c = a->col_class && t->kc > 1 ? a->col_class[(a->first + i) % a->row_words] : 0;
	return r * t->kc + c;
}

/* Appends the literals in word order; NULL if a word cannot be coded. */
static uint8_t *put_literals(const struct kn_enc_args *a, const struct kn_wide *t, const struct enc_wide *e)
{
	struct buffer head = { a->dst, 0, 10, false };
	uint8_t *literal = a->scratch;
	const size_t size = (t->width + 7u) / 8;

	for (size_t i = 0; i < a->n; i++) {
		const uint32_t *range = e->range[pair_at(a, t, i)];
		const unsigned word = word_at(a, t->width, i), j = e->index_of[word];
		if (j != 65535 && range[j])
			continue;
		if (!t->has_escape || !range[t->nsym - 1])
			return NULL;
		memcpy(literal, &word, size);
		literal += size;
	}
	buffer_put_varint(&head, (uint64_t)(literal - a->scratch) / size);
	memcpy(a->dst + head.nbytes, a->scratch, (size_t)(literal - a->scratch));
	return a->dst + head.nbytes + (literal - a->scratch);
}

size_t KN(enc_wide)(const struct kn_enc_args *args)
{
	const struct kn_wide *t = &args->table->wide;
	struct enc_wide *e = malloc(sizeof(*e));
	uint32_t state[WIDE_LANES];

	if (!e)
		return 0;
	turn_around(t, e);
	uint8_t *dst = put_literals(args, t, e), *const end = args->scratch + kn_encode_bound(args->n), *at = end;
	if (!dst) {
		free(e);
		return 0;
	}
	for (unsigned k = 0; k < WIDE_LANES; k++)
		state[k] = 65536u + (args->carry ? load_u16(args->carry + 2 * k) : 0);
	for (size_t i = args->n; i-- > 0;) {
		const uint32_t *range = e->range[pair_at(args, t, i)];
		const uint32_t r = range[index_for(e, t, range, word_at(args, t->width, i))], freq = r >> 16;
		uint32_t x = state[i % WIDE_LANES];
		if (x >= (uint64_t)freq << (32 - WIDE_BITS)) {
			at -= 2;
			store_u16(at, (uint16_t)x);
			x >>= 16;
		}
		state[i % WIDE_LANES] = (x / freq << WIDE_BITS) + (r & 0xffff) + x % freq;
	}
	memcpy(dst, state, sizeof(state));
	dst += sizeof(state);
	memcpy(dst, at, (size_t)(end - at));
	free(e);
	return (size_t)(dst - args->dst) + (size_t)(end - at);
}

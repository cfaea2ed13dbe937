/* enc_rans.c: the encoder of lit.rans. Runs backward through the words, so that the decoder runs forward.
 *
 * What a table cannot say in a word's class pair becomes an escape if the pair has one, else a patch; with more than 8 bits, a word
 * outside base..base+255 is always a patch. A patched word is coded as the pair's commonest symbol (the lowest index of equals).
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"
#include "kernels/body.h"
#include "kernels/rans_item.h"

/* One class pair turned around: symbol and rank -> position. */
struct enc_rows {
	uint8_t freq[64], start[64];    /* of each symbol; positions of symbol j are position[start[j] .. start[j] + freq[j] - 1] in rank order */
	uint8_t position[256];
	uint8_t filler;                 /* the commonest symbol */
};

static void turn_around(const struct kn_rans *t, unsigned row, unsigned column, struct enc_rows *out)
{
	const struct kn_rans_rows *rows = &t->row[row];
	const unsigned nb = 1u << t->log2_nb, c = 256 / nb, base = column * nb;
	unsigned sum = 0;

	out->filler = 0;
	for (unsigned j = 0; j < nb; j++) {
		out->freq[j] = rows->freq[base + j], out->start[j] = (uint8_t)sum;
		sum += out->freq[j];
		if (out->freq[j] > out->freq[out->filler] && j != t->escape)
			out->filler = (uint8_t)j;
	}
	if (out->filler == t->escape || out->freq[out->filler] == 0)
		for (out->filler = 0; out->freq[out->filler] == 0;)
			out->filler++;
	for (unsigned lo = 0; lo < 256; lo++) {
		const unsigned b = base + lo / c;
		const bool own = lo < rows->threshold[b];
		const unsigned j = (own ? b : rows->alias[b]) - base, rank = own ? lo % c : (lo + rows->before[b]) & 255;
		out->position[out->start[j] + rank] = (uint8_t)lo;
	}
}

/* What happens to one word. */
struct choice {
	uint8_t index;                  /* symbol index to code */
	bool escape, patch;
};

struct enc_run {
	const struct kn_enc_args *args;
	const struct kn_rans *table;
	uint8_t index_of[256];          /* byte -> symbol index, 255: none */
	uint8_t tail_of[256];           /* byte -> tail nibble, 15: literal */
	struct enc_rows rows[KN_MAX_ROWS * KN_MAX_COLS];
};

static inline const struct enc_rows *rows_at(const struct enc_run *run, size_t i)
{
	const struct kn_enc_args *a = run->args;
	const struct kn_rans *t = run->table;
	const size_t group = a->first + i / KN_GROUP * KN_GROUP;
	const unsigned r = a->row_class && t->kr > 1 ? a->row_class[group / a->row_words] : 0;
	const unsigned c = a->col_class && t->kc > 1 ? a->col_class[(a->first + i) % a->row_words] : 0;

	return &run->rows[r * t->kc + c];
}

/* The word less the base: a byte if the coded field fits one. */
static inline unsigned offset_of(const struct enc_run *run, size_t i)
{
	const struct kn_enc_args *a = run->args;
	const unsigned w = run->table->width;
	const unsigned word = w <= 8 ? ((const uint8_t *)a->src)[i] : ((const uint16_t *)a->src)[i];

	return (word - run->table->base) & (unsigned)mask_bits(w);
}

static inline struct choice choose(const struct enc_run *run, const struct enc_rows *rows, unsigned offset)
{
	const unsigned escape = run->table->escape;

	if (offset < 256) {
		const unsigned index = run->index_of[offset];
		if (index != 255 && rows->freq[index])
			return (struct choice){ .index = (uint8_t)index };
		if (escape != 255 && rows->freq[escape])
			return (struct choice){ .index = (uint8_t)escape, .escape = true };
	}
	return (struct choice){ .index = rows->filler, .patch = true, .escape = rows->filler == escape };
}

static void start(struct enc_run *run, const struct kn_enc_args *args)
{
	const struct kn_rans *t = &args->table->rans;

	run->args = args, run->table = t;
	memset(run->index_of, 255, sizeof(run->index_of));
	memset(run->tail_of, 15, sizeof(run->tail_of));
	for (unsigned j = 1u << t->log2_nb; j-- > 0;)
		if (j != t->escape)
			run->index_of[t->width < 8 ? t->map[j] & mask_bits(t->width) : t->map[j]] = (uint8_t)j;
	for (unsigned v = 15; v-- > 0;)
		run->tail_of[t->tail[v]] = (uint8_t)v;
	for (unsigned r = 0; r < t->kr; r++)
		for (unsigned c = 0; c < t->kc; c++)
			turn_around(t, r, c, &run->rows[r * t->kc + c]);
}

/* Appends escapes, literals and patches, found in word order. Returns where the states go. */
static uint8_t *put_front(struct enc_run *run, uint8_t *dst)
{
	const struct kn_enc_args *a = run->args;
	uint8_t *const nibble = a->scratch, *const literal = nibble + a->n, *const patch = literal + a->n;
	size_t nescapes = 0, nliterals = 0, npatches = 0;
	struct buffer head = { dst, 0, 30, false };

	for (size_t i = 0; i < a->n; i++) {
		const unsigned offset = offset_of(run, i);
		const struct choice c = choose(run, rows_at(run, i), offset);
		if (c.escape) {
			const uint8_t v = run->tail_of[offset & 255];
			nibble[nescapes++] = v;
			if (v == 15)
				literal[nliterals++] = (uint8_t)offset;
		}
		if (c.patch) {
			const uint32_t at = (uint32_t)i;
			const uint16_t word = (uint16_t)((offset + run->table->base) & mask_bits(run->table->width));
			memcpy(patch + npatches * RANS_PATCH_NBYTES, &at, 4);
			memcpy(patch + npatches++ * RANS_PATCH_NBYTES + 4, &word, 2);
		}
	}
	buffer_put_varint(&head, nescapes);
	buffer_put_varint(&head, nliterals);
	buffer_put_varint(&head, npatches);
	dst += head.nbytes;
	for (size_t i = 0; i < nescapes; i += 2)
		*dst++ = (uint8_t)(nibble[i] | (i + 1 < nescapes ? nibble[i + 1] << 4 : 0));
	memcpy(dst, literal, nliterals);
	dst += nliterals;
	memcpy(dst, patch, npatches * RANS_PATCH_NBYTES);
	return dst + npatches * RANS_PATCH_NBYTES;
}

size_t KN(enc_rans)(const struct kn_enc_args *args)
{
	struct enc_run run;
	uint32_t state[RANS_LANES];

	start(&run, args);
	uint8_t *dst = put_front(&run, args->dst), *const end = args->scratch + kn_encode_bound(args->n), *at = end;
	for (unsigned k = 0; k < RANS_LANES; k++)
		state[k] = 256u + (args->carry ? args->carry[k] : 0);
	for (size_t i = args->n; i-- > 0;) {
		const struct enc_rows *rows = rows_at(&run, i);
		const struct choice c = choose(&run, rows, offset_of(&run, i));
		const uint32_t freq = rows->freq[c.index];
		uint32_t x = state[i % RANS_LANES];
		if (x >= freq << 8) {
			*--at = (uint8_t)x;
			x >>= 8;
		}
		state[i % RANS_LANES] = x / freq << 8 | rows->position[rows->start[c.index] + x % freq];
	}
	for (unsigned k = 0; k < RANS_LANES; k++)
		dst[k] = (uint8_t)state[k], dst[RANS_LANES + k] = (uint8_t)(state[k] >> 8);
	dst += RANS_STATE_NBYTES;
	memcpy(dst, at, (size_t)(end - at));
	return (size_t)(dst - args->dst) + (size_t)(end - at);
}

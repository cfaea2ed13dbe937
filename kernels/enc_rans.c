/* enc_rans.c: the encoder of lit.rans: forward to choose what each word becomes, then backward, so that the decoder runs forward.
 *
 * What a table cannot say in a word's class pair becomes an escape if the pair has one, else a patch; with more than 8 bits, a word
 * outside base..base+255 is always a patch. A patched word is coded as the pair's commonest symbol (the lowest index of equals).
 * These are rare: the choice marks them in a bit map, and only they are looked at again. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/enc_rans.h"

#include "common/archive.h"
#include "kernels/body.h"
#include "kernels/rans_item.h"

#if defined(KN_SET_avx512)
#include "kernels/x86/enc_rans_avx512.h"
#elif defined(KN_SET_avx2)
#include "kernels/x86/enc_rans_avx2.h"
#endif

/* Puts the positions of a class pair in the order of symbols and ranks: a bucket is one run of its own symbol and one of its alias. */
static void fill_positions(const struct kn_rans *t, const struct kn_rans_rows *rows, unsigned base, const uint8_t *start, uint8_t *position)
{
	const unsigned nb = 1u << t->log2_nb, c = 256 / nb;

	for (unsigned b = 0; b < nb; b++) {
		const unsigned first = b * c, threshold = rows->threshold[base + b], alias = rows->alias[base + b] - base;
		uint8_t *own = position + start[b];
		for (unsigned lo = first; lo < threshold; lo++)
			own[lo - first] = (uint8_t)lo;
		for (unsigned lo = threshold; lo < first + c; lo++)
			position[start[alias] + ((lo + rows->before[base + b]) & 255)] = (uint8_t)lo;
	}
}

static void turn_around(const struct kn_rans *t, unsigned row, unsigned column, struct enc_rows *out)
{
	const struct kn_rans_rows *rows = &t->row[row];
	const unsigned nb = 1u << t->log2_nb, base = column * nb;
	unsigned sum = 0, filler = 0;

	for (unsigned j = 0; j < nb; j++) {
		const unsigned freq = rows->freq[base + j], narrow = freq > 1 ? 65536 / freq : 65535;
		out->code[base + j] = (struct enc_code){ freq ? ((1u << 24) + freq - 1) / freq : 0, (uint16_t)(freq << 8), (uint16_t)(column * 256 + sum) };
		out->freq[base + j] = (uint8_t)freq, out->start[base + j] = (uint8_t)sum;
		out->low[base + j] = (uint8_t)narrow, out->high[base + j] = (uint8_t)(narrow >> 8);
		out->packed[base + j] = narrow << 16 | freq << 8 | (sum & 255);
		sum += freq;
		if (freq > rows->freq[base + filler] && j != t->escape)
			filler = j;
	}
	if (filler == t->escape || rows->freq[base + filler] == 0)
		for (filler = 0; rows->freq[base + filler] == 0;)
			filler++;
	out->patched[column] = (uint8_t)(base + filler);
	out->absent[column] = (uint8_t)(base + (t->escape != 255 && rows->freq[base + t->escape] ? t->escape : filler));
	fill_positions(t, rows, base, out->start + base, out->position + column * 256);
}

static void start(struct enc_rans *run, const struct kn_enc_args *args)
{
	const struct kn_rans *t = &args->table->rans;
	const size_t n = args->n;

	run->args = args, run->table = t;
	run->special = (uint64_t *)(((uintptr_t)args->scratch + 7) & ~(uintptr_t)7);
	run->index = (uint8_t *)(run->special + (n + KN_GROUP) / 64);
	run->at = args->scratch + kn_encode_bound(n);
	memset(run->index_of, ENC_NO_INDEX, sizeof(run->index_of));
	memset(run->tail_of, 15, sizeof(run->tail_of));
	for (unsigned j = 1u << t->log2_nb; j-- > 0;)
		if (j != t->escape)
			run->index_of[t->width < 8 ? t->map[j] & mask_bits(t->width) : t->map[j]] = (uint8_t)j;
	for (unsigned v = 15; v-- > 0;)
		run->tail_of[t->tail[v]] = (uint8_t)v;
	for (unsigned r = 0; r < t->kr; r++)
		for (unsigned c = 0; c < t->kc; c++)
			turn_around(t, r, c, &run->rows[r]);
	for (unsigned k = 0; k < RANS_LANES; k++)
		run->state[k] = (uint16_t)(256u + (args->carry ? args->carry[k] : 0));
}

/* The word less the base: a byte, if the table may know it. */
static inline unsigned offset_of(const struct enc_rans *run, size_t i)
{
	const unsigned w = run->table->width;
	const unsigned word = w <= 8 ? ((const uint8_t *)run->args->src)[i] : ((const uint16_t *)run->args->src)[i];

	return (word - run->table->base) & (unsigned)mask_bits(w);
}

/* What the words i..i+n-1 become, n <= 128 of one group: their indices, and the special ones' bits. */
static void choose_words(const struct enc_rans *run, const struct enc_rows *rows, const uint8_t *column, size_t i, size_t n)
{
	const unsigned log2_nb = run->table->log2_nb;
	uint64_t mask = 0;

	for (size_t k = 0; k < n; k++) {
		const unsigned offset = offset_of(run, i + k), c = column ? column[k] : 0;
		const unsigned known = offset < ENC_BIG ? run->index_of[offset] : ENC_NO_INDEX;
		const unsigned index = (known | c << log2_nb) & 255;
		const bool special = known == ENC_NO_INDEX || !rows->freq[index];
		run->index[i + k] = (uint8_t)(!special ? index : offset < ENC_BIG ? rows->absent[c] : rows->patched[c]);
		mask |= (uint64_t)special << k % 64;
		if (k % 64 == 63 || k + 1 == n)
			run->special[(i + k) / 64] = mask, mask = 0;
	}
}

/* Codes the words i..i+n-1, n <= 128 of one group, the last first. */
static void code_words(struct enc_rans *run, const struct enc_rows *rows, size_t i, size_t n)
{
	const uint8_t *index = run->index + i;
	uint8_t *at = run->at;

	for (size_t k = n; k-- > 0;) {
		const struct enc_code *c = &rows->code[index[k]];
		uint32_t x = run->state[k];
		const bool full = x >= c->limit;
		at[-1] = (uint8_t)x;
		at -= full;
		x = full ? x >> 8 : x;
		const uint32_t q = x * c->reciprocal >> 24;
		run->state[k] = (uint16_t)(q << 8 | rows->position[c->start + x - q * (c->limit >> 8)]);
	}
	run->at = at;
}

#ifndef ENC_RANS_VECTOR
/* Whole groups of 128: the n first words, n a multiple of 128. */
static void enc_choose_groups(const struct enc_rans *run, size_t n)
{
	const uint8_t *column;

	for (size_t i = 0; i < n; i += KN_GROUP) {
		const struct enc_rows *rows = enc_rows_at(run, i, &column);
		choose_words(run, rows, column, i, KN_GROUP);
	}
}

static void enc_code_groups(struct enc_rans *run, size_t n)
{
	const uint8_t *column;

	for (size_t i = n; i > 0; i -= KN_GROUP)
		code_words(run, enc_rows_at(run, i - KN_GROUP, &column), i - KN_GROUP, KN_GROUP);
}
#endif

/* What the special words need besides their code, in word order: tail nibbles, literals, patches. Sizes first, then the bytes. */
struct extras {
	size_t nescapes, nliterals, npatches;
	uint8_t *nibble, *literal, *patch;
};

static void add_extra(const struct enc_rans *run, size_t i, struct extras *e)
{
	const struct kn_rans *t = run->table;
	const unsigned offset = offset_of(run, i), nb = 1u << t->log2_nb;
	const bool escape = (run->index[i] & (nb - 1)) == t->escape, patch = !escape || offset >= ENC_BIG;
	const uint8_t v = run->tail_of[offset & 255];

	if (escape) {
		if (e->nibble)
			e->nibble[e->nescapes / 2] |= (uint8_t)(v << (e->nescapes % 2 * 4));
		if (v == 15 && e->literal)
			e->literal[e->nliterals] = (uint8_t)offset;
		e->nescapes++, e->nliterals += v == 15;
	}
	if (patch) {
		if (e->patch) {
			store_u32(e->patch + e->npatches * RANS_PATCH_NBYTES, (uint32_t)i);
			store_u16(e->patch + e->npatches * RANS_PATCH_NBYTES + 4, (uint16_t)((offset + t->base) & mask_bits(t->width)));
		}
		e->npatches++;
	}
}

static struct extras walk_special(const struct enc_rans *run, struct extras e)
{
	for (size_t i = 0; i < run->args->n; i += 64)
		for (uint64_t mask = run->special[i / 64]; mask; mask &= mask - 1)
			add_extra(run, i + (unsigned)__builtin_ctzll(mask), &e);
	return e;
}

/* Appends escapes, literals and patches. Returns where the states go. */
static uint8_t *put_front(const struct enc_rans *run, uint8_t *dst)
{
	struct buffer head = { dst, 0, 30, false };
	struct extras e = walk_special(run, (struct extras){ 0 });

	buffer_put_varint(&head, e.nescapes);
	buffer_put_varint(&head, e.nliterals);
	buffer_put_varint(&head, e.npatches);
	uint8_t *nibble = dst + head.nbytes, *literal = nibble + (e.nescapes + 1) / 2, *patch = literal + e.nliterals;
	memset(nibble, 0, (e.nescapes + 1) / 2);
	walk_special(run, (struct extras){ .nibble = nibble, .literal = literal, .patch = patch });
	return patch + e.npatches * RANS_PATCH_NBYTES;
}

size_t KN(enc_rans)(const struct kn_enc_args *args)
{
	struct enc_rans run;
	const size_t n = args->n, whole = n / KN_GROUP * KN_GROUP;
	uint8_t *const end = args->scratch + kn_encode_bound(n);
	const struct enc_rows *rows = NULL;
	const uint8_t *column = NULL;

	start(&run, args);
	enc_choose_groups(&run, whole);
	if (n > whole) {
		rows = enc_rows_at(&run, whole, &column);
		choose_words(&run, rows, column, whole, n - whole);
	}
	uint8_t *dst = put_front(&run, args->dst);
	if (n > whole)
		code_words(&run, rows, whole, n - whole);
	enc_code_groups(&run, whole);
	for (unsigned k = 0; k < RANS_LANES; k++)
		dst[k] = (uint8_t)run.state[k], dst[RANS_LANES + k] = (uint8_t)(run.state[k] >> 8);
	dst += RANS_STATE_NBYTES;
	memcpy(dst, run.at, (size_t)(end - run.at));
	return (size_t)(dst - args->dst) + (size_t)(end - run.at);
}

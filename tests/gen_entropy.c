/* gen_entropy.c: cases for the ops with tables and the fused kernels: words drawn near what a table was trained on, encoded, and some
 * payloads damaged afterwards.
 *
 * Tables are few and kept, cases are many. Each item is encoded by all sets, which have to agree. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "synth/train.h"
#include "tests/gen.h"
#include "tests/model.h"

enum { KEPT = 24, SAMPLE = 1500 };

/* A table and words that it can code in any class pair. */
struct kept {
	struct kn_table *table;
	uint8_t width, kr, kc;
	uint16_t word[SAMPLE];
};

/* By number; what number k is like depends on k alone. Widths that fused kernels have bodies for come often. */
static void train(struct kept *kept, const struct bc_opinfo *op, unsigned k)
{
	static const uint8_t usual[] = { 8, 9, 8, 6, 7, 10, 5, 4 };
	uint64_t state = (uint64_t)op->code << 32 | k;
	struct buffer body = { 0 };
	struct error err = { "" };
	bool good = false;

	while (!good) {
		const unsigned w = kept->width = k < 16 ? MIN(usual[k % 8], op->max_width) : (uint8_t)gen_width(&state, 1, op->max_width);
		const bool plain = op->table == TABLE_HUFF || k % 3 == 0;
		kept->kr = plain ? 1 : (uint8_t)gen_between(&state, 1, w > 12 ? 2 : KN_MAX_ROWS);
		kept->kc = plain ? 1 : (uint8_t)(1u << gen_between(&state, 0, 2));
		const size_t pairs = (size_t)kept->kr * kept->kc;
		uint32_t *counts = calloc(pairs << w, sizeof(*counts));
		gen_words(&state, k % 4 == 3 ? GEN_UNIFORM : GEN_BELL, 16, SAMPLE, kept->word);
		for (unsigned i = 0; i < SAMPLE; i++) {
			kept->word[i] &= (uint16_t)mask_bits(w);
			for (size_t p = 0; p < pairs; p++)
				counts[p << w | kept->word[i]]++;
			counts[gen_between(&state, 0, pairs - 1) << w | kept->word[i]] += 9;
		}
		good = train_table(op->code, w, 4 + k % (op->table == TABLE_RANS || kept->kc > 2 ? 3 : kept->kc > 1 ? 4 : 5), kept->kr, kept->kc, counts, &body);
		free(counts);
	}
	cr_assert_eq(table_expand(op->table, (struct span){ body.data, body.nbytes }, &kept->table, &err), BRV_OK, "%s: %s",
		     op->name, err.text);
	buffer_free(&body);
}

static const struct kept *kept_table(const struct bc_opinfo *op, unsigned k)
{
	static struct kept all[TABLE_KINDS][KEPT];
	struct kept *kept = &all[op->table][k];

	if (!kept->table)
		train(kept, op, k);
	return kept;
}

/* Class arrays, sometimes where the table does not look at them. `columns` is what the encoder wants; the kernel's may be scaled. */
static void classes(struct gen_case *gen, uint64_t *state, const struct kept *kept, uint8_t **columns)
{
	struct kn_args *a = &gen->args;
	const unsigned scale = 1u << table_shape(kept->table).log2_nb;
	const bool rows = kept->kr > 1 ? true : gen_between(state, 0, 7) == 0, cols = kept->kc > 1;

	*columns = NULL;
	if (a->op == OP_LIT_HUFF || (!rows && !cols))
		return;
	a->row_words = gen_between(state, 1, gen_between(state, 0, 2) ? 400 : 40);
	a->first = gen_between(state, 0, 2 * a->row_words);
	if (rows) {
		const size_t nrows = (a->first + a->n - 1) / a->row_words + 1;
		uint8_t *row = gen_block(gen, nrows, 0);
		for (size_t r = 0; r < nrows; r++)
			row[r] = (uint8_t)gen_between(state, 0, kept->kr - 1u);
		a->row_class = row;
	}
	if (cols) {
		const size_t ncols = a->row_words + KN_CLASS_PAD;
		uint8_t *scaled = gen_block(gen, ncols, 0);
		*columns = gen_block(gen, ncols, 0);
		for (size_t c = 0; c < ncols; c++) {
			(*columns)[c] = (uint8_t)(c < a->row_words ? gen_between(state, 0, kept->kc - 1u) : (*columns)[c - a->row_words]);
			scaled[c] = (uint8_t)((*columns)[c] * scale);
		}
		a->col_class = scaled;
	}
}

static bool has_escape(const struct kept *kept, const struct bc_opinfo *op)
{
	return op->table == TABLE_RANS || (op->table == TABLE_WIDE && kept->table->wide.has_escape) ||
	       (op->table == TABLE_ALIAS && kept->table->alias.has_escape);
}

/* The item, the same from all sets. False if the words cannot be coded. */
static bool encode(struct gen_case *gen, const struct kept *kept, const void *words, const uint8_t *columns, const uint8_t *carry,
		   struct buffer *item)
{
	const struct kn_args *a = &gen->args;
	const size_t bound = kn_encode_bound(a->n);
	struct kn_enc_args enc = { .src = words, .n = a->n, .table = kept->table, .row_class = a->row_class, .col_class = columns,
				   .row_words = a->row_words, .first = a->first, .carry = carry };
	uint8_t *other = malloc(bound);

	enc.scratch = malloc(bound);
	buffer_grow(item, bound);
	for (unsigned s = 0; kn_sets[s]; s++) {
		const struct kn_set *set = kn_sets[s];
		if (!set->supported())
			continue;
		enc.dst = s ? other : item->data;
		const size_t nbytes = set->enc[kept->table->kind](&enc);
		if (s == 0)
			item->nbytes = nbytes;
		cr_assert_eq(nbytes, item->nbytes, "%s: %s: an item of %zu bytes, scalar %zu", set->name, gen->what, nbytes, item->nbytes);
		cr_assert(s == 0 || !memcmp(other, item->data, nbytes), "%s: %s: another item than scalar", set->name, gen->what);
	}
	free(other);
	free(enc.scratch);
	return item->nbytes != 0;
}

/* Raw fields below the coded one, which takes `coded` bits. Shapes that have fast bodies, or any. */
static void fields(struct gen_case *gen, uint64_t *state, unsigned coded, struct kn_field *field, uint8_t *raw[3], const uint8_t *carry)
{
	static const struct { uint8_t coded, raw[3], rotate; } usual[] = {
		{ 8, { 8 }, 1 }, { 9, { 7 }, 1 }, { 8, { 8 }, 0 }, { 9, { 7 }, 0 }, { 6, { 8, 2 }, 0 }, { 7, { 8, 1 }, 0 },
		{ 8, { 24 }, 1 },
		{ 9, { 23 }, 1 }, { 6, { 2 }, 0 }, { 5, { 3 }, 0 }, { 10, { 6 }, 0 }, { 10, { 6 }, 1 }, { 8, { 8, 16 }, 0 },
	};
	struct kn_args *a = &gen->args;
	uint8_t width[3] = { 0 };
	unsigned total = coded, choice = (unsigned)gen_between(state, 0, 2 * ARRAY_LEN(usual) - 1);

	for (unsigned tries = 0; tries < ARRAY_LEN(usual) && choice < ARRAY_LEN(usual) && usual[choice].coded != coded; tries++)
		choice = (choice + 1) % ARRAY_LEN(usual);
	if (choice < ARRAY_LEN(usual) && usual[choice].coded == coded) {
		memcpy(width, usual[choice].raw, sizeof(width));
		a->rotate = usual[choice].rotate;
	} else {
		for (unsigned f = 0, left = 64 - coded, want = (unsigned)gen_between(state, 1, 3); f < want && left; left -= width[f++])
			width[f] = (uint8_t)gen_between(state, 1, MIN(left, 9u + 55u * (unsigned)gen_between(state, 0, 1)));
		a->rotate = 255;
	}
	for (; a->nfield < 3 && width[a->nfield]; a->nfield++)
		total += width[a->nfield];
	if (a->rotate == 255)
		a->rotate = (uint8_t)(gen_between(state, 0, 1) ? gen_between(state, 0, total - 1) : 0);
	a->width = (uint8_t)total, a->coded_width = (uint8_t)coded, a->field = field;
	const unsigned target = (unsigned)gen_between(state, 0, a->nfield - 1u);
	const size_t carry_nbytes = bc_carry_nbytes(a->op);
	bool carried = false;
	for (unsigned f = 0; f < a->nfield; f++) {
		const size_t nbytes = packed_nbytes(a->n, width[f]);
		uint8_t *words = malloc(a->n * 8 + 8);
		raw[f] = malloc(nbytes + 8);
		gen_words(state, (enum gen_shape)gen_between(state, 0, GEN_SHAPES - 1), width[f], a->n, words);
		model_pack(raw[f], words, a->n, width[f]);
		field[f] = (struct kn_field){ .pay_nbytes = nbytes, .width = width[f],
					      .carried = carry && f == target && nbytes >= carry_nbytes };
		if (field[f].carried) {
			carried = true, field[f].pay_nbytes -= carry_nbytes;
			memcpy(raw[f] + field[f].pay_nbytes, carry, carry_nbytes);
		}
		field[f].pay = gen_copy(gen, raw[f], field[f].pay_nbytes);
		free(words);
	}
	if (!carried)
		gen->args.carry = NULL;
}

/* What the whole has to be: coded words above the raw fields, rotated. */
static uint8_t *expected(const struct gen_case *gen, const void *words, unsigned coded, uint8_t *const raw[3])
{
	const struct kn_args *a = &gen->args;
	const unsigned size = word_nbytes(a->width);
	uint8_t *out = malloc(a->n * size);

	for (size_t i = 0; i < a->n; i++) {
		uint64_t v = 0, rotated = 0;
		unsigned shift = 0;
		for (unsigned f = 0; f < a->nfield; shift += a->field[f++].width)
			v |= model_unpack(raw[f], i, a->field[f].width) << shift;
		v |= get_word(words, word_nbytes(coded), i) << shift;
		for (unsigned b = 0; b < a->width; b++)
			rotated |= (v >> (b + a->rotate) % a->width & 1) << b;
		set_word(out, size, i, rotated);
	}
	return out;
}

/* One more escape or literal than there is use for. False if the item cannot easily be given one. */
static bool add_unused(const struct gen_case *gen, struct buffer *item)
{
	const bool rans = gen->args.op == OP_LIT_RANS;
	struct cursor c = { item->data, item->data + item->nbytes, false };
	const uint64_t count = cursor_varint(&c);
	const size_t more = rans ? 1 : ((gen->args.op == OP_LIT_WIDE ? gen->args.table->wide.width : gen->args.table->alias.width) + 7u) / 8;

	if (gen->args.op == OP_LIT_HUFF || count >= 126 || count >= gen->args.n || (rans && count % 2))
		return false;
	if (rans)
		cursor_varint(&c), cursor_varint(&c);
	cursor_bytes(&c, rans ? count / 2 : count * more);
	uint8_t *at = item->data + (c.at - item->data);
	memmove(at + more, at, cursor_left(&c));
	memset(at, 0, more);
	item->data[0]++, item->nbytes += more;
	return true;
}

/* A few of all payloads come damaged, in one of several ways. */
static void damage(struct gen_case *gen, uint64_t *state, struct buffer *item)
{
	const unsigned way = (unsigned)gen_between(state, 0, 24);

	if (way > 5)
		return;
	gen->verdict = GEN_ANY;
	switch (way) {
	case 5: gen->verdict = add_unused(gen, item) ? GEN_DAMAGED : GEN_GOOD; break;
	case 0: item->nbytes = gen_between(state, 0, item->nbytes - 1); break;
	case 1: item->data[gen_between(state, 0, MIN(item->nbytes - 1, 8u))] ^= (uint8_t)gen_between(state, 1, 255); break;
	case 2: item->data[item->nbytes++] = (uint8_t)gen_random(state); break;
	case 3:
		for (size_t i = 0; i < item->nbytes; i++)
			item->data[i] = (uint8_t)gen_random(state);
		break;
	default:
		for (unsigned i = 0; i < 3; i++)
			item->data[gen_between(state, 0, item->nbytes - 1)] = (uint8_t)gen_random(state);
	}
}

/* Words that the table knows well, and if it has an escape some that it does not. */
static void draw_words(uint64_t *state, const struct kept *kept, bool escapes, size_t n, uint8_t *words)
{
	const unsigned size = word_nbytes(kept->width), every = escapes ? 1u << gen_between(state, 1, 8) : 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t r = gen_random(state);
		set_word(words, size, i, every && r % every == 0 ? r >> 32 & mask_bits(kept->width) : kept->word[(r >> 32) % SAMPLE]);
	}
}

bool gen_entropy_case(const struct bc_opinfo *op, int fused, unsigned seed, size_t n, struct gen_case *out)
{
	uint64_t state = (uint64_t)(op->code + 0x100 + fused) << 48 ^ (uint64_t)seed << 32 ^ n;
	uint8_t hidden[BC_CARRY_MAX_NBYTES], *columns, *raw[3] = { NULL };
	struct buffer item = { 0 };
	struct kn_args *a = &out->args;

	gen_begin(out, op, seed, n);
	const unsigned k = (unsigned)gen_between(&state, 0, KEPT - 1);
	const struct kept *kept = kept_table(op, k);
	out->fused = fused;
	a->table = kept->table, a->width = kept->width;
	for (unsigned i = 0; i < sizeof(hidden); i++)
		hidden[i] = (uint8_t)gen_random(&state);
	const bool carries = op->table != TABLE_HUFF && gen_between(&state, 0, 1);
	if (carries)
		out->expect_carry = a->carry = memcpy(gen_block(out, sizeof(hidden), 0), hidden, sizeof(hidden));
	classes(out, &state, kept, &columns);
	if (fused != GEN_PLAIN) {
		out->owned[out->nowned] = malloc(3 * sizeof(struct kn_field));
		fields(out, &state, kept->width, out->owned[out->nowned++], raw, a->carry);
	}
	uint8_t *words = gen_block(out, n * word_nbytes(kept->width), 0);
	draw_words(&state, kept, has_escape(kept, op), n, words);
	const size_t used = strlen(out->what);
	snprintf(out->what + used, sizeof(out->what) - used, ", table %u, coded %u of width %u, %ux%u classes, %u fields, rotated %u%s", k,
		 kept->width, a->width, kept->kr, kept->kc, a->nfield, a->rotate, a->carry ? ", carry" : "");
	const bool coded = encode(out, kept, words, columns, a->carry ? hidden : NULL, &item);
	if (coded) {
		damage(out, &state, &item);
		a->pay = gen_copy(out, item.data, item.nbytes), a->pay_nbytes = item.nbytes;
		a->scratch = gen_block(out, n * 2 + KN_PAD, 0);
		if (out->verdict == GEN_GOOD)
			out->expect = expected(out, words, kept->width, raw);
		else
			out->expect_carry = NULL;
	}
	for (unsigned f = 0; f < 3; f++)
		free(raw[f]);
	buffer_free(&item);
	return coded;
}

/* check_literal.c: calls of the kernels of entropy-coded literals, compared with their definition (model_literal.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "synth/train.h"
#include "tests/model.h"
#include "tests/model_literal.h"
#include "tests/run_case.h"

void literal_from_body(struct literal *out, enum bc_op op, unsigned width, const void *body, size_t nbytes)
{
	struct error err = { "" };

	*out = (struct literal){ .op = (uint8_t)op, .width = width, .kr = 1, .kc = 1 };
	buffer_put(&out->body, body, nbytes);
	cr_assert_eq(table_expand(bc_opinfo(out->op)->table, (struct span){ out->body.data, nbytes }, &out->table, &err), BRV_OK, "%s", err.text);
	if (op == OP_LIT_RANS || op == OP_LIT_ALIAS)
		out->kr = out->body.data[2], out->kc = out->body.data[3], out->width = out->body.data[1];
	else if (op == OP_LIT_WIDE)
		out->kr = out->body.data[1], out->kc = out->body.data[2], out->width = out->body.data[0];
}

bool test_literal_train(struct literal *out, enum bc_op op, unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, unsigned symbols, uint64_t *state)
{
	uint32_t *counts = calloc((size_t)kr * kc << width, sizeof(*counts));
	struct buffer body = { 0 };
	const uint64_t centre = gen_random(state), spread = MAX(symbols + symbols / 4, 2u);

	for (unsigned s = 0; s < symbols; s++) {
		const uint64_t word = (centre + gen_between(state, 0, spread)) & mask_bits(width);
		for (size_t p = 0; p < (size_t)kr * kc; p++)
			counts[p << width | word] += gen_between(state, 0, 3) ? (uint32_t)(gen_random(state) >> gen_between(state, 40, 63)) : 0;
	}
	const bool good = train_table((uint8_t)op, width, log2_nb, kr, kc, counts, &body);
	free(counts);
	if (good)
		literal_from_body(out, op, width, body.data, body.nbytes);
	buffer_free(&body);
	return good;
}

bool test_literal_random(struct literal *out, uint8_t op, unsigned width, enum test_classes classes, unsigned i, uint64_t *state)
{
	enum { MOST_SYMBOLS = 400 };                    /* more than any table holds */
	const unsigned kr = classes != CLASSES_NONE ? (unsigned)gen_between(state, 1, width > 12 ? 2 : 8) : 1;
	const unsigned kc = classes == CLASSES_BOTH ? 1u << gen_between(state, 0, 2) : 1;
	/* 16 buckets and up: to 64 for lit.rans, to 256 in all column classes for lit.alias. The others have no buckets. */
	const unsigned sizes = op == OP_LIT_RANS || kc > 2 ? 3 : kc > 1 ? 4 : 5;

	return test_literal_train(out, op, width, 4 + i % sizes, kr, kc, (unsigned)gen_between(state, 2, MIN(1u << width, (unsigned)MOST_SYMBOLS)), state);
}

void literal_free(struct literal *literal)
{
	free(literal->table);
	buffer_free(&literal->body);
}

/* The carry's bytes are those of the field, at its end; the model's words above all raw fields, rotated. */
static void make_fields(struct gen_case *gen, const struct literal_call *call, uint64_t *state, const uint8_t *words, const uint8_t *carry)
{
	struct kn_args *a = &gen->args;
	struct kn_field *field = gen->owned[gen->nowned++] = calloc(3, sizeof(*field));
	const unsigned coded = a->width, size = word_nbytes(coded);
	uint64_t *whole = calloc(a->n, 8);
	unsigned shift = 0;

	for (unsigned f = 0; f < call->nfield; shift += call->field[f++]) {
		const size_t nbytes = packed_nbytes(a->n, call->field[f]);
		uint8_t *raw = malloc(nbytes + 8), *plain = malloc(a->n * 8);
		const bool carried = call->carry && call->carried == f;
		gen_words(state, GEN_UNIFORM, call->field[f], a->n, plain);
		model_pack(raw, plain, a->n, call->field[f]);
		field[f] = (struct kn_field){ .pay_nbytes = nbytes - (carried ? bc_carry_nbytes(a->op) : 0), .width = call->field[f], .carried = carried };
		if (carried)
			memcpy(raw + field[f].pay_nbytes, carry, bc_carry_nbytes(a->op));
		field[f].pay = gen_copy(gen, raw, field[f].pay_nbytes);
		for (size_t i = 0; i < a->n; i++)
			whole[i] |= model_unpack(raw, i, call->field[f]) << shift;
		free(raw);
		free(plain);
	}
	a->field = field, a->nfield = (uint8_t)call->nfield, a->rotate = (uint8_t)call->rotate;
	a->coded_width = (uint8_t)coded, a->width = (uint8_t)(coded + shift);
	gen->fused = kn_merge_of(a->op);
	gen->expect = malloc(a->n * word_nbytes(a->width));
	for (size_t i = 0; i < a->n; i++) {
		const uint64_t v = whole[i] | get_word(words, size, i) << shift;
		set_word(gen->expect, word_nbytes(a->width), i,
			 (v >> a->rotate | (a->rotate ? v << (a->width - a->rotate) : 0)) & mask_bits(a->width));
	}
	free(whole);
}

static void set_classes(struct gen_case *gen, const struct literal *l, const struct literal_call *call)
{
	struct kn_args *a = &gen->args;
	const size_t ncols = call->row_words + KN_CLASS_PAD;

	a->row_words = call->row_class || call->col_class ? call->row_words : 0, a->first = call->first;
	if (call->row_class)
		a->row_class = memcpy(gen_block(gen, call->nrows, 0), call->row_class, call->nrows);
	if (call->col_class && l->kc > 1) {
		uint8_t *columns = gen_block(gen, ncols, 0);
		for (size_t c = 0; c < ncols; c++)
			columns[c] = (uint8_t)(call->col_class[c] << table_shape(l->table).log2_nb);
		a->col_class = columns;
	}
}

bool literal_check(const struct literal *l, const struct literal_call *call, uint64_t *state, const char *what)
{
	struct gen_case gen;
	uint8_t carry[BC_CARRY_MAX_NBYTES] = { 0 }, *words = calloc(call->n, 8);

	gen_begin(&gen, bc_opinfo(l->op), (unsigned)gen_between(state, 0, 5), call->n);
	const size_t used = strlen(gen.what);
	snprintf(gen.what + used, sizeof(gen.what) - used, ", width %u, %ux%u classes, %u fields, %s", l->width, l->kr, l->kc, call->nfield, what);
	const bool good = model_literal(l, call, words, carry);
	struct kn_args *a = &gen.args;
	a->width = (uint8_t)l->width, a->table = l->table;
	set_classes(&gen, l, call);
	a->pay = gen_copy(&gen, call->item, call->item_nbytes), a->pay_nbytes = call->item_nbytes;
	a->scratch = gen_block(&gen, call->n * 2 + KN_PAD, 0);
	if (call->carry)
		gen.expect_carry = a->carry = memcpy(gen_block(&gen, sizeof(carry), 0), carry, sizeof(carry));
	if (call->nfield) {
		make_fields(&gen, call, state, words, carry);
	} else {
		gen.expect = malloc(call->n * word_nbytes(l->width));
		memcpy(gen.expect, words, call->n * word_nbytes(l->width));
	}
	gen.verdict = good ? GEN_GOOD : GEN_DAMAGED;
	if (!good) {
		free(gen.expect);
		gen.expect = NULL, gen.expect_carry = NULL;
	}
	run_case_everywhere(&gen);
	gen_end(&gen);
	free(words);
	return good;
}

/* A word that the table has; now and then, where there are escapes or patches, any. */
static uint64_t some_word(const struct literal *l, uint64_t *state)
{
	const struct kn_table *t = l->table;
	const uint64_t any = gen_random(state) & mask_bits(l->width);

	if (l->op == OP_LIT_HUFF) {
		uint64_t word = gen_random(state) & mask_bits(l->width);
		while (!t->huff.length[word])
			word = (word + 1) & mask_bits(l->width);
		return word;
	}
	if (l->op == OP_LIT_RANS)
		return gen_between(state, 0, 40) == 0 ? any : (t->rans.base + t->rans.map[gen_between(state, 0, (1u << t->rans.log2_nb) - 1)]) & mask_bits(l->width);
	const bool escape = l->op == OP_LIT_WIDE ? t->wide.has_escape : t->alias.has_escape;
	const unsigned nvalues = (l->op == OP_LIT_WIDE ? t->wide.nsym : t->alias.nsym) - escape;
	const uint16_t *value = l->op == OP_LIT_WIDE ? t->wide.value : t->alias.value;
	return escape && gen_between(state, 0, 40) == 0 ? any : value[gen_between(state, 0, nvalues - 1u)];
}

static bool encode_everywhere(const struct literal *l, const struct literal_call *call, const void *words, const uint8_t *carry, struct buffer *item,
			      const char *what)
{
	const size_t bound = kn_encode_bound(call->n);
	uint8_t *other = malloc(bound);
	struct kn_enc_args enc = { .src = words, .n = call->n, .table = l->table, .row_class = call->row_class, .row_words = call->row_words,
				   .first = call->first, .col_class = l->kc > 1 ? call->col_class : NULL, .carry = call->carry ? carry : NULL,
				   .scratch = malloc(bound) };

	buffer_grow(item, bound + 16);
	for (unsigned s = 0; kn_sets[s]; s++) {
		if (!kn_sets[s]->supported())
			continue;
		enc.dst = s ? other : item->data;
		const size_t nbytes = kn_sets[s]->enc[l->table->kind](&enc);
		if (s == 0)
			item->nbytes = nbytes;
		cr_assert(nbytes == item->nbytes && (s == 0 || !memcmp(other, item->data, nbytes)), "%s: %s: n %zu: another item than scalar",
			  kn_sets[s]->name, what, call->n);
	}
	free(other);
	free(enc.scratch);
	return item->nbytes != 0;
}

/* One damage: bits flipped, cut, lengthened, or random states. */
static size_t damage(uint8_t *item, size_t nbytes, uint64_t *state)
{
	switch (gen_between(state, 0, 4)) {
	case 0: item[gen_between(state, 0, nbytes - 1)] ^= (uint8_t)(1u << gen_between(state, 0, 7)); return nbytes;
	case 1: return gen_between(state, 0, nbytes - 1);
	case 2: item[nbytes] = (uint8_t)gen_random(state); return nbytes + gen_between(state, 1, 2);
	case 3: item[gen_between(state, 0, MIN(nbytes - 1, 3u))] = (uint8_t)gen_between(state, 0, 3); return nbytes;
	default:
		for (size_t i = gen_between(state, 0, nbytes - 1); i < nbytes; i++)
			item[i] = (uint8_t)gen_random(state);
		return nbytes;
	}
}

void literal_exercise(const struct literal *l, struct literal_call call, unsigned damages, uint64_t *state, const char *what)
{
	const size_t nrows = call.row_words ? (call.first + call.n) / call.row_words + 2 : 0;
	uint8_t *rows = calloc(nrows + 1, 1), *columns = calloc(call.row_words + KN_CLASS_PAD, 1), *words = malloc(call.n * 2);
	uint8_t carry[BC_CARRY_MAX_NBYTES];
	struct buffer item = { 0 };

	for (size_t r = 0; r < nrows; r++)
		rows[r] = (uint8_t)gen_between(state, 0, l->kr - 1);
	for (size_t c = 0; call.row_words && c < call.row_words + KN_CLASS_PAD; c++)
		columns[c] = c < call.row_words ? (uint8_t)gen_between(state, 0, l->kc - 1) : columns[c - call.row_words];
	if (call.row_words)
		call.row_class = rows, call.col_class = columns, call.nrows = nrows;
	for (size_t i = 0; i < call.n; i++)
		set_word(words, word_nbytes(l->width), i, some_word(l, state));
	for (unsigned i = 0; i < sizeof(carry); i++)
		carry[i] = (uint8_t)gen_random(state);
	/* Only lit.huff, and lit.wide and lit.alias without an escape in some class pair, may refuse. */
	if (!encode_everywhere(l, &call, words, carry, &item, what)) {
		cr_assert(l->op == OP_LIT_WIDE || l->op == OP_LIT_ALIAS, "%s: cannot be encoded", what);
	} else {
		uint8_t *decoded = malloc(call.n * 2), got[BC_CARRY_MAX_NBYTES];
		call.item = item.data, call.item_nbytes = item.nbytes;
		cr_assert(literal_check(l, &call, state, what), "%s: what was encoded is damaged", what);
		model_literal(l, &call, decoded, got);
		cr_assert(!memcmp(decoded, words, call.n * word_nbytes(l->width)), "%s: n %zu: other words come back", what, call.n);
		cr_assert(!call.carry || !memcmp(got, carry, bc_carry_nbytes(l->op)), "%s: n %zu: another carry comes back", what, call.n);
		uint8_t *broken = malloc(item.nbytes + 16);
		for (unsigned d = 0; d < damages; d++) {
			memcpy(broken, item.data, item.nbytes);
			call.item = broken, call.item_nbytes = damage(broken, item.nbytes, state);
			literal_check(l, &call, state, "damaged");
		}
		free(broken);
		free(decoded);
	}
	buffer_free(&item);
	free(rows);
	free(columns);
	free(words);
}

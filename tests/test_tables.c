/* test_tables.c: entropy tables: bodies that are refused, any bytes as a body, and tables made from counts: that they come out valid, close to the
 * entropy, and as costly as their cost says. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "synth/train.h"
#include "tests/gen.h"

static enum brv_status expand(uint8_t kind, const void *body, size_t nbytes)
{
	struct error err = { "" };
	struct kn_table *table;
	/* a copy of the exact size: a sanitizer sees what is read beyond it */
	uint8_t *copy = malloc(nbytes + 1);

	memcpy(copy + 1, body, nbytes);
	const enum brv_status status = table_expand(kind, (struct span){ copy + 1, nbytes }, &table, &err);
	cr_assert_eq(status == BRV_OK, table != NULL);
	cr_assert(status == BRV_OK || err.text[0], "a failure without a text");
	cr_assert(status != BRV_OK || table_expanded_nbytes(kind, (struct span){ copy + 1, nbytes }) > 0);
	free(table);
	free(copy);
	return status;
}
#define BODY(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

Test(tables, unknown_kind)
{
	cr_assert_eq(expand(0, BODY(0, 1, 0x11)), BRV_VERSION);
	cr_assert_eq(expand(TABLE_KINDS, BODY(0, 1, 0x11)), BRV_VERSION);
	cr_assert_eq(expand(255, "", 0), BRV_VERSION);
}

Test(tables, huff)
{
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 1, 0x11)), BRV_OK);
	cr_assert_eq(expand(TABLE_HUFF, BODY(5, 7, 0x21, 0x02)), BRV_OK);
	cr_assert_eq(expand(TABLE_HUFF, BODY(254, 255, 0x11)), BRV_OK);
	/* lengths 1, 2, ..., 11, 12, 12 */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 12, 0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0x0c)), BRV_OK);
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 12, 0x21, 0x43, 0x65, 0x87, 0xa9, 0xdb, 0x0d)), BRV_DAMAGED);      /* 13 bits */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 1, 0x21)), BRV_DAMAGED);                /* code space not filled */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 2, 0x11, 0x01)), BRV_DAMAGED);          /* more than filled */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 0, 0x01)), BRV_DAMAGED);                /* one symbol */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 1, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_HUFF, BODY(1, 0, 0x11)), BRV_DAMAGED);                /* last before first */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 2, 0x11, 0x10)), BRV_DAMAGED);          /* the unused nibble */
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 1, 0x11, 0)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_HUFF, BODY(0, 1)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_HUFF, "", 0), BRV_DAMAGED);
}

enum { HEAD = 8, TAIL = 15 };

/* A valid table with byte `at` changed. */
static enum brv_status rans_with(unsigned log2_nb, unsigned kr, unsigned kc, int at, uint8_t value, int more)
{
	const unsigned nb = 1u << log2_nb, log2_c = 8 - log2_nb;
	const size_t nbytes = HEAD + nb + TAIL + (size_t)kr * kc * nb;
	uint8_t body[HEAD + 64 + TAIL + 32 * 64 + 8] = { (uint8_t)log2_nb, 9, (uint8_t)kr, (uint8_t)kc, 0, 1, 255, 0 };

	for (size_t p = 0; p < (size_t)kr * kc; p++)
		for (unsigned b = 0; b < nb; b++)
			body[HEAD + nb + TAIL + p * nb + b] = (uint8_t)(((1u << log2_c) - 1) | b << log2_c);
	if (at >= 0)
		body[at] = value;
	return expand(TABLE_RANS, body, (size_t)((int)nbytes + more));
}

Test(tables, rans)
{
	for (unsigned log2_nb = 4; log2_nb <= 6; log2_nb++)
		for (unsigned kr = 1; kr <= 8; kr++)
			for (unsigned kc = 1; kc <= 4; kc *= 2)
				cr_assert_eq(rans_with(log2_nb, kr, kc, -1, 0, 0), BRV_OK);
	cr_assert_eq(rans_with(4, 1, 1, -1, 0, 1), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, -1, 0, -1), BRV_DAMAGED);
	for (int cut = 1; cut <= HEAD + 16 + TAIL + 16; cut++)
		cr_assert_eq(rans_with(4, 1, 1, -1, 0, -cut), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, 0, 3, 0), BRV_DAMAGED);         /* NB */
	cr_assert_eq(rans_with(4, 1, 1, 0, 7, 0), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, 1, 0, 0), BRV_DAMAGED);         /* width */
	cr_assert_eq(rans_with(4, 1, 1, 1, 17, 0), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, 1, 8, 0), BRV_DAMAGED);         /* base 256 in 8 bits */
	cr_assert_eq(rans_with(4, 1, 1, 2, 0, 0), BRV_DAMAGED);         /* classes */
	cr_assert_eq(rans_with(4, 1, 1, 2, 9, 0), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, 3, 3, 0), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, 6, 15, 0), BRV_OK);             /* escape */
	cr_assert_eq(rans_with(4, 1, 1, 6, 16, 0), BRV_DAMAGED);
	cr_assert_eq(rans_with(4, 1, 1, 7, 1, 0), BRV_DAMAGED);         /* reserved */
}

Test(tables, rans_symbol_with_all_positions)
{
	uint8_t body[HEAD + 16 + TAIL + 16] = { 4, 8, 1, 1, 0, 0, 255, 0 };

	/* thresholds 0: every bucket belongs to symbol 3 */
	memset(body + HEAD + 16 + TAIL, 3 << 4, 16);
	cr_assert_eq(expand(TABLE_RANS, body, sizeof(body)), BRV_DAMAGED);
	body[HEAD + 16 + TAIL] = 1 | 3 << 4; /* one position for symbol 0 */
	cr_assert_eq(expand(TABLE_RANS, body, sizeof(body)), BRV_OK);
}

Test(tables, wide)
{
	/* 2048 and 2048: k = 12, m = 0 twice */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_OK);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 1, 1, 10, 0x0c, 0x00, 0x06, 0x00)), BRV_OK);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x40)), BRV_DAMAGED); /* a bit of the filling */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0x1c, 0x00, 0x06, 0x00)), BRV_DAMAGED); /* 2049 + 2048 */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0xfb, 0x3f, 0x06, 0x00)), BRV_DAMAGED); /* a sum below 4096 */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0x0d, 0x00, 0x06, 0x00)), BRV_DAMAGED); /* k = 13 */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 250, 1, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED); /* a value above 255 */
	cr_assert_eq(expand(TABLE_WIDE, BODY(0, 1, 1, 0, 1, 0, 0, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(17, 1, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 0, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 9, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 3, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 2, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 0, 10, 0x0c, 0x00)), BRV_DAMAGED);     /* one symbol */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_WIDE, "", 0), BRV_DAMAGED);
}

/* All 4096 slots for one symbol: a frequency that a state could not take. */
/* 3072 and 1024 of 4096, as in tests/ops/test_alias.c. */
Test(tables, alias)
{
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_OK);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(8, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_OK);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 1, 1, 10, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_OK);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(3, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(9, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 0, 1, 1, 0, 1, 0, 0, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 17, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 0, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 9, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 3, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 8, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(8, 8, 1, 2, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED); /* 512 buckets */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 2, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 16, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED); /* 17 symbols in 16 buckets */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 0, 10, 0x00, 0x10)), BRV_DAMAGED);                     /* one symbol */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 250, 1, 9, 0x00, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED); /* a value above 255 */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x40)), BRV_DAMAGED); /* a bit of the filling */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00, 0x00)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0c, 0x00)), BRV_DAMAGED); /* 2048 and 1024 */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x80, 0x0d, 0x00)), BRV_DAMAGED); /* 3584 and 1024 */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x20, 0x00, 0x0d, 0x00)), BRV_DAMAGED); /* k = 13 */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1, 10, 9, 0x02, 0x10, 0x00, 0x0d, 0x00)), BRV_DAMAGED); /* k = -1 */
	cr_assert_eq(expand(TABLE_ALIAS, BODY(4, 8, 1, 1, 0, 1)), BRV_DAMAGED);
	cr_assert_eq(expand(TABLE_ALIAS, "", 0), BRV_DAMAGED);
}

Test(tables, wide_frequency_4096)
{
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0xfc, 0xff, 0x00)), BRV_OK);         /* 4095 and 1 */
	cr_assert_eq(expand(TABLE_WIDE, BODY(8, 1, 1, 0, 1, 10, 9, 0xfc, 0x7f, 0x00)), BRV_DAMAGED);    /* 4095 alone */
}

Test(tables, any_bytes)
{
	uint64_t state = 8;
	unsigned good = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint8_t body[200];
		const size_t nbytes = gen_between(&state, 0, sizeof(body));
		const uint8_t kind = (uint8_t)gen_between(&state, 1, 3);
		for (size_t k = 0; k < nbytes; k++)
			body[k] = (uint8_t)(i & 1 ? gen_random(&state) : gen_between(&state, 0, 16));
		if (kind == TABLE_RANS && nbytes >= HEAD + 16 + TAIL + 16 && i & 2)
			memcpy(body, (const uint8_t[]){ 4, 9, 1, 1, 7, 0, 15, 0 }, HEAD);
		good += expand(kind, body, kind == TABLE_RANS && i & 2 ? MIN(nbytes, HEAD + 16u + TAIL + 16u) : nbytes) == BRV_OK;
	}
	cr_assert(good > 10, "only %u valid", good);
}

/* Counts in all shapes: few symbols, many, flat, steep. */
static void make_counts(uint64_t *state, size_t symbols, size_t pairs, uint32_t *counts)
{
	const uint64_t centre = gen_random(state), spread = gen_between(state, 1, MIN(symbols, 500u));
	const unsigned steep = (unsigned)gen_between(state, 0, 12);

	memset(counts, 0, symbols * pairs * sizeof(*counts));
	for (size_t p = 0; p < pairs; p++)
		for (uint64_t s = 0; s <= spread; s++)
			counts[p * symbols + (centre + s) % symbols] = gen_between(state, 0, 5) ? (uint32_t)(gen_random(state) >> (44 + gen_between(state, 0, steep))) : 0;
}

static double entropy_bits(size_t symbols, size_t pairs, const uint32_t *counts)
{
	double bits = 0;

	for (size_t p = 0; p < pairs; p++) {
		double all = 0;
		for (size_t s = 0; s < symbols; s++)
			all += counts[p * symbols + s];
		for (size_t s = 0; s < symbols; s++)
			if (counts[p * symbols + s])
				bits -= counts[p * symbols + s] * log2(counts[p * symbols + s] / all);
	}
	return bits;
}

Test(tables, trained, .timeout = 120)
{
	uint64_t state = 9;
	unsigned made[TABLE_KINDS] = { 0 };

	for (unsigned i = 0; i < 500; i++) {
		const uint8_t kind = (uint8_t)(1 + i % (TABLE_KINDS - 1)), op = (uint8_t)(OP_LIT_HUFF + kind - TABLE_HUFF);
		const unsigned width = kind == TABLE_HUFF ? (unsigned)gen_between(&state, 1, 8) : gen_width(&state, 1, 13);
		const unsigned kr = kind == TABLE_HUFF ? 1 : (unsigned)gen_between(&state, 1, 8), kc = kind == TABLE_HUFF ? 1 : 1u << gen_between(&state, 0, 2);
		const size_t symbols = (size_t)1 << width, pairs = (size_t)kr * kc;
		uint32_t *counts = malloc(symbols * pairs * sizeof(*counts));
		struct buffer body = { 0 };
		struct kn_table *table;
		struct error err = { "" };
		double words = 0;

		make_counts(&state, symbols, pairs, counts);
		for (size_t k = 0; k < symbols * pairs; k++)
			words += counts[k];
		const bool good = train_table(op, width, (unsigned)gen_between(&state, 4, kind == TABLE_RANS || kc > 2 ? 6 : kc > 1 ? 7 : 8), kr, kc, counts, &body);
		cr_assert(good || body.nbytes == 0, "a body without a table");
		if (good) {
			made[kind]++;
			cr_assert_eq(table_expand(kind, (struct span){ body.data, body.nbytes }, &table, &err), BRV_OK, "%u: %s", i, err.text);
			const double bits = table_cost_bits(table, counts), least = entropy_bits(symbols, pairs, counts);
			cr_assert(isfinite(bits), "%u: kind %u, width %u: the table cannot code its own counts", i, kind, width);
			cr_assert(bits >= least * (1 - 1e-9), "%u: %g bits, less than the entropy %g", i, bits, least);
			/* Huffman wastes less than a bit a word. */
			if (kind == TABLE_HUFF)
				cr_assert(bits <= least + words, "%u: %g bits, entropy %g", i, bits, least);
			free(table);
		}
		buffer_free(&body);
		free(counts);
	}
	for (unsigned kind = 1; kind < TABLE_KINDS; kind++)
		cr_assert(made[kind] > 80, "kind %u: %u made", kind, made[kind]);
}

Test(tables, nothing_to_train_on)
{
	uint32_t counts[256] = { 0 };
	struct buffer body = { 0 };

	for (unsigned used = 0; used < 2; used++) {
		counts[77] = used * 1000;
		cr_assert(!train_huff(8, counts, &body) && !train_rans(8, 4, 1, 1, counts, &body) && !train_wide(8, 1, 1, counts, &body) && !train_alias(8, 6, 1, 1, counts, &body));
		cr_assert_eq(body.nbytes, 0);
	}
	buffer_free(&body);
}

/* What is coded takes what the cost says, within a percent and a few bytes. */
Test(tables, cost_is_true, .timeout = 120)
{
	enum { WORDS = 30000 };
	static uint8_t words[2 * WORDS], dst[10 * WORDS + 4096], scratch[10 * WORDS + 4096];
	uint64_t state = 10;

	for (unsigned i = 0; i < 60; i++) {
		const uint8_t kind = (uint8_t)(1 + i % (TABLE_KINDS - 1)), op = (uint8_t)(OP_LIT_HUFF + kind - TABLE_HUFF);
		const unsigned width = kind == TABLE_HUFF ? (unsigned)gen_between(&state, 2, 8) : gen_width(&state, 2, 12);
		uint32_t *counts = calloc((size_t)1 << width, sizeof(*counts));
		struct buffer body = { 0 };
		struct kn_table *table = NULL;
		struct error err;

		gen_words(&state, i % 2 ? GEN_BELL : GEN_RUNS, width, WORDS, words);
		for (unsigned k = 0; k < WORDS; k++)
			counts[get_word(words, word_nbytes(width), k)]++;
		const bool good = train_table(op, width, 4 + i / 4 % (kind == TABLE_RANS ? 3 : 5), 1, 1, counts, &body);
		if (good && table_expand(kind, (struct span){ body.data, body.nbytes }, &table, &err) == BRV_OK) {
			const struct kn_enc_args args = { .dst = dst, .src = words, .n = WORDS, .table = table, .scratch = scratch };
			const size_t nbytes = kn_sets[0]->enc[kind](&args);
			const double said = table_cost_bits(table, counts) / 8 + item_overhead_nbytes(kind, false);
			cr_assert(fabs((double)nbytes - said) < .01 * said + 40, "%u: kind %u, width %u: %zu bytes, %g expected", i, kind, width, nbytes, said);
		}
		free(table);
		buffer_free(&body);
		free(counts);
	}
}

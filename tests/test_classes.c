/* test_classes.c: classes are found where they were planted, the same in every kernel set; and what tensors of a kind have in common is found again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "synth/classes.h"
#include "synth/estimate.h"
#include "synth/kin.h"
#include "synth/program_for.h"
#include "tests/gen.h"

/* Rows and lines of every awkward count, in 1 to 16 classes: each set's sums are those of the definition. */
Test(classes, costs_are_the_same_in_every_set)
{
	static const struct { size_t n, stride; unsigned classes, labels; bool both; } shapes[] = {
		{ 1, 64, 1, 1, false }, { 2, 64, 2, 3, true }, { 3, 128, 4, 4, true }, { 511, 64, 5, 16, true }, { 1025, 192, 16, 8, true }, { 512, 64, 8, 16, false },
	};
	uint64_t state = 1;

	for (unsigned i = 0; i < ARRAY_LEN(shapes); i++) {
		const size_t n = shapes[i].n, stride = shapes[i].stride, ncosts = (size_t)shapes[i].labels * shapes[i].classes * 32;
		uint8_t *symbol = malloc(n * stride), *label = malloc(n), *cost = malloc(ncosts);
		uint32_t *sum = malloc(shapes[i].classes * stride * sizeof(*sum)), *expected = calloc(shapes[i].classes * stride, sizeof(*sum));
		cr_assert(symbol && label && cost && sum && expected);
		for (size_t k = 0; k < n * stride; k++)
			symbol[k] = (uint8_t)(gen_random(&state) % (shapes[i].both ? 32 : 16));
		for (size_t k = 0; k < n; k++)
			label[k] = (uint8_t)(gen_random(&state) % shapes[i].labels);
		for (size_t k = 0; k < ncosts; k++)
			cost[k] = gen_random(&state) % 4 ? 127 : (uint8_t)(gen_random(&state) % 128);
		for (unsigned k = 0; k < shapes[i].classes; k++)
			for (size_t r = 0; r < n; r++)
				for (size_t l = 0; l < stride; l++)
					expected[k * stride + l] += cost[(label[r] * shapes[i].classes + k) * 32 + symbol[r * stride + l]];
		for (unsigned s = 0; kn_sets[s]; s++) {
			if (!kn_sets[s]->supported())
				continue;
			memset(sum, 0, shapes[i].classes * stride * sizeof(*sum));
			kn_sets[s]->class_costs(&(struct kn_class_args){ symbol, stride, n, label, shapes[i].classes, shapes[i].both, cost, sum });
			cr_expect_arr_eq(sum, expected, shapes[i].classes * stride * sizeof(*sum), "%s, shape %u", kn_sets[s]->name, i);
		}
		free(symbol), free(label), free(cost), free(sum), free(expected);
	}
}

/* BF16 words whose exponents depend on their row's and their column's class: rows that were made alike, and only these, have one label. */
Test(classes, planted_ones_are_found)
{
	enum { ROWS = 200, COLS = 333, KR = 4, KC = 2 };
	static uint16_t words[ROWS * COLS];
	int row_as[KR] = { -1, -1, -1, -1 }, col_as[KC] = { -1, -1 };
	uint64_t state = 7;
	struct classes classes;

	for (unsigned r = 0; r < ROWS; r++)
		for (unsigned c = 0; c < COLS; c++)
			words[r * COLS + c] = (uint16_t)((100 + 2 * (r % KR) + c * KC / COLS * 8 + gen_random(&state) % 3) << 7 | (gen_random(&state) & 0x807f));
	const struct class_view view = { .words = words, .width = 16, .shift = 7, .bits = 8 };
	cr_assert(classes_build(&classes, &view, ROWS, COLS, KR, KC, 1 << 20));
	for (unsigned r = 0; r < ROWS; r++) {
		row_as[r % KR] = row_as[r % KR] < 0 ? classes.row[r] : row_as[r % KR];
		cr_expect_eq(classes.row[r], row_as[r % KR], "row %u", r);
	}
	for (unsigned c = 0; c < COLS; c++) {
		const unsigned k = c * KC / COLS;
		col_as[k] = col_as[k] < 0 ? classes.col[c] : col_as[k];
		cr_expect_eq(classes.col[c], col_as[k], "column %u", c);
	}
	for (unsigned k = 1; k < KR; k++)
		cr_expect_neq(row_as[k], row_as[k - 1]);
	cr_expect_neq(col_as[0], col_as[1]);
	classes_free(&classes);
}

/* What estimates say lies within a hundredth of what the tables cost that are made of the same counts. */
Test(classes, estimates_are_close)
{
	enum { PAIRS = 4 };
	uint64_t state = 3;

	for (unsigned width = 4; width <= 11; width++)
		for (unsigned log2_nb = 4; log2_nb <= 6; log2_nb++) {
			const size_t symbols = (size_t)1 << width;
			uint32_t *counts = calloc(PAIRS * symbols, sizeof(*counts)), *flat = calloc(symbols, sizeof(*flat));
			struct estimator e;
			cr_assert(counts && flat);
			for (unsigned i = 0; i < 40000; i++) {
				/* A hump that most symbols belong to, wider from pair to pair. */
				const unsigned p = i % PAIRS;
				uint64_t s = symbols / 2;
				for (unsigned k = 0; k < 4 + 2 * p; k++)
					s += gen_random(&state) % 5 - 2;
				counts[p * symbols + s % symbols]++, flat[s % symbols]++;
			}
			cr_assert(estimator_make(&e, width, flat) && estimator_widen(&e, flat));
			for (uint8_t op = OP_LIT_RANS; op <= OP_LIT_ALIAS; op++) {
				const enum bc_table kind = bc_opinfo(op)->table;
				struct buffer body = { 0 };
				struct kn_table *table = NULL;
				double nbytes;
				cr_assert(train_table(op, width, log2_nb, PAIRS, 1, counts, &body));
				cr_assert_eq(table_expand((uint8_t)kind, (struct span){ body.data, body.nbytes }, &table, NULL), BRV_OK);
				const double exact = table_cost_bits(table, counts);
				const double bits = kind == TABLE_WIDE ? estimate_wide(&e, PAIRS, counts, &nbytes) : kind == TABLE_RANS ?
							estimate_rans(&e, log2_nb, PAIRS, counts, &nbytes) : estimate_alias(&e, log2_nb, PAIRS, counts, &nbytes);
				cr_expect(bits > .99 * exact && bits < 1.01 * exact, "width %u, %s %u: %.0f for %.0f", width, bc_opinfo(op)->name, 1u << log2_nb, bits, exact);
				cr_expect(nbytes > .95 * (double)body.nbytes && nbytes < 1.05 * (double)body.nbytes, "width %u: table of %.0f for %zu", width, nbytes, body.nbytes);
				free(table);
				buffer_free(&body);
			}
			free(counts), free(flat);
		}
}

static void weights(uint16_t *words, size_t n, unsigned exponent, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		words[i] = (uint16_t)((gen_random(state) & 0x807f) | (exponent + gen_random(state) % 4 * (gen_random(state) % 2)) << 7);
}

/* A second layer of weights follows the first, and is not searched; one that looks different is. */
Test(classes, layers_follow_each_other)
{
	enum { N = 20000 };
	static uint16_t words[N];
	const struct synth_plan plan = { .model = cost_model(COST_BALANCED, COST_AVX512), .limits = { 2, 6, 256, 3, 8 }, .sample_words = 65536, .class_budget = 1 << 20,
					 .kr = 1, .kc = 1, .pair_words = 8192, .chunk_nbytes = 256 << 10, .prior = alloc_prior() };
	const struct source source = { .words = words, .nwords = N, .width = 16, .dtype = dtype_by_name("BF16", 4)->code };
	struct kinds *kinds = alloc_kinds();
	struct kin_example found;
	char text[2][256];
	uint64_t state = 5;

	cr_assert(kinds && plan.prior);
	struct kin *kin = kinds_find(kinds, &(struct kind){ 16, source.dtype, N, 0, kind_name("layer.0.w", 9) });
	cr_assert_eq(kin, kinds_find(kinds, &(struct kind){ 16, source.dtype, N, 0, kind_name("layer.11.w", 10) }));
	cr_assert_neq(kin, kinds_find(kinds, &(struct kind){ 16, source.dtype, N, 0, kind_name("layer.0.v", 9) }));
	for (unsigned layer = 0; layer < 3; layer++) {
		struct coded_stream stream = { 0 };
		unsigned expansions = 0;
		weights(words, N, layer < 2 ? 110 + layer : 120, &state);
		for (size_t i = 0; layer == 2 && i < N; i++)
			words[i] = (uint16_t)(i * i);
		cr_assert_eq(program_like(&plan, &source, kin, &stream, &found, &expansions), BRV_OK);
		cr_expect_eq(expansions == 0, layer == 1, "layer %u: %u expansions", layer, expansions);
		cr_expect_eq(found.n == 0, layer == 1);
		if (layer < 2)
			program_print(&stream.variant[0].program, text[layer], sizeof(text[layer]));
		if (found.n) {
			struct kin_example *example = malloc(sizeof(*example));
			cr_assert(example);
			*example = found;
			kin_add(kin, example);
		}
		coded_stream_free(&stream);
	}
	cr_expect_str_eq(text[0], text[1]);
	free_kinds(kinds);
	free_prior((struct prior *)plan.prior);
}

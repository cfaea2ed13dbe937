/* test_search.c: the search finds the programs that streams were made with, and its order is what the prior says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "synth/program_for.h"
#include "tests/gen.h"
#include "tests/model.h"

enum { N = 4096 };

static const struct search_limits generous = { .expansions = 64, .closings = 64, .nodes = 1024, .depth = 4, .window = HUGE_VAL };

/* The best program for n words of a type, under a prior, as text. */
static void find(const void *words, size_t n, const char *dtype, unsigned width, const struct prior *prior, const struct search_limits *limits, char text[256],
		 struct prior *learn)
{
	const struct synth_plan plan = { .model = cost_model(COST_SIZE, COST_AVX512), .limits = *limits, .prior = prior, .sample_words = 1 << 20,
					 .class_budget = 1 << 20, .kr = 4, .kc = 4, .pair_words = 8192, .chunk_nbytes = 256 << 10 };
	const struct source source = { .words = words, .nwords = n, .width = width, .dtype = dtype_by_name(dtype, strlen(dtype))->code };
	struct coded_stream stream = { 0 };

	cr_assert_eq(program_for(&plan, &source, &stream, learn, NULL, NULL), BRV_OK);
	program_print(&stream.variant[0].program, text, 256);
	coded_stream_free(&stream);
}

static uint64_t equal(size_t i, uint64_t *state) { (void)i, (void)state; return 0x3f80; }
static uint64_t ramp(size_t i, uint64_t *state) { (void)state; return 1000 + i; }
static uint64_t steps(size_t i, uint64_t *state) { (void)state; return 7 + i * i; }
static uint64_t cycle(size_t i, uint64_t *state) { (void)state; return (i % 16 * 2654435761u >> 3) & 0xffff; }
static uint64_t noise(size_t i, uint64_t *state) { (void)i; return gen_random(state) & 0xffff; }
static uint64_t upcast(size_t i, uint64_t *state) { (void)i; return (gen_random(state) & 0xffff) << 16; }
static uint64_t few_exponents(size_t i, uint64_t *state) { (void)i; const uint64_t r = gen_random(state); return (r & 0x807f) | (120 + (r >> 32) % 3 * ((r >> 40) % 2)) << 7; }

/* Streams, and what their programs have to contain: the op that makes them, wherever the search puts it. */
static const struct {
	const char *what, *dtype;
	unsigned width;
	uint64_t (*word)(size_t i, uint64_t *state);
	const char *contains;
} streams[] = {
	{ "one word", "BF16", 16, equal, "const" },
	{ "a ramp", "I64", 64, ramp, "scan.add(const" },
	{ "squares", "I64", 64, steps, "scan.add(scan.add(const" },
	{ "a short period", "I16", 16, cycle, "repeat" },
	{ "noise", "U16", 16, noise, "lit.raw" },
	{ "half precision made single", "F32", 32, upcast, "merge(const" },
	{ "weights", "BF16", 16, few_exponents, "map.rot(merge(lit.raw" },
};

Test(search, finds_what_streams_were_made_with)
{
	struct prior *uniform = alloc_prior();
	uint64_t words[N];
	char text[256];

	for (unsigned s = 0; s < ARRAY_LEN(streams); s++) {
		uint64_t state = s + 1;
		for (size_t i = 0; i < N; i++)
			set_word(words, streams[s].width / 8, i, streams[s].word(i, &state));
		find(words, N, streams[s].dtype, streams[s].width, uniform, &generous, text, NULL);
		cr_assert(strstr(text, streams[s].contains), "%s: %s, expected %s in it", streams[s].what, text, streams[s].contains);
	}
	free_prior(uniform);
}

/* Doubles made of singles: their program has eight holes. */
static uint64_t single_made_double(size_t i, uint64_t *state)
{
	(void)i;
	const double v = (double)((float)gen_between(state, 1, 1 << 20) * .37f);
	uint64_t bits;
	memcpy(&bits, &v, 8);
	return bits;
}

/* What won on one tensor is the first thing tried on the next: one expansion and a closing or few (maps that change nothing tie with what is below them) are then
 * enough, however many holes it has. */
Test(search, a_learned_prior_needs_one_expansion)
{
	static const struct {
		const char *dtype;
		unsigned width;
		uint64_t (*word)(size_t i, uint64_t *state);
		unsigned closings;
	} cases[] = { { "BF16", 16, few_exponents, 1 }, { "F64", 64, single_made_double, 4 } };
	struct prior *uniform = alloc_prior();
	uint64_t words[N];

	for (unsigned c = 0; c < ARRAY_LEN(cases); c++) {
		const struct search_limits least = { .expansions = 1, .closings = cases[c].closings, .nodes = 16, .depth = 4, .window = HUGE_VAL };
		struct prior *learned = alloc_prior();
		uint64_t state = 5;
		char best[256], with[256], without[256];
		for (size_t i = 0; i < N; i++)
			set_word(words, cases[c].width / 8, i, cases[c].word(i, &state));
		find(words, N, cases[c].dtype, cases[c].width, uniform, &generous, best, learned);
		find(words, N, cases[c].dtype, cases[c].width, learned, &least, with, NULL);
		find(words, N, cases[c].dtype, cases[c].width, uniform, &least, without, NULL);
		cr_assert_str_eq(with, best);
		cr_assert_str_neq(without, best, "%s: too easy, it needs no prior", cases[c].dtype);
		free_prior(learned);
	}
	free_prior(uniform);
}

/* Probabilities of a context add up to 1, whatever was seen, and survive a file. */
Test(search, a_prior_is_a_distribution_and_survives_a_file)
{
	const struct prior_context seen = { .dtype = 14, .width = 16, .depth = 0, .parent_op = 0, .size_class = 3 }, other = { .dtype = 13, .width = 16 };
	struct prior *prior = alloc_prior(), *loaded = alloc_prior();
	double bits[PRIOR_MAX_PRODUCTIONS], again[PRIOR_MAX_PRODUCTIONS], least;
	char path[] = "/tmp/brevis-prior-XXXXXX";
	struct error err;

	/* Weights as the search gives them, in several contexts of one width, in turns: no sum may depend on the order. */
	for (unsigned i = 0; i < 500; i++) {
		const struct prior_context mixed = { .dtype = (uint8_t)(i % 3 + 13), .width = 16, .size_class = (uint8_t)(i % 2) };
		prior_observe(prior, i % 4 ? &mixed : &seen, i * 7 % nproductions, exp2(-(double)i / 37));
	}
	const int fd = mkstemp(path);
	cr_assert(fd >= 0);
	close(fd);
	cr_assert_eq(prior_save(prior, path, true, &err), BRV_OK);
	cr_assert_eq(prior_load(loaded, path, &err), BRV_OK, "%s", err.text);
	unlink(path);
	const struct prior_context *const contexts[] = { &seen, &other };
	for (unsigned c = 0; c < ARRAY_LEN(contexts); c++) {
		double sum = 0;
		prior_bits(prior, contexts[c], bits, &least);
		prior_bits(loaded, contexts[c], again, &least);
		for (unsigned p = 0; p < nproductions; p++) {
			sum += exp2(-bits[p]);
			cr_assert(memcmp(&bits[p], &again[p], sizeof(bits[p])) == 0, "production %u: %.17g, then %.17g", p, bits[p], again[p]);
			cr_assert(bits[p] >= least);
		}
		cr_assert_float_eq(sum, 1, 1e-9);
	}
	free_prior(prior);
	free_prior(loaded);
}

/* --- What a lookup or a scatter makes --- */

enum { MANY = 40000, ROW = 200, LONG_ROW = 20000 };

/* Words of single precision by code: a float's bits. */
static uint64_t bits_of(float v) { uint32_t bits; memcpy(&bits, &v, 4); return bits; }
static int code(uint64_t *state, int most) { return (int)(gen_between(state, 0, (uint64_t)most) + gen_between(state, 0, (uint64_t)most)) - most; }
static uint64_t int8_codes(size_t i, uint64_t *state) { (void)i; return bits_of((float)code(state, 127) * .0123f); }
static uint64_t int4_rows(size_t i, uint64_t *state) { return bits_of((float)code(state, 7) * (1 + (float)(i / ROW * 37 % 101) * .031f)); }
static uint64_t int4_long_rows(size_t i, uint64_t *state) { return bits_of((float)code(state, 7) * (.0137f + (float)(i / LONG_ROW) * .031f)); }
static uint64_t half_zero(size_t i, uint64_t *state) { (void)i; const uint64_t r = gen_random(state); return r >> 40 & 1 ? 0x3f800000 | (r & 0x7fffff) : 0; }
static uint64_t both_zeros(size_t i, uint64_t *state) { return half_zero(i, state) ^ (gen_random(state) & 0x80000000); }
static uint64_t two_of_four(size_t i, uint64_t *state)
{
	static const uint8_t group[] = { 3, 5, 6, 9, 10, 12 };
	const uint64_t r = gen_random(state);
	return group[(i / 4 * 2654435761u >> 7 & 0xffff) % 6] >> i % 4 & 1 ? 0x3f800000 | (r & 0x7fffff) : 0;
}
static uint64_t mostly_one(size_t i, uint64_t *state) { (void)i; const uint64_t r = gen_random(state); return r >> 40 & 7 ? 0x3f800000 : r & 0xffffff; }
static float weight(uint64_t *state) { return (float)(code(state, 1 << 22) + code(state, 1 << 22)) * 0x1p-26f; }
static uint64_t was_bf16(size_t i, uint64_t *state) { (void)i; return bits_of(weight(state)) & 0xffff0000; }
static uint64_t was_fp16(size_t i, uint64_t *state) { (void)i; return bits_of(weight(state)) & 0xffffe000; }
static uint64_t computed(size_t i, uint64_t *state) { (void)state; return bits_of((float)((int64_t)(i * i % 1511) - 755) * .37f); }

static const struct {
	const char *what;
	uint64_t (*word)(size_t i, uint64_t *state);
	const char *contains, *never;
	double bits;                    /* a word, at most */
	unsigned row, sample;           /* words in a row; that are looked at */
	unsigned closings;              /* where no start leads there; 0: 6 */
} chosen[] = {
	{ "codes of 8 bits", int8_codes, "lookup(", NULL, 8.6, ROW, 65536, 0 },
	{ "codes of 4 bits, a scale for each row", int4_rows, ", 200)", NULL, 6.5, ROW, 65536, 0 },
	{ "codes of 4 bits, rows longer than a chunk", int4_long_rows, "lookup(", NULL, 5, LONG_ROW, 16384, 0 },
	{ "half of them zero", half_zero, "scatter(", "cut", 12.7, ROW, 65536, 0 },
	{ "half of them zero of either sign", both_zeros, "merge(scatter(", NULL, 13.7, ROW, 65536, 0 },
	{ "two of four", two_of_four, "cut(", NULL, 12.3, ROW, 65536, 0 },
	{ "mostly one", mostly_one, "0x3f800000)", NULL, 4, ROW, 65536, 0 },
	{ "weights that were BF16", was_bf16, "merge(const:16(0), lit.raw:7, lit.", NULL, 10.9, ROW, 65536, 80 },
	{ "weights that were FP16", was_fp16, "merge(const:13(0), lit.raw:", NULL, 13.9, ROW, 65536, 80 },
	{ "a computed table", computed, "lookup(", NULL, 13, ROW, 65536, 0 },
};

Test(search, finds_what_is_chosen)
{
	struct prior *uniform = alloc_prior();
	uint32_t *words = malloc(MANY * sizeof(*words));

	for (unsigned c = 0; c < ARRAY_LEN(chosen); c++) {
		const struct synth_plan plan = { .model = cost_model(COST_BALANCED, COST_AVX512), .limits = { 2, chosen[c].closings ? chosen[c].closings : 6, 256, 3, 8 }, .prior = uniform,
						 .sample_words = chosen[c].sample, .class_budget = 1 << 20, .kr = 4, .kc = 4, .pair_words = 8192,
						 .chunk_nbytes = 64 << 10 };
		struct source source = { .words = words, .nwords = MANY, .width = 32, .dtype = dtype_by_name("F32", 3)->code, .rows = MANY / chosen[c].row,
					 .row_words = chosen[c].row };
		struct coded_stream stream = { 0 };
		struct encoder encoder = { 0 };
		uint64_t state = c + 1, nbytes = 0;
		char text[256];
		for (size_t i = 0; i < MANY; i++)
			words[i] = (uint32_t)chosen[c].word(i, &state);
		source_look(&source);
		cr_assert_eq(program_for(&plan, &source, &stream, NULL, NULL, NULL), BRV_OK);
		program_print(&stream.variant[0].program, text, sizeof(text));
		for (uint64_t k = 0; k < stream.nchunks; k++) {
			cr_assert_eq(encode_chunk(&encoder, &stream, k, words + k * stream.chunk_words), BRV_OK);
			nbytes += stream.chunk[k].payload_nbytes;
			cr_expect(stream.chunk[k].variant + 1u < stream.ncoded, "%s: chunk %u of %s is raw", chosen[c].what, (unsigned)k, text);
		}
		cr_expect(strstr(text, chosen[c].contains), "%s: %s, expected %s in it", chosen[c].what, text, chosen[c].contains);
		cr_expect(!chosen[c].never || !strstr(text, chosen[c].never), "%s: %s, with %s in it", chosen[c].what, text, chosen[c].never);
		cr_expect_leq((double)nbytes * 8 / MANY, chosen[c].bits, "%s: %s takes %.2f bits a word", chosen[c].what, text, (double)nbytes * 8 / MANY);
		encoder_free(&encoder);
		coded_stream_free(&stream);
	}
	free(words);
	free_prior(uniform);
}

/* A lookup run backward, then forward by the definition. */
static void check_dictionary(const uint64_t *word, size_t n, unsigned width, uint64_t block, unsigned bits, bool can)
{
	uint8_t in[512 * 8], dictionary[512 * 8], index[512 * 8], back[512 * 8];
	struct words_out arg[2] = { { dictionary, 0, width }, { index, 0, bits } };

	for (size_t i = 0; i < n; i++)
		set_word(in, word_nbytes(width), i, word[i] & mask_bits(width));
	cr_assert_eq(invert(OP_LOOKUP, block, (struct words){ in, n, width }, NULL, arg, 2), can, "%zu words of %u bits, block %llu", n, width,
		     (unsigned long long)block);
	if (!can)
		return;
	const struct kn_args args = { .n = n, .op = OP_LOOKUP, .width = (uint8_t)width, .nsrc = 2, .imm = block, .src = { dictionary, index },
				      .src_n = { arg[0].n, arg[1].n }, .src_width = { (uint8_t)width, (uint8_t)bits } };
	cr_assert(arg[0].n <= n && arg[1].n == n);
	model_op(&args, back);
	cr_assert_eq(memcmp(back, in, n * word_nbytes(width)), 0);
}

Test(search, dictionaries_are_sorted_by_sign)
{
	uint64_t word[500], state = 3;

	for (unsigned width = 16; width <= 64; width *= 2)
		for (unsigned distinct = 2; distinct <= 60; distinct++) {
			for (size_t i = 0; i < ARRAY_LEN(word); i++)
				word[i] = gen_between(&state, 0, distinct - 1) * 0x9e3779b97f4a7c15;
			check_dictionary(word, ARRAY_LEN(word), width, 0, 8, true);
			check_dictionary(word, ARRAY_LEN(word), width, 0, 6, true);
			check_dictionary(word, ARRAY_LEN(word), width, 250, 7, true);
			check_dictionary(word, ARRAY_LEN(word), width, 0, 16, true);
			check_dictionary(word, ARRAY_LEN(word), width, 0, 1, distinct == 2);
			check_dictionary(word, distinct / 2, width, 1, 1, true);
		}
	/* The smallest word of each sign has the same index wherever others are missing. */
	uint32_t signs[6] = { 0x10, 0x80000010, 0x20, 0x10, 0x80000010, 0x80000030 }, dictionary[6];
	uint8_t index[6];
	struct words_out arg[2] = { { dictionary, 0, 32 }, { index, 0, 2 } };
	cr_assert(invert(OP_LOOKUP, 0, (struct words){ signs, 6, 32 }, NULL, arg, 2));
	cr_assert(index[0] == 0 && index[1] == 2 && index[2] == 1 && index[5] == 3 && arg[0].n == 4);
	/* Unless the gap would make more entries than words. */
	cr_assert(invert(OP_LOOKUP, 0, (struct words){ signs, 2, 32 }, NULL, arg, 2));
	cr_assert(index[0] == 0 && index[1] == 1 && arg[0].n == 2);
}

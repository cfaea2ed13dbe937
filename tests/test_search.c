/* test_search.c: the search finds the programs that streams were made with, and its order is what the prior says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "synth/program_for.h"
#include "tests/gen.h"

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

/* What won on one tensor is the first thing tried on the next: one expansion and one closing are then enough. */
Test(search, a_learned_prior_needs_one_expansion)
{
	const struct search_limits least = { .expansions = 1, .closings = 1, .nodes = 16, .depth = 4, .window = HUGE_VAL };
	struct prior *uniform = alloc_prior(), *learned = alloc_prior();
	uint16_t words[N];
	uint64_t state = 5;
	char best[256], with[256], without[256];

	for (size_t i = 0; i < N; i++)
		words[i] = (uint16_t)few_exponents(i, &state);
	find(words, N, "BF16", 16, uniform, &generous, best, learned);
	find(words, N, "BF16", 16, learned, &least, with, NULL);
	find(words, N, "BF16", 16, uniform, &least, without, NULL);
	cr_assert_str_eq(with, best);
	cr_assert_str_neq(without, best, "the case is too easy: it needs no prior");
	free_prior(uniform);
	free_prior(learned);
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

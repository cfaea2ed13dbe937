/* run_case.c: a case through one kernel set, between canaries and guard pages (run_case.h). SPDX-License-Identifier: Apache-2.0 */
#include "tests/run_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/model.h"

enum { CANARY_NBYTES = 256, CANARY = 0xa5 };

/* What a call left. */
struct outcome {
	bool good;
	uint8_t *words;
	uint8_t carry[BC_CARRY_MAX_NBYTES];
};

static struct outcome call(const struct kn_set *set, const struct gen_case *gen, uint8_t *dst)
{
	struct outcome out = { .words = dst };
	struct kn_args args = gen->args;
	kn_fn *fn = gen->fused == GEN_PLAIN ? set->fn[args.op] : set->fused[gen->fused];

	args.dst = dst;
	args.carry = args.carry ? out.carry : NULL;
	out.good = fn(&args);
	return out;
}

static void compare(const struct kn_set *set, const struct gen_case *gen, const struct outcome *got, const struct outcome *want)
{
	const unsigned size = word_nbytes(gen->args.width);

	cr_assert_eq(got->good, want->good, "%s: %s: returned %d, expected %d",
		     set->name, gen->what, got->good, want->good);
	for (size_t i = 0; want->good && i < gen->args.n; i++)
		if (get_word(got->words, size, i) != get_word(want->words, size, i))
			cr_assert_fail("%s: %s: word %zu is 0x%llx, expected 0x%llx", set->name, gen->what, i,
				       (unsigned long long)get_word(got->words, size, i),
				       (unsigned long long)get_word(want->words, size, i));
	if (want->good && gen->args.carry)
		cr_assert_eq(memcmp(got->carry, want->carry, bc_carry_nbytes(gen->args.op)), 0, "%s: %s: another carry", set->name, gen->what);
}

static void check_canary(const struct kn_set *set, const struct gen_case *gen, const uint8_t *from, const uint8_t *to, const char *side)
{
	for (; from < to; from++)
		cr_assert_eq(*from, CANARY, "%s: %s: wrote %s its words", set->name, gen->what, side);
}

/* A drain to a buffer, by the set's copy past the caches if it has one. */
struct collector {
	struct kn_drain drain;
	const struct kn_set *set;
	uint8_t *to;
	uint64_t limit;
};

static void collect(struct kn_drain *drain, const uint8_t *bytes, size_t nbytes)
{
	struct collector *c = (struct collector *)drain;

	cr_assert(nbytes > 0 && nbytes <= KN_DRAIN_NBYTES && nbytes <= c->limit - drain->nbytes, "%s: a block of %zu bytes", c->set->name, nbytes);
	if (c->set->copy_past)
		c->set->copy_past(c->to + drain->nbytes, bytes, nbytes);
	else
		memcpy(c->to + drain->nbytes, bytes, nbytes);
	drain->nbytes += nbytes;
}

/* With a drain a kernel puts all its words there, or none. */
static void run_drained(const struct kn_set *set, const struct gen_case *gen, const struct outcome *want, uint8_t *to, uint8_t *unused)
{
	const uint64_t nbytes = gen->args.n * word_nbytes(gen->args.width);
	struct collector c = { { collect, 0 }, set, to, nbytes };
	struct gen_case drained = *gen;

	drained.args.drain = &c.drain;
	struct outcome got = call(set, &drained, unused);
	if (got.good && c.drain.nbytes)
		cr_assert_eq(c.drain.nbytes, nbytes, "%s: %s: %llu bytes drained", set->name, gen->what, (unsigned long long)c.drain.nbytes);
	got.words = c.drain.nbytes ? to : unused;
	compare(set, gen, &got, want);
}

void run_case(const struct kn_set *set, const struct gen_case *gen, unsigned misalign)
{
	const size_t nbytes = gen->args.n * word_nbytes(gen->args.width);
	uint8_t *const block = gen_destination(0), *const end = block + GEN_BLOCK_NBYTES;
	struct outcome want, got;

	gen_fill_pads(gen, 0xff);
	want = call(kn_sets[0], gen, gen_destination(1) + GEN_BLOCK_NBYTES - nbytes);
	if (gen->verdict != GEN_ANY)
		cr_assert_eq(want.good, gen->verdict == GEN_GOOD, "scalar: %s: returned %d", gen->what, want.good);
	if (gen->expect) {
		const struct outcome scalar = want;
		want.words = gen->expect;
		if (gen->expect_carry)
			memcpy(want.carry, gen->expect_carry, bc_carry_nbytes(gen->args.op));
		compare(kn_sets[0], gen, &scalar, &want);
	}

	memset(block, CANARY, misalign);
	memset(block + misalign + nbytes, CANARY, CANARY_NBYTES);
	gen_fill_pads(gen, 0);
	got = call(set, gen, block + misalign);
	compare(set, gen, &got, &want);
	check_canary(set, gen, block, block + misalign, "before");
	check_canary(set, gen, block + misalign + nbytes, block + misalign + nbytes + CANARY_NBYTES, "behind");

	memset(end - nbytes - CANARY_NBYTES, CANARY, CANARY_NBYTES);
	gen_fill_pads(gen, 0x5b);
	got = call(set, gen, end - nbytes);
	compare(set, gen, &got, &want);
	check_canary(set, gen, end - nbytes - CANARY_NBYTES, end - nbytes, "before");

	memset(block, CANARY, misalign);
	run_drained(set, gen, &want, block + misalign, end - nbytes);
	check_canary(set, gen, block, block + misalign, "before");
}

void run_case_everywhere(const struct gen_case *gen)
{
	for (unsigned s = 0; kn_sets[s]; s++)
		if (kn_sets[s]->supported())
			run_case(kn_sets[s], gen, (unsigned)(gen->args.n * 7 + s) % 64);
}

static uint8_t *narrow(unsigned width, struct hand_words words)
{
	uint8_t *out = malloc(words.n * 8 + 8);

	for (size_t i = 0; i < words.n; i++)
		set_word(out, word_nbytes(width), i, words.word[i] & mask_bits(width));
	return out;
}

void hand_source(struct gen_case *gen, unsigned width, struct hand_words words)
{
	uint8_t *at = narrow(width, words);

	gen_source(gen, NULL, width, words.n, at);
	free(at);
}

void hand_check(struct gen_case *gen, unsigned width, const struct hand_words *want)
{
	const size_t used = strlen(gen->what);

	gen->args.width = (uint8_t)width;
	snprintf(gen->what + used, sizeof(gen->what) - used, ", width %u, imm 0x%llx", width, (unsigned long long)gen->args.imm);
	if (want) {
		cr_assert_eq(want->n, gen->args.n);
		gen->expect = narrow(width, *want);
	} else if (gen->verdict == GEN_GOOD) {
		gen->expect = malloc(gen->args.n * word_nbytes(width));
		model_op(&gen->args, gen->expect);
	}
	run_case_everywhere(gen);
	gen_end(gen);
}

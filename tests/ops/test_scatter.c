/* test_scatter.c: scatter: masks of every density, and masks with other words than there are. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

static void check(uint64_t rest, struct hand_words words, struct hand_words mask, enum gen_verdict verdict, const struct hand_words *want)
{
	for (unsigned width = 4; width <= 64; width++) {
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_SCATTER), width, mask.n);
		gen.verdict = verdict;
		gen.args.imm = rest;
		hand_source(&gen, width, words);
		hand_source(&gen, 1, mask);
		hand_check(&gen, width, want);
	}
}

static const struct hand_words none = { 0, NULL };

Test(op_scatter, by_hand)
{
	check(0, HAND(7, 8, 9), HAND(0, 1, 1, 0, 0, 1), GEN_GOOD, &HAND(0, 7, 8, 0, 0, 9));
	check(15, HAND(7, 8, 9), HAND(1, 0, 1, 1), GEN_GOOD, &HAND(7, 15, 8, 9));
	check(3, none, HAND(0, 0), GEN_GOOD, &HAND(3, 3));
	check(3, HAND(1, 2), HAND(1, 1), GEN_GOOD, &HAND(1, 2));
}

Test(op_scatter, wrong_number_of_words)
{
	check(0, HAND(7, 8, 9), HAND(0, 1, 1, 0, 0, 0), GEN_DAMAGED, NULL);
	check(0, HAND(7, 8, 9), HAND(0, 1, 1, 1, 0, 1), GEN_DAMAGED, NULL);
	check(0, none, HAND(0, 1), GEN_DAMAGED, NULL);
}

/* One 1, and one 0, at each place of some groups. */
Test(op_scatter, each_place)
{
	enum { N = 200 };

	for (unsigned at = 0; at < N; at++)
		for (unsigned width = 8; width <= 64; width *= 2)
			for (unsigned one = 0; one < 2; one++) {
				uint64_t state = at << 8 | width;
				uint8_t mask[N];
				struct gen_case gen;
				memset(mask, !one, N);
				mask[at] = (uint8_t)one;
				gen_begin(&gen, bc_opinfo(OP_SCATTER), at, N);
				gen.args.imm = 0x5a;
				gen_source(&gen, &state, width, one ? 1 : N - 1, NULL);
				gen_source(&gen, &state, 1, N, mask);
				hand_check(&gen, width, NULL);
			}
}

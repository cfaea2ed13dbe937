/* test_gate.c: gate: rows cut by the chunk, sets of classes, arguments that do not fit. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

/* Rows of 3 words; the chunk begins in the middle of row 1. */
static const uint8_t row_class[] = { 9, 2, 0, 1, 2 };

static void check(uint64_t set, struct hand_words from, enum gen_verdict verdict, const struct hand_words *want)
{
	for (unsigned width = 4; width <= 64; width++) {
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_GATE), width, 10);
		gen.verdict = verdict;
		gen.args.imm = set, gen.args.row_words = 3, gen.args.first = 4, gen.args.row_class = row_class;
		hand_source(&gen, width, from);
		hand_check(&gen, width, want);
	}
}

Test(op_gate, by_hand)
{
	const struct hand_words none = { 0, NULL };

	check(1 << 2, HAND(1, 2, 3, 4, 5, 6), GEN_GOOD, &HAND(0, 0, 1, 2, 3, 4, 5, 6, 0, 0));
	check(1 << 0, HAND(1, 2, 3, 4, 5, 6, 7), GEN_GOOD, &HAND(1, 2, 0, 0, 0, 3, 4, 5, 6, 7));
	check(1 << 0 | 1 << 1, HAND(1, 2, 3, 4), GEN_GOOD, &HAND(1, 2, 0, 0, 0, 0, 0, 0, 3, 4));
	check(1 << 0 | 1 << 1 | 1 << 2, none, GEN_GOOD, &HAND(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
	check(1 << 7, HAND(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), GEN_GOOD, &HAND(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

Test(op_gate, wrong_number_of_words)
{
	check(1 << 2, HAND(1, 2, 3, 4, 5), GEN_DAMAGED, NULL);
	check(1 << 2, HAND(1, 2, 3, 4, 5, 6, 7), GEN_DAMAGED, NULL);
	check(1 << 2, ((struct hand_words){ 0, NULL }), GEN_DAMAGED, NULL);
}

/* test_scan.c: running XOR and sum at every width. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

static void check(enum bc_op op, unsigned width, uint64_t first, struct hand_words from, enum gen_verdict verdict,
		  const struct hand_words *want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo((uint8_t)op), width, from.n + 1);
	gen.verdict = verdict;
	gen.args.pay_nbytes = (width + 7) / 8;
	gen.args.pay = gen_copy(&gen, &first, gen.args.pay_nbytes);
	hand_source(&gen, width, from);
	hand_check(&gen, width, want);
}

Test(op_scan, by_hand)
{
	for (unsigned width = 4; width <= 64; width++) {
		const uint64_t top = mask_bits(width);
		check(OP_SCAN_ADD, width, top, HAND(1, 1, top, 7), GEN_GOOD, &HAND(top, 0, 1, 0, 7));
		check(OP_SCAN_XOR, width, 5, HAND(5, 1, top, top), GEN_GOOD, &HAND(5, 0, 1, top - 1, 1));
	}
	check(OP_SCAN_ADD, 1, 1, HAND(1, 0, 1), GEN_GOOD, &HAND(1, 0, 0, 1));
	check(OP_SCAN_XOR, 1, 1, HAND(1, 0, 1), GEN_GOOD, &HAND(1, 0, 0, 1));
}

/* The argument of a scan of one word has none. */
Test(op_scan, first_word_alone)
{
	for (unsigned width = 3; width <= 64; width++) {
		check(OP_SCAN_ADD, width, 6, (struct hand_words){ 0, NULL }, GEN_GOOD, &HAND(6));
		check(OP_SCAN_XOR, width, 6, (struct hand_words){ 0, NULL }, GEN_GOOD, &HAND(6));
	}
}

/* Bits of the first word's last byte beyond the width. */
Test(op_scan, damaged)
{
	for (unsigned width = 1; width <= 63; width++)
		if (width % 8) {
			check(OP_SCAN_ADD, width, 1ull << width, HAND(1), GEN_DAMAGED, NULL);
			check(OP_SCAN_XOR, width, 1ull << (width | 7), HAND(1), GEN_DAMAGED, NULL);
		}
}

Test(op_scan, long_runs)
{
	for (unsigned width = 1; width <= 64; width++)
		for (unsigned op = OP_SCAN_XOR; op <= OP_SCAN_ADD; op++) {
			const uint64_t first = mask_bits(width);
			uint64_t state = width;
			struct gen_case gen;
			gen_begin(&gen, bc_opinfo((uint8_t)op), width, 700 + width);
			gen.args.pay_nbytes = (width + 7) / 8;
			gen.args.pay = gen_copy(&gen, &first, gen.args.pay_nbytes);
			gen_source(&gen, &state, width, gen.args.n - 1, NULL);
			hand_check(&gen, width, NULL);
		}
}

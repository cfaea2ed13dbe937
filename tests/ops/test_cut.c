/* test_cut.c: cut: every pair of widths, and last words that are not used up. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

static void check(unsigned from, struct hand_words words, unsigned width, size_t n, enum gen_verdict verdict, const struct hand_words *want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo(OP_CUT), width, n);
	gen.verdict = verdict;
	hand_source(&gen, from, words);
	hand_check(&gen, width, want);
}

Test(op_cut, by_hand)
{
	check(4, HAND(0x5, 0xa, 0x1), 1, 9, GEN_GOOD, &HAND(1, 0, 1, 0, 0, 1, 0, 1, 1));
	check(4, HAND(0x5, 0xa, 0x3), 1, 9, GEN_DAMAGED, NULL);
	check(8, HAND(0x81, 0x3), 1, 10, GEN_GOOD, &HAND(1, 0, 0, 0, 0, 0, 0, 1, 1, 1));
	check(8, HAND(0x81, 0x4), 1, 10, GEN_DAMAGED, NULL);
	check(9, HAND(0x1ff, 0x88), 3, 6, GEN_GOOD, &HAND(7, 7, 7, 0, 1, 2));
	check(64, HAND(0x1122334455667788), 32, 2, GEN_GOOD, &HAND(0x55667788, 0x11223344));
	check(64, HAND(0x0000000055667788), 32, 1, GEN_GOOD, &HAND(0x55667788));
	check(64, HAND(0x0000000155667788), 32, 1, GEN_DAMAGED, NULL);
}

Test(op_cut, widths)
{
	for (unsigned width = 1; width <= 32; width++)
		for (unsigned fields = 2; fields * width <= 64; fields++)
			for (unsigned nwords = 1; nwords <= 20; nwords += nwords < 4 ? 1 : 8) {
				uint64_t state = width << 16 | fields << 8 | nwords;
				struct gen_case gen;
				gen_begin(&gen, bc_opinfo(OP_CUT), width, (size_t)nwords * fields);
				gen_source(&gen, &state, width * fields, nwords, NULL);
				hand_check(&gen, width, NULL);
			}
}

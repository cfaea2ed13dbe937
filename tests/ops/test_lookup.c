/* test_lookup.c: lookup: one dictionary and several, indices of every size, and indices beyond the end. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

static void check(uint64_t block, struct hand_words dictionary, unsigned bits, struct hand_words index, enum gen_verdict verdict, const struct hand_words *want)
{
	for (unsigned width = 5; width <= 64; width++) {
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_LOOKUP), width, index.n);
		gen.verdict = verdict;
		gen.args.imm = block;
		hand_source(&gen, width, dictionary);
		hand_source(&gen, bits, index);
		hand_check(&gen, width, want);
	}
}

Test(op_lookup, by_hand)
{
	static const uint8_t widths[] = { 2, 8, 9, 16, 17, 20 };

	for (unsigned i = 0; i < sizeof(widths); i++) {
		check(0, HAND(7, 30, 11), widths[i], HAND(0, 1, 2, 2, 0), GEN_GOOD, &HAND(7, 30, 11, 11, 7));
		check(0, HAND(7, 30, 11), widths[i], HAND(0, 1, 3, 2, 0), GEN_DAMAGED, NULL);
		check(5, HAND(7, 30, 11), widths[i], HAND(0, 1, 2, 2, 0), GEN_GOOD, &HAND(7, 30, 11, 11, 7));
		check(UINT64_MAX, HAND(7, 30, 11), widths[i], HAND(0, 1, 2, 2, 0), GEN_GOOD, &HAND(7, 30, 11, 11, 7));
	}
	check(0, HAND(9), 1, HAND(0, 0, 0), GEN_GOOD, &HAND(9, 9, 9));
	check(0, HAND(9), 1, HAND(0, 0, 1), GEN_DAMAGED, NULL);
}

Test(op_lookup, blocks)
{
	check(2, HAND(1, 2, 3, 4, 5, 6), 3, HAND(0, 1, 1, 0, 1), GEN_GOOD, &HAND(1, 2, 4, 3, 6));
	check(1, HAND(1, 2, 3), 3, HAND(0, 0, 0), GEN_GOOD, &HAND(1, 2, 3));
	/* An entry of the next block is not one of this. */
	check(2, HAND(1, 2, 3, 4, 5, 6), 3, HAND(0, 2, 1, 0, 1), GEN_DAMAGED, NULL);
}

/* Every entry of dictionaries around the sizes that vectors hold. */
Test(op_lookup, every_entry)
{
	static const uint16_t sizes[] = { 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 193, 255, 256 };

	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++)
		for (unsigned width = 8; width <= 64; width *= 2) {
			uint64_t state = s << 8 | width;
			uint8_t index[256];
			struct gen_case gen;
			for (unsigned i = 0; i < sizes[s]; i++)
				index[i] = (uint8_t)(i * 37 % sizes[s]);
			gen_begin(&gen, bc_opinfo(OP_LOOKUP), s, sizes[s]);
			gen_source(&gen, &state, width, sizes[s], NULL);
			gen_source(&gen, &state, 8, sizes[s], index);
			hand_check(&gen, width, NULL);
		}
}

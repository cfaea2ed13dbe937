/* test_weave.c: weave: records of short and long runs. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

Test(op_weave, by_hand)
{
	for (unsigned width = 4; width <= 64; width++) {
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_WEAVE), width, 8);
		gen.args.imm = 0x000100020001;
		hand_source(&gen, width, HAND(1, 2));
		hand_source(&gen, width, HAND(3, 4, 5, 6));
		hand_source(&gen, width, HAND(7, 8));
		hand_check(&gen, width, &HAND(1, 3, 4, 7, 2, 5, 6, 8));
	}
}

/* Runs a, b and one of 1: from single words to runs longer than a vector register. */
Test(op_weave, runs)
{
	static const uint16_t runs[] = { 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 300 };

	for (unsigned i = 0; i < ARRAY_LEN(runs) * ARRAY_LEN(runs); i++)
		for (unsigned width = 8; width <= 64; width *= 2) {
			const size_t a = runs[i % ARRAY_LEN(runs)], b = runs[i / ARRAY_LEN(runs)], records = 1 + i % 5;
			uint64_t state = i;
			struct gen_case gen;
			gen_begin(&gen, bc_opinfo(OP_WEAVE), i, records * (a + b + 1));
			gen.args.imm = a | b << 16 | 1ull << 32;
			gen_source(&gen, &state, width, records * a, NULL);
			gen_source(&gen, &state, width, records * b, NULL);
			gen_source(&gen, &state, width, records, NULL);
			hand_check(&gen, width, NULL);
		}
}

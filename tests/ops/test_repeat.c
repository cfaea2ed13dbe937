/* test_repeat.c: repeat: once, of one word, and of lengths that do not double evenly. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

Test(op_repeat, by_hand)
{
	for (unsigned width = 3; width <= 64; width++) {
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_REPEAT), width, 6);
		gen.args.imm = 3;
		hand_source(&gen, width, HAND(5, 6));
		hand_check(&gen, width, &HAND(5, 6, 5, 6, 5, 6));
	}
}

Test(op_repeat, lengths)
{
	for (size_t once = 1; once <= 33; once++)
		for (size_t times = 1; times <= 33; times++) {
			const unsigned width = 8u << (once + times) % 4;
			uint64_t state = once << 8 | times;
			struct gen_case gen;
			gen_begin(&gen, bc_opinfo(OP_REPEAT), (unsigned)once, once * times);
			gen.args.imm = times;
			gen_source(&gen, &state, width, once, NULL);
			hand_check(&gen, width, NULL);
		}
}

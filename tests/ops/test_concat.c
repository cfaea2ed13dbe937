/* test_concat.c: concat, with empty sides. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

static void check(unsigned width, struct hand_words a, struct hand_words b, struct hand_words want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo(OP_CONCAT), width, want.n);
	gen.args.imm = a.n;
	hand_source(&gen, width, a);
	hand_source(&gen, width, b);
	hand_check(&gen, width, &want);
}

Test(op_concat, every_width)
{
	const struct hand_words none = { 0, NULL };

	for (unsigned width = 2; width <= 64; width++) {
		check(width, HAND(1, 2, 3), HAND(0), HAND(1, 2, 3, 0));
		check(width, none, HAND(3, 2), HAND(3, 2));
		check(width, HAND(3, 2), none, HAND(3, 2));
	}
}

/* An argument without words has no stream. */
Test(op_concat, no_stream)
{
	for (unsigned side = 0; side < 2; side++) {
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_CONCAT), side, 3);
		gen.args.imm = side ? 0 : 3;
		if (side)
			gen.args.nsrc = 1, gen.args.src_width[0] = 16;
		hand_source(&gen, 16, HAND(7, 8, 9));
		gen.args.nsrc = 2, gen.args.src_width[1] = 16;
		hand_check(&gen, 16, &HAND(7, 8, 9));
	}
}

/* test_const.c: const. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

Test(op_const, every_width)
{
	for (unsigned width = 1; width <= 64; width++)
		for (size_t n = 1; n < 70; n += 17) {
			const uint64_t words[] = { 0, 1, mask_bits(width), 0x0123456789abcdef & mask_bits(width) };
			for (unsigned k = 0; k < ARRAY_LEN(words); k++) {
				struct gen_case gen;
				gen_begin(&gen, bc_opinfo(OP_CONST), k, n);
				gen.args.imm = words[k];
				hand_check(&gen, width, NULL);
			}
		}
}

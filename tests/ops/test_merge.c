/* test_merge.c: merge: every pair of widths, byte and bit planes. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

Test(op_merge, by_hand)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo(OP_MERGE), 1, 2);
	hand_source(&gen, 7, HAND(0x7f, 0x01));
	hand_source(&gen, 9, HAND(0x000, 0x1ff));
	hand_check(&gen, 16, &HAND(0x007f, 0xff81));

	gen_begin(&gen, bc_opinfo(OP_MERGE), 2, 2);
	hand_source(&gen, 16, HAND(0x1234, 0xffff));
	hand_source(&gen, 8, HAND(0x56, 0x00));
	hand_source(&gen, 8, HAND(0x78, 0xff));
	hand_check(&gen, 32, &HAND(0x78561234, 0xff00ffff));
}

/* Fields of all ones beside fields of zeros: a bit that strays shows. */
static void check_fields(const uint8_t *width, unsigned nfields, size_t n)
{
	for (unsigned odd = 0; odd < 2; odd++) {
		unsigned total = 0;
		struct gen_case gen;
		gen_begin(&gen, bc_opinfo(OP_MERGE), total, n);
		for (unsigned k = 0; k < nfields; total += width[k++]) {
			uint64_t words[64];
			for (size_t i = 0; i < n; i++)
				words[i] = (k + i + odd) % 2 ? UINT64_MAX : 0;
			hand_source(&gen, width[k], (struct hand_words){ n, words });
		}
		hand_check(&gen, total, NULL);
	}
}

Test(op_merge, every_pair)
{
	for (uint8_t a = 1; a < 64; a++)
		for (uint8_t b = 1; a + b <= 64; b++)
			check_fields((const uint8_t[]){ a, b }, 2, 1 + (a * 7u + b) % 64);
}

Test(op_merge, planes)
{
	for (uint8_t width = 1; width <= 32; width++)
		for (unsigned nfields = 2; nfields <= BC_MAX_ARGS && nfields * width <= 64; nfields++) {
			uint8_t widths[BC_MAX_ARGS];
			memset(widths, width, sizeof(widths));
			check_fields(widths, nfields, 1 + (width * 13u + nfields) % 64);
		}
}

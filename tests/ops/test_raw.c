/* test_raw.c: lit.raw at every width. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/model.h"
#include "tests/run_case.h"

static void check_packed(unsigned width, size_t n, const uint8_t *packed, const struct hand_words *want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo(OP_LIT_RAW), width + (unsigned)n, n);
	gen.args.pay_nbytes = packed_nbytes(n, width);
	gen.args.pay = gen_copy(&gen, packed, gen.args.pay_nbytes);
	hand_check(&gen, width, want);
}

Test(op_raw, by_hand)
{
	/* 0x5 = 101, 0x3 = 011, 0x6 = 110: from the lowest bit of the first byte on */
	check_packed(3, 3, (const uint8_t[]){ 0x9d, 0x01 }, &HAND(5, 3, 6));
	check_packed(1, 9, (const uint8_t[]){ 0x81, 0x01 }, &HAND(1, 0, 0, 0, 0, 0, 0, 1, 1));
	check_packed(12, 2, (const uint8_t[]){ 0x23, 0x61, 0x45 }, &HAND(0x123, 0x456));
	check_packed(16, 1, (const uint8_t[]){ 0x34, 0x12 }, &HAND(0x1234));
	check_packed(63, 1, (const uint8_t[]){ 1, 0, 0, 0, 0, 0, 0, 0x40 }, &HAND(0x4000000000000001));
}

/* All ones, and a single one that wanders: every shift of every width. */
Test(op_raw, every_width)
{
	for (unsigned width = 1; width <= 64; width++)
		for (size_t n = 1; n <= 40; n++) {
			uint8_t words[40 * 8], packed[40 * 8];
			for (unsigned ones = 0; ones < 2; ones++) {
				for (size_t i = 0; i < n; i++)
					set_word(words, word_nbytes(width), i, ones ? mask_bits(width) : 1ull << i % width);
				model_pack(packed, words, n, width);
				check_packed(width, n, packed, NULL);
			}
		}
}

/* test_pack.c: lit.pack: every width and number of bits, and damaged items. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/model.h"
#include "tests/run_case.h"

static void check_item(unsigned width, size_t n, const uint8_t *item, size_t nbytes, enum gen_verdict verdict,
		       const struct hand_words *want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo(OP_LIT_PACK), width + (unsigned)n, n);
	gen.verdict = verdict;
	gen.args.pay = gen_copy(&gen, item, nbytes), gen.args.pay_nbytes = nbytes;
	hand_check(&gen, width, want);
}
#define ITEM(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

Test(op_pack, by_hand)
{
	check_item(8, 4, ITEM(2, 254, 0xe4), GEN_GOOD, &HAND(254, 255, 0, 1));  /* base + 0, 1, 2, 3 mod 2^8 */
	check_item(9, 2, ITEM(0, 0x2c, 0x01), GEN_GOOD, &HAND(300, 300));
	check_item(12, 2, ITEM(8, 0xff, 0x0f, 0x00, 0x02), GEN_GOOD, &HAND(0xfff, 1));
	check_item(16, 1, ITEM(16, 1, 0, 0xff, 0xff), GEN_GOOD, &HAND(0));
	check_item(64, 1, ITEM(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), GEN_GOOD, &HAND(0));
}

Test(op_pack, damaged)
{
	check_item(8, 4, ITEM(2, 254), GEN_DAMAGED, NULL);              /* too short */
	check_item(8, 4, ITEM(2, 254, 0xe4, 0), GEN_DAMAGED, NULL);     /* too long */
	check_item(8, 1, ITEM(9, 0, 0, 0), GEN_DAMAGED, NULL);          /* more bits than the word has */
	check_item(8, 1, ITEM(255, 0, 0, 0), GEN_DAMAGED, NULL);
	check_item(9, 1, ITEM(0, 0, 2), GEN_DAMAGED, NULL);             /* a base beyond the width */
	check_item(8, 1, ITEM(0), GEN_DAMAGED, NULL);
	check_item(8, 1, NULL, 0, GEN_DAMAGED, NULL);
}

Test(op_pack, every_width)
{
	for (unsigned width = 1; width <= 64; width++)
		for (unsigned b = 0; b <= width; b++) {
			const size_t n = 17, head = 1 + (width + 7) / 8;
			const uint64_t base = mask_bits(width) - 1;
			uint8_t words[17 * 8], item[9 + 17 * 8] = { (uint8_t)b };
			memcpy(item + 1, &base, head - 1);
			for (size_t i = 0; i < n && b; i++)
				set_word(words, word_nbytes(b), i, i & 1 ? mask_bits(b) : i & mask_bits(b));
			if (b)
				model_pack(item + head, words, n, b);
			check_item(width, n, item, head + packed_nbytes(n, b), GEN_GOOD, NULL);
		}
}

/* test_deal.c: deal: layouts by hand, every shape of a field, and backward. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/deal.h"
#include "synth/invert.h"
#include "tests/model.h"
#include "tests/run_case.h"

static void check(unsigned from, struct hand_words words, unsigned width, uint64_t imm, size_t n, const struct hand_words *want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo(OP_DEAL), width, n);
	gen.args.imm = imm;
	hand_source(&gen, from, words);
	hand_check(&gen, width, want);
}

Test(op_deal, by_hand)
{
	/* Nibbles side by side; two apart; bits above them. */
	check(4, HAND(1, 2, 3, 4), 8, 4 | DEAL_FIELD(0, 4, 0, 1), 2, &HAND(0x21, 0x43));
	check(4, HAND(1, 2, 3, 4, 5, 6, 7, 8), 8, 4 | DEAL_FIELD(0, 4, 0, 2), 4, &HAND(0x31, 0x42, 0x75, 0x86));
	check(5, HAND(0x11, 2, 3, 0x14, 5, 6, 7, 0x18), 8, 8 | DEAL_FIELD(0, 1, 4, 1) | DEAL_FIELD(1, 4, 0, 4), 5, &HAND(0x89, 0x51, 0x62, 0x73, 0x84));
	check(5, HAND(0x11, 2, 3, 0x14, 5, 6, 7, 0x18), 8, 8 | DEAL_FIELD(0, 4, 0, 4) | DEAL_FIELD(1, 1, 4, 1), 5, &HAND(0x51, 0x62, 0x73, 0x84, 0x89));
	/* The eight nibbles of a word in the order 0 2 4 6 1 3 5 7, as halves of two bytes. */
	check(4, HAND(0, 1, 2, 3, 4, 5, 6, 7), 16, 8 | DEAL_FIELD(0, 4, 0, 2), 2, &HAND(0x6420, 0x7531));
	check(4, HAND(0, 1, 2, 3, 4, 5, 6, 7), 32, 8 | DEAL_FIELD(0, 4, 0, 1), 1, &HAND(0x76543210));
	check(16, HAND(0xabcd), 8, 1 | DEAL_FIELD(0, 8, 8, 1) | DEAL_FIELD(1, 8, 0, 1), 2, &HAND(0xab, 0xcd));
	check(1, HAND(1, 0, 1), 1, 1 | DEAL_FIELD(0, 1, 0, 1), 3, &HAND(1, 0, 1));
}

/* One field of each width and stride, with one of a bit above it or below it. */
Test(op_deal, fields)
{
	static const uint8_t strides[] = { 1, 2, 3, 8, 16, 24, 32, 40, 64, 128, 255 };

	for (unsigned width = 1; width <= 32; width *= 2)
		for (unsigned bits = 1; bits <= MIN(width, 8u); bits *= 2)
			for (size_t s = 0; s < 3 * ARRAY_LEN(strides); s++) {
				const unsigned stride = strides[s / 3], block = MAX(width, 8u) * 4 * stride, more = s % 3;
				const uint64_t imm = more == 0	 ? block | DEAL_FIELD(0, bits, 0, stride) :
						     more == 1 ? block | DEAL_FIELD(0, bits, 0, stride) | DEAL_FIELD(1, 1, bits, 1) :
								 block | DEAL_FIELD(0, 1, 0, 8) | DEAL_FIELD(1, bits, 1, stride);
				const unsigned from = bits + (more > 0);
				uint64_t state = imm ^ width;
				struct deal deal;
				struct gen_case gen;
				if (!deal_parse(imm, width, from, &deal))
					continue;
				gen_begin(&gen, bc_opinfo(OP_DEAL), width, 2 * (size_t)deal.nwords);
				gen.args.imm = imm, gen.args.width = (uint8_t)width;
				gen_source(&gen, &state, from, 2 * (size_t)deal.block, NULL);
				struct words_out back = { malloc(2 * (size_t)deal.block * word_nbytes(from)), 0, from };
				uint8_t *dealt = malloc(2 * (size_t)deal.nwords * word_nbytes(width));
				model_op(&gen.args, dealt);
				cr_assert(invert(OP_DEAL, imm, (struct words){ dealt, 2 * (size_t)deal.nwords, width }, NULL, &back, 1));
				cr_assert_eq(back.n, 2 * (size_t)deal.block);
				cr_assert_arr_eq(back.ptr, gen.args.src[0], back.n * word_nbytes(from));
				hand_check(&gen, width, NULL);
				free(dealt);
				free(back.ptr);
			}
}

/* test_map.c: the maps at every width and at the ends of the words. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/run_case.h"

static void check(enum bc_op op, unsigned width, uint64_t imm, struct hand_words from, const struct hand_words *want)
{
	struct gen_case gen;

	gen_begin(&gen, bc_opinfo((uint8_t)op), width, from.n);
	gen.args.imm = imm;
	hand_source(&gen, width, from);
	hand_check(&gen, width, want);
}

Test(op_map, by_hand)
{
	for (unsigned width = 4; width <= 64; width++) {
		const uint64_t top = mask_bits(width);
		check(OP_MAP_ZIGZAG, width, 0, HAND(0, 1, 2, 3, 4, top, top - 1), &HAND(0, top, 1, top - 1, 2, top ^ top >> 1, top >> 1));
		check(OP_MAP_GRAY, width, 0, HAND(0, 1, 3, 2, 6, 7, 5, 4, 12), &HAND(0, 1, 2, 3, 4, 5, 6, 7, 8));
		check(OP_MAP_ADD, width, top, HAND(0, 1, top), &HAND(top, 0, top - 1));
		check(OP_MAP_ADD, width, 1, HAND(0, top, top - 1), &HAND(1, 0, top));
		check(OP_MAP_XOR, width, top, HAND(0, 1, top), &HAND(top, top - 1, 0));
		check(OP_MAP_ROT, width, 1, HAND(1, 2, top, top - 1), &HAND(top ^ top >> 1, 1, top, top >> 1));
		check(OP_MAP_ROT, width, width - 1, HAND(1, 2, top ^ top >> 1), &HAND(2, 4, 1));
		check(OP_MAP_ROT, width, 0, HAND(1, 2, 3), &HAND(1, 2, 3));
	}
	check(OP_MAP_ROT, 1, 0, HAND(1, 0), &HAND(1, 0));
	check(OP_MAP_ZIGZAG, 1, 0, HAND(1, 0), &HAND(1, 0));
	check(OP_MAP_GRAY, 1, 0, HAND(1, 0), &HAND(1, 0));
	check(OP_MAP_ADD, 1, 1, HAND(1, 0), &HAND(0, 1));
}

/* What each map does to every word of narrow widths must be a bijection too. */
Test(op_map, every_word)
{
	static const enum bc_op ops[] = { OP_MAP_XOR, OP_MAP_ADD, OP_MAP_ZIGZAG, OP_MAP_GRAY, OP_MAP_ROT };
	static uint64_t words[1 << 10];

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		words[i] = i;
	for (unsigned k = 0; k < ARRAY_LEN(ops); k++)
		for (unsigned width = 1; width <= 10; width++) {
			const bool takes_word = ops[k] == OP_MAP_XOR || ops[k] == OP_MAP_ADD;
			const uint64_t imm = takes_word ? 0x2d5 & mask_bits(width) : ops[k] == OP_MAP_ROT ? width / 2 : 0;
			check(ops[k], width, imm, (struct hand_words){ 1u << width, words }, NULL);
		}
}

Test(op_map, every_rotation)
{
	for (unsigned width = 1; width <= 64; width++)
		for (unsigned by = 0; by < width; by++)
			check(OP_MAP_ROT, width, by, HAND(1, 0x8000000000000001, 0x0123456789abcdef, UINT64_MAX - 1), NULL);
}

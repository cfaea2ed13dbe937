/* test_alias.c: lit.alias by hand: a table, literals, damage; words at the end of the range. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "synth/train.h"
#include "tests/model_literal.h"

/* 10 and 20, with 3072 and 1024 of 4096 positions: k = 12 (twelve zeros, a one, not less), then 1024 in 11 bits; k = 11 (a zero, a one, less), then 0 in
 * 10 bits. Or 10 and an escape. Of the 16 buckets the first two are their symbols'; those of symbols that do not occur are all aliases. */
static const uint8_t two[] = { 4, 8, 1, 1, 0, 1, 10, 9, 0x00, 0x10, 0x00, 0x0d, 0x00 };
static const uint8_t one_and_escape[] = { 4, 8, 1, 1, 1, 1, 10, 0x00, 0x10, 0x00, 0x0d, 0x00 };

/* An item of one word, all lanes but the first at 4096. */
struct by_hand {
	const uint8_t *body;
	size_t body_nbytes;
	uint32_t state;                 /* of lane 0 */
	uint8_t front[4];               /* the number of literals, then these */
	size_t nrenorm;                 /* renormalisation bytes: 0 */
	bool odd_high;                  /* the state's highest byte is said to be there, and is 0 */
};

static int decode(struct by_hand h)
{
	struct literal literal;
	struct buffer item = { 0 };
	uint8_t states[16 + 192 + 128] = { 0 }, words[2], carry[BC_CARRY_MAX_NBYTES];
	uint64_t random = 1;

	for (unsigned k = 0; k < 128; k++)
		states[16 + 192 + k] = 1;
	states[16] = (uint8_t)h.state, states[17] = h.state >> 8 & 15, states[16 + 192] = (uint8_t)(h.state >> 12);
	states[0] = h.state >> 20 || h.odd_high;
	literal_from_body(&literal, OP_LIT_ALIAS, 8, h.body, h.body_nbytes);
	buffer_put(&item, h.front, 1u + h.front[0]);
	buffer_put(&item, states, sizeof(states));
	if (states[0])
		buffer_put_u8(&item, (uint8_t)(h.state >> 20));
	buffer_put(&item, "\0\0\0", h.nrenorm);
	const struct literal_call call = { .n = 1, .item = item.data, .item_nbytes = item.nbytes };
	const bool good = literal_check(&literal, &call, &random, "by hand");
	if (good)
		model_literal(&literal, &call, words, carry);
	literal_free(&literal);
	buffer_free(&item);
	return good ? words[0] : -1;
}
#define DECODE(table, ...) decode((struct by_hand){ .body = table, .body_nbytes = sizeof(table), __VA_ARGS__ })

/* 4096 = 3072 * 1 + 1024: the 1024th of the first symbol's positions; 1024 * 4 + 0: the first of the second's, which is position 256. */
Test(op_alias, by_hand)
{
	int first = -1;

	for (uint32_t at = 0; at < 4096; at++) {
		const int word = DECODE(two, .state = 1u << 12 | at);
		cr_assert(word == -1 || (first == -1 && word == 10), "position %u", at);
		if (word == 10)
			first = (int)at;
	}
	cr_assert_geq(first, 256, "all positions of its own bucket have lower ranks");
	cr_assert_eq(DECODE(two, .state = 4u << 12 | 256), 20);
	cr_assert_eq(DECODE(two, .state = 4u << 12 | 256, .odd_high = true), 20);
	cr_assert_eq(DECODE(two, .state = 4u << 12 | 257), -1, "a final state above the lowest, without carry");
	cr_assert_eq(DECODE(two, .state = 4u << 12 | 256, .nrenorm = 2), -1, "a renormalisation word left over");
	cr_assert_eq(DECODE(two, .state = 4u << 12 | 256, .nrenorm = 1), -1, "half of one");
	cr_assert_eq(DECODE(two, .state = 4u << 12 | 256, .front = { 1, 5 }), -1, "a literal left over");
	cr_assert_eq(DECODE(one_and_escape, .state = 4u << 12 | 256, .front = { 1, 5 }), 5);
	cr_assert_eq(DECODE(one_and_escape, .state = 4u << 12 | 256), -1, "a literal too few");
	cr_assert_eq(DECODE(two, .state = 256), -1, "a state below the lowest wants a renormalisation word");
}

/* Words of 16 bits of which the highest have symbols: what stands for the escape is none of them. */
Test(op_alias, highest_words)
{
	uint64_t state = 3;

	for (unsigned log2_nb = 4; log2_nb <= 8; log2_nb++) {
		static uint32_t counts[65536];
		struct literal literal;
		struct buffer body = { 0 };
		memset(counts, 0, sizeof(counts));
		for (unsigned k = 0; k < 300; k++)
			counts[65535 - k - (k > 3)] = k < 10 ? 500 : 1;
		cr_assert(train_alias(16, log2_nb, 1, 1, counts, &body));
		literal_from_body(&literal, OP_LIT_ALIAS, 16, body.data, body.nbytes);
		buffer_free(&body);
		cr_assert(literal.table->alias.has_escape && literal.table->alias.marker == 65531);
		literal_exercise(&literal, (struct literal_call){ .n = 2000 }, 4, &state, "highest words");
		literal_exercise(&literal, (struct literal_call){ .n = 2000, .nfield = 1, .field = { 16 } }, 4, &state, "highest words above a field");
		literal_free(&literal);
	}
}

/* test_wide.c: lit.wide by hand: a table, literals, damage. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/model_literal.h"

/* 10 and 20, each as likely (k = 12, m = 0 twice); or 10 and an escape. */
static const uint8_t two[] = { 8, 1, 1, 0, 1, 10, 9, 0x0c, 0x00, 0x06, 0x00 };
static const uint8_t one_and_escape[] = { 8, 1, 1, 1, 1, 10, 0x0c, 0x00, 0x06, 0x00 };

/* One word, symbol j: 65536 = 2048 * 32 + 0 came from 32 << 12 | 2048 * j. Returns the word, or -1: damaged. */
static int check(const void *body, size_t body_nbytes, unsigned j, const void *front, size_t nfront, size_t more, uint32_t change)
{
	struct literal literal;
	struct buffer item = { 0 };
	uint32_t states[64];
	uint8_t word[2], carry[BC_CARRY_MAX_NBYTES];
	uint64_t state = j;

	for (unsigned k = 0; k < 64; k++)
		states[k] = 65536;
	states[0] = (32u << 12 | 2048 * j) + change;
	literal_from_body(&literal, OP_LIT_WIDE, 8, body, body_nbytes);
	buffer_put(&item, front, nfront);
	buffer_put(&item, states, sizeof(states));
	buffer_put(&item, "\0\0", more);
	const struct literal_call call = { .n = 1, .item = item.data, .item_nbytes = item.nbytes };
	const bool good = literal_check(&literal, &call, &state, "by hand");
	if (good)
		model_literal(&literal, &call, word, carry);
	literal_free(&literal);
	buffer_free(&item);
	return good ? word[0] : -1;
}
#define FRONT(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

Test(op_wide, by_hand)
{
	cr_assert_eq(check(two, sizeof(two), 0, FRONT(0), 0, 0), 10);
	cr_assert_eq(check(two, sizeof(two), 1, FRONT(0), 0, 0), 20);
	cr_assert_eq(check(two, sizeof(two), 1, FRONT(0), 2, 0), -1);                   /* a renormalisation word left over */
	cr_assert_eq(check(two, sizeof(two), 1, FRONT(0), 1, 0), -1);                   /* half of one */
	cr_assert_eq(check(two, sizeof(two), 1, FRONT(0), 0, 1), -1);                   /* a final state above the lowest, without carry */
	cr_assert_eq(check(two, sizeof(two), 1, FRONT(1, 5), 0, 0), -1);                /* a literal left over */
	cr_assert_eq(check(one_and_escape, sizeof(one_and_escape), 1, FRONT(1, 5), 0, 0), 5);
	cr_assert_eq(check(one_and_escape, sizeof(one_and_escape), 1, FRONT(0), 0, 0), -1); /* a literal too few */
}

/* test_rans.c: lit.rans by hand: a table, escapes, literals, patches, damage. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/model_literal.h"

enum { HEAD = 8, STATES = 256 };

/* Sixteen symbols 100..115 that are all as likely: a full bucket of 16 positions each; 15 is the escape. */
static void uniform(struct literal *out)
{
	uint8_t body[HEAD + 16 + 15 + 16] = { 4, 8, 1, 1, 100, 0, 15, 0 };

	for (unsigned b = 0; b < 16; b++) {
		body[HEAD + b] = (uint8_t)b;
		body[HEAD + 16 + 15 + b] = (uint8_t)(15 | b << 4);
	}
	for (unsigned v = 0; v < 15; v++)
		body[HEAD + 16 + v] = (uint8_t)(200 + v);
	literal_from_body(out, OP_LIT_RANS, 8, body, sizeof(body));
}

/* An item of one word: lane 0 says symbol j, since 256 = 16 * 16 + 0 came from 16 << 8 | 16 * j. */
static struct buffer item_of(unsigned j, const void *front, size_t nfront)
{
	uint8_t states[STATES] = { (uint8_t)(16 * j) };
	struct buffer item = { 0 };

	memset(states + 128, 1, 128);
	states[128] = 16;
	buffer_put(&item, front, nfront);
	buffer_put(&item, states, STATES);
	return item;
}

/* The word that the item says, or -1: damaged. */
static int check(unsigned j, const void *front, size_t nfront, int more)
{
	struct literal literal;
	struct buffer item = item_of(j, front, nfront);
	uint8_t word[2], carry[BC_CARRY_MAX_NBYTES];
	uint64_t state = j;

	uniform(&literal);
	buffer_put(&item, "\0\0", more > 0 ? (size_t)more : 0);
	struct literal_call call = { .n = 1, .item = item.data, .item_nbytes = item.nbytes - (size_t)(more < 0) };
	const bool good = literal_check(&literal, &call, &state, "by hand");
	if (good)
		model_literal(&literal, &call, word, carry);
	literal_free(&literal);
	buffer_free(&item);
	return good ? word[0] : -1;
}
#define FRONT(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

Test(op_rans, by_hand)
{
	cr_assert_eq(check(0, FRONT(0, 0, 0), 0), 100);
	cr_assert_eq(check(14, FRONT(0, 0, 0), 0), 114);
	cr_assert_eq(check(0, FRONT(0, 0, 0), 1), -1);                          /* a renormalisation byte left over */
	cr_assert_eq(check(0, FRONT(0, 0, 0), -1), -1);                         /* states cut */
	cr_assert_eq(check(0, FRONT(0, 0), 0), -1);
	cr_assert_eq(check(0, FRONT(0x80, 0, 0, 0), 0), -1);                    /* a varint longer than it has to be */
}

Test(op_rans, escapes)
{
	cr_assert_eq(check(15, FRONT(1, 0, 0, 3), 0), (100 + 203) % 256);       /* tail */
	cr_assert_eq(check(15, FRONT(1, 1, 0, 15, 77), 0), 177);                /* literal */
	cr_assert_eq(check(15, FRONT(0, 0, 0), 0), -1);                         /* an escape too few */
	cr_assert_eq(check(0, FRONT(1, 0, 0, 3), 0), -1);                       /* one too many */
	cr_assert_eq(check(15, FRONT(2, 0, 0, 0x33), 0), -1);
	cr_assert_eq(check(15, FRONT(1, 0, 0, 15), 0), -1);                     /* a literal too few */
	cr_assert_eq(check(15, FRONT(1, 1, 0, 3, 77), 0), -1);                  /* one too many */
	cr_assert_eq(check(15, FRONT(1, 0, 0, 0x13), 0), -1);                   /* the last high nibble is not 0 */
}

Test(op_rans, patches)
{
	cr_assert_eq(check(3, FRONT(0, 0, 1, 0, 0, 0, 0, 9, 0), 0), 9);
	cr_assert_eq(check(3, FRONT(0, 0, 1, 1, 0, 0, 0, 9, 0), 0), -1);        /* beyond the end */
	cr_assert_eq(check(3, FRONT(0, 0, 1, 0, 0, 0, 0, 9, 1), 0), -1);        /* a word of more than 8 bits */
	cr_assert_eq(check(3, FRONT(0, 0, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 9, 0), 0), -1); /* more patches than words, and twice the same */
}

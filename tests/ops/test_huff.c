/* test_huff.c: lit.huff by hand: codes, both numbers of segments, damage. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/model_literal.h"

/* 5 is 0, 6 is 10, 7 is 11. */
static const uint8_t three[] = { 5, 7, 0x21, 0x02 };

static bool check(const void *item, size_t nbytes, size_t n, const uint8_t *want)
{
	struct literal literal;
	struct literal_call call = { .n = n, .item = item, .item_nbytes = nbytes };
	uint8_t words[64], carry[BC_CARRY_MAX_NBYTES];
	uint64_t state = 1;

	literal_from_body(&literal, OP_LIT_HUFF, 8, three, sizeof(three));
	const bool good = literal_check(&literal, &call, &state, "by hand");
	if (good && want) {
		model_literal(&literal, &call, words, carry);
		cr_assert(!memcmp(words, want, n));
	}
	literal_free(&literal);
	return good;
}
#define ITEM(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

Test(op_huff, by_hand)
{
	cr_assert(check(ITEM(0x0b), 3, (const uint8_t[]){ 7, 5, 6 }));
	cr_assert(check(ITEM(0x00), 8, (const uint8_t[]){ 5, 5, 5, 5, 5, 5, 5, 5 }));
	cr_assert(check(ITEM(0xff, 0x01), 11, (const uint8_t[]){ 7, 7, 7, 7, 6, 5, 5, 5, 5, 5, 5 }));
	cr_assert(!check(ITEM(0xff, 0x01), 12, NULL));                  /* a word more than there are bits */
	cr_assert(!check(ITEM(0xff), 5, NULL));                         /* the last code has no bits */
	cr_assert(!check(ITEM(0x2b), 3, NULL));                         /* a bit where there should be zeros */
	cr_assert(!check(ITEM(0x0b, 0), 3, NULL));                      /* a byte too many */
	cr_assert(!check(ITEM(0x0b), 2 + 8, NULL));                     /* too few bits */
	cr_assert(!check("", 0, 1, NULL));
}

Test(op_huff, segments_of_zero_bytes)
{
	uint8_t item[7 + 32] = { 0 };
	struct literal literal;
	struct literal_call call = { .n = 257, .item = item };
	uint64_t state = 2;

	/* q = 33: seven segments of 33 words, one of 26 */
	memset(item, 5, 7);
	literal_from_body(&literal, OP_LIT_HUFF, 8, three, sizeof(three));
	call.item_nbytes = 7 + 7 * 5 + 4;
	uint8_t whole[7 + 39] = { 0 };
	memset(whole, 5, 7);
	call.item = whole;
	cr_assert(literal_check(&literal, &call, &state, "eight segments of zeros"));
	whole[3] = 6, whole[4] = 4;
	cr_assert(!literal_check(&literal, &call, &state, "a segment's size moved"));
	whole[3] = whole[4] = 5, whole[0] = 0xff;
	cr_assert(!literal_check(&literal, &call, &state, "a segment beyond the end"));
	literal_free(&literal);
}

/* test_same.c: what is found of a tensor in earlier ones: all of it, or runs of rows, never through another ref. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "synth/same.h"
#include "tests/gen.h"

enum { ROW = 40, CHUNK = 100 };         /* words: chunks begin in the middle of rows */

/* Rows of random words, the same for the same number. */
static uint16_t *rows_of(const unsigned *number, size_t n)
{
	uint16_t *words = malloc(n * ROW * sizeof(*words));
	for (size_t r = 0; r < n; r++) {
		uint64_t state = number[r] + 1;
		for (size_t i = 0; i < ROW; i++)
			words[r * ROW + i] = (uint16_t)gen_random(&state);
	}
	return words;
}

static struct same_match find(struct same *same, size_t index, const unsigned *number, size_t n)
{
	uint16_t *words = rows_of(number, n);
	const struct source source = { .words = words, .nwords = n * ROW, .width = 16, .rows = n, .row_words = ROW };
	struct fingerprint print;
	struct same_match match;

	fingerprint_make(&source, &print);
	cr_assert_eq(same_find(same, index, &source, &print, CHUNK, &match), BRV_OK);
	for (uint64_t k = 0; match.first && k < ceil_div(source.nwords, CHUNK); k++)
		if (match.first[k] != SAME_NOTHING)
			cr_assert_lt(match.first[k], 1000u * ROW);
	free(print.row);
	free(words);
	return match;
}

static void fill(unsigned *number, size_t n, unsigned from)
{
	for (size_t i = 0; i < n; i++)
		number[i] = from + (unsigned)i;
}

Test(same, whole_tensors)
{
	struct same *same = alloc_same(3);
	unsigned a[20], b[20];
	fill(a, 20, 0), fill(b, 20, 100);
	cr_expect_eq(find(same, 0, a, 20).tensor, -1);
	cr_expect_eq(find(same, 1, b, 20).tensor, -1);
	const struct same_match match = find(same, 2, a, 20);
	cr_expect(match.tensor == 0 && match.whole && !match.first);
	free_same(same);
}

/* 30 rows, then the same with 10 more before and 10 others behind: 50 rows of 40 words in chunks of 100. */
Test(same, runs_of_rows)
{
	struct same *same = alloc_same(4);
	unsigned a[30], b[50];

	fill(a, 30, 0);
	fill(b, 10, 500), fill(b + 10, 30, 0), fill(b + 40, 10, 600);
	find(same, 0, a, 30);
	struct same_match match = find(same, 1, b, 50);
	cr_assert_eq(match.tensor, 0);
	cr_expect_not(match.whole);
	for (uint64_t k = 0; k < 20; k++) {
		const uint64_t low = k * CHUNK / ROW, high = (k * CHUNK + CHUNK - 1) / ROW;
		if (low >= 10 && high < 40)
			cr_expect_eq(match.first[k], k * CHUNK - 10 * ROW, "chunk %llu", (unsigned long long)k);
		else
			cr_expect_eq(match.first[k], SAME_NOTHING, "chunk %llu", (unsigned long long)k);
	}
	free(match.first);
	/* The rows that are refs in tensor 1 lead to tensor 0, those that are new there to tensor 1. */
	match = find(same, 2, b + 12, 20);
	cr_expect_eq(match.tensor, 0);
	free(match.first);
	match = find(same, 3, b + 40, 10);
	cr_expect_eq(match.tensor, 1);
	cr_expect_eq(match.first[1], 40 * ROW + CHUNK);
	free(match.first);
	free_same(same);
}

/* A row that occurs again and again, and one row in the middle that differs. */
Test(same, rows_that_repeat)
{
	struct same *same = alloc_same(2);
	unsigned a[40], b[40];

	fill(a, 40, 0);
	for (size_t i = 0; i < 40; i += 2)
		a[i] = 7777;
	memcpy(b, a, sizeof(b));
	b[21] = 8888;
	find(same, 0, a, 40);
	struct same_match match = find(same, 1, b, 40);
	cr_assert_eq(match.tensor, 0);
	for (uint64_t k = 0; k < 16; k++) {
		const bool touched = k * CHUNK / ROW <= 21 && (k * CHUNK + CHUNK - 1) / ROW >= 21;
		cr_expect(!touched || match.first[k] == SAME_NOTHING, "chunk %llu holds the row that differs", (unsigned long long)k);
	}
	cr_expect_eq(match.first[0], 0);
	free(match.first);
	free_same(same);
}

/* run_case.h: a case of gen.h through one kernel set, watched. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_RUN_CASE_H
#define TESTS_RUN_CASE_H

#include "tests/gen.h"

/* Runs the case twice in the set, with the destination `misalign` (0..63) bytes behind a guard page and ending just before one, and
 * fails the test unless the verdict, the words and the carry are those expected (of the case or else of the scalar set), and nothing beside
 * the words was written. */
void run_case(const struct kn_set *set, const struct gen_case *gen, unsigned misalign);

/* The same in every set that this CPU has. */
void run_case_everywhere(const struct gen_case *gen);

/* For edge cases written down by hand: words as u64, whatever their width. `want` NULL: the definition of tests/model.h. */
struct hand_words {
	size_t n;
	const uint64_t *word;
};
#define HAND(...) (struct hand_words){ sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8, (const uint64_t[]){ __VA_ARGS__ } }

/* Adds an argument stream of these words. */
void hand_source(struct gen_case *gen, unsigned width, struct hand_words words);
/* Ends the case: runs it everywhere, expecting these words, then frees it. */
void hand_check(struct gen_case *gen, unsigned width, const struct hand_words *want);

#endif

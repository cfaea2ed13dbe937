/* invert.h: ops run backward: from the words that an op has to produce to the words of its arguments.
 *
 * This is how the search decomposes a target and how the encoder finds what each literal has to store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_INVERT_H
#define SYNTH_INVERT_H

#include "common/bytecode.h"

/* Words in memory: n of them, word_nbytes(width) bytes each. */
struct words {
	const void *ptr;
	size_t n;
	unsigned width;
};

/* Rows of the words, for gate: word i lies in row (first + i) / row_words. */
struct row_view {
	const uint8_t *row_class;
	size_t row_words, first;
};

/* Splits target into the arguments of op. arg[k].width is set by the caller; arg[k].ptr is where the words go (room for target.n words
 * of 8 bytes at most: word_nbytes of its own width); arg[k].n is set. False if op cannot produce the target exactly. n > 0. rows may be NULL except for gate. */
struct words_out {
	void *ptr;
	size_t n;
	unsigned width;
};
bool invert(enum bc_op op, uint64_t imm, struct words target, const struct row_view *rows, struct words_out *arg, unsigned nargs);

/* The same for a merge of words that are first rotated left by `rotate`, 0 <= rotate < width: a map.rot above a merge, without the words between. Arguments
 * whose ptr is NULL are not written. */
bool invert_merge(struct words target, unsigned rotate, struct words_out *arg, unsigned nargs);

/* Whether all words are equal. n > 0. */
bool words_constant(struct words target);

/* Smallest and largest word. n > 0. */
void words_range(struct words target, uint64_t *low, uint64_t *high);

#endif

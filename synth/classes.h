/* classes.h: row and column classes of a tensor: the contexts that pick a literal's table.
 *
 * Rows are dimension 0, columns the product of the rest. Each row and each column gets one of a few classes by alternating k-means, where the distance
 * of a row to a class is the code length of its symbols under the class's distribution. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_CLASSES_H
#define SYNTH_CLASSES_H

#include "common/base.h"

struct classes {
	uint8_t kr, kc;                 /* 1: no row (column) classes */
	size_t rows, row_words;
	uint8_t *row, *col;             /* rows entries; row_words entries, extended cyclically by 256 */
	uint8_t zero_bits;              /* low bits that are 0 in all words of the rows of class kr - 1; 0: there is no such class */
};

/* What of a word tells its scale: the bits from `shift` on, of which a window of 16 values is told apart, and perhaps the sign. */
struct class_view {
	const void *words;
	unsigned width;                 /* 8, 16 or 32 */
	unsigned shift, bits;
	bool sign;                      /* the top bit counts: types whose sign is coded with the exponent */
	bool complement;                /* negative words are inverted first */
};

/* Assigns the classes; deterministic. False if there is no memory. On success the arrays are freed by classes_free(). Only some of the
 * words are looked at: at most about `budget` of them for rows, and as many for columns; a larger budget also
 * means more iterations. */
bool classes_build(struct classes *out, const struct class_view *view, size_t rows, size_t row_words, unsigned kr, unsigned kc, size_t budget);
void classes_free(struct classes *classes);

/* counts[(r * kc + c) << width | word] += 1 for n words of `width` <= 16 bits that begin at word `first` of the tensor, each with the
 * class pair that a CLASSED literal would give it (docs/FORMAT.md, 7). use_rows, use_cols: whether the table distinguishes them. */
void classes_count(const struct classes *classes, bool use_rows, bool use_cols, const void *words, unsigned width, size_t n, size_t first,
		   uint32_t *counts);

#endif

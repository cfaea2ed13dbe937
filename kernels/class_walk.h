/* class_walk.h: where the groups of a register lie in their tensor (docs/FORMAT.md, 7): row and column of each group's first word.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CLASS_WALK_H
#define KERNELS_CLASS_WALK_H

#include "kernels/kernel.h"

struct class_walk {
	size_t row, column, row_words;
};

static inline struct class_walk class_walk_start(const struct kn_args *a)
{
	if (!a->row_class && !a->col_class)
		return (struct class_walk){ 0, 0, SIZE_MAX };
	return (struct class_walk){ a->first / a->row_words, a->first % a->row_words, a->row_words };
}

/* On to the next group. */
static inline void class_walk_step(struct class_walk *walk)
{
	walk->column += KN_GROUP;
	if (walk->column >= walk->row_words) {
		walk->row += walk->column / walk->row_words;
		walk->column %= walk->row_words;
	}
}

#endif

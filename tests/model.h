/* model.h: the ops without tables as docs/FORMAT.md defines them: one word, often one bit at a time, with nothing shared with the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include "kernels/kernel.h"

/* Packs n words of `width` bits (word_nbytes(width) each) into packed_nbytes(n, width) bytes. */
void model_pack(uint8_t *out, const void *words, size_t n, unsigned width);
uint64_t model_unpack(const uint8_t *packed, size_t i, unsigned width);

/* What the op of a valid call has to produce: args->n words. */
void model_op(const struct kn_args *args, void *out);

#endif

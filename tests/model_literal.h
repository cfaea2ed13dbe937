/* model_literal.h: the entropy-coded literals as docs/FORMAT.md defines them, from a table's body and an item's bytes, word by word, with
 * nothing shared with the kernels but the varint; and calls of kernels that have to agree with it. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MODEL_LITERAL_H
#define TESTS_MODEL_LITERAL_H

#include "common/archive.h"
#include "kernels/kernel.h"

struct literal {
	uint8_t op;
	unsigned width, kr, kc;
	struct buffer body;
	struct kn_table *table;
};

/* A table with this body. Width and classes are those of the body, except lit.huff's width. */
void literal_from_body(struct literal *out, enum bc_op op, unsigned width, const void *body, size_t nbytes);
/* A table trained on random counts of `symbols` different words. False if these counts make none. */
bool test_literal_train(struct literal *out, enum bc_op op, unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, unsigned symbols, uint64_t *state);
/* The i-th of a walk over an op's table sizes: a table for words of `width` bits with random counts and numbers of classes. False as above. */
enum test_classes { CLASSES_NONE, CLASSES_ROWS, CLASSES_BOTH };
bool test_literal_random(struct literal *out, uint8_t op, unsigned width, enum test_classes classes, unsigned i, uint64_t *state);
void literal_free(struct literal *literal);

struct literal_call {
	size_t n, item_nbytes;
	const uint8_t *item;            /* without its u32 length */
	const uint8_t *row_class, *col_class;   /* never scaled; columns extended by KN_CLASS_PAD */
	size_t nrows, row_words, first;
	bool carry;
	/* A fused merge if there are fields: */
	unsigned nfield, rotate, carried;       /* carried: index of the field that the carry completes */
	uint8_t field[3];
};

/* What the item says: n words (word_nbytes(width) each) and the carry. False if it is damaged. */
bool model_literal(const struct literal *literal, const struct literal_call *call, void *words, uint8_t carry[BC_CARRY_MAX_NBYTES]);

/* The call in every kernel set, compared with the model: verdict, words, carry. Raw fields are random. True if the item was good. */
bool literal_check(const struct literal *literal, const struct literal_call *call, uint64_t *state, const char *what);

/* Words that suit the table, encoded in every set (all alike), decoded in every set; then the same item damaged in `damages` ways. Classes are
 * random if the table has any. */
void literal_exercise(const struct literal *literal, struct literal_call call, unsigned damages, uint64_t *state, const char *what);

#endif

/* targets.h: the exact streams that the holes of partial programs have to produce, on a sample of one tensor.
 *
 * Target 0 is the tensor's sample itself; every other one is an argument of an op applied backward to another. Words are
 * made when they are first needed, once, and shared by all partial programs that contain the same decomposition.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_TARGETS_H
#define SYNTH_TARGETS_H

#include "synth/classes.h"
#include "synth/expr.h"
#include "synth/invert.h"

enum { TARGET_MAX_SEGMENTS = 16, TARGETS_MAX = 1024, TARGET_MAX_LITERALS = 36 };

/* A literal (or const) that can close a hole, and what it would cost over the whole tensor. */
struct literal {
	struct expr_node node;          /* op, imm, log2_nb, rows, cols, choice are set */
	double nbytes, cycles;
};

struct target {
	uint8_t width;
	bool positional;                /* word i stands for word i of the chunk */
	bool classed;                   /* class tables can be used: its rows are those that the classes are of */
	uint64_t row_words;             /* of a row of the tensor; 0: its words do not keep their places in rows */
	bool varies;                    /* what chunks choose from, or by: a constant or a length in the sample is none elsewhere */
	bool made, exact;               /* words exist; exact is false if the op turned out not to produce the parent */
	bool judged;                    /* literal[] is filled */
	uint8_t op, slot, nargs;        /* the op that this is argument `slot` of */
	uint16_t parent, first;         /* first: target of argument 0 */
	uint64_t imm;
	size_t n[TARGET_MAX_SEGMENTS];  /* words by segment */
	size_t total;
	void *words;
	unsigned nliterals;
	struct literal literal[TARGET_MAX_LITERALS]; /* cheapest first */
};

struct targets {
	unsigned count, nsegments;
	size_t first[TARGET_MAX_SEGMENTS];      /* of each segment in the tensor, in words */
	double scale;                           /* words of the tensor / words of the sample */
	uint64_t nchunks;                       /* of the tensor */
	const struct classes *classes;          /* or NULL */
	struct target *target[TARGETS_MAX];
};

/* Takes over sample (malloc'ed): nsegments segments of n[] words that begin at word first[] of the tensor. */
bool targets_init(struct targets *targets, void *sample, unsigned width, unsigned nsegments, const size_t *n, const size_t *first);
void targets_free(struct targets *targets);

/* Says what a row of the tensor is, 0 if it has none, and the classes there are, NULL if none, before any target is derived. */
void targets_set_rows(struct targets *targets, uint64_t row_words, const struct classes *classes);

/* The number that the first word of segment s has among the words of the whole tensor that this target stands for. Only if it has rows. */
size_t target_first(const struct targets *targets, const struct target *target, unsigned s);

/* The first of the nargs targets that op leaves of target `parent`; their widths are given. -1 if out of room or memory. */
int targets_derive(struct targets *targets, unsigned parent, enum bc_op op, uint64_t imm, unsigned nargs, const uint8_t *width);

/* The target with its words made, or NULL if the op cannot produce its parent exactly (or memory is short). */
const struct target *targets_get(struct targets *targets, unsigned index);

#endif

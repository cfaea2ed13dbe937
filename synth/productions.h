/* productions.h: what can fill a hole: the rules of the search's grammar.
 *
 * A production is an op of the op table together with what makes it concrete: the literal's table form, the fields of a merge, the
 * operand of a map (taken from the target). A split is the one production that fills two ops at once, map.rot over merge, because
 * neither pays without the other. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_PRODUCTIONS_H
#define SYNTH_PRODUCTIONS_H

#include "synth/cost.h"
#include "synth/records.h"
#include "synth/targets.h"
#include "synth/train.h"

struct production {
	const char *name;
	uint8_t op;
	bool literal;                   /* closes the hole */
	uint8_t width;                  /* only targets of this width; 0: any that the op can have */
	/* Literals. */
	uint8_t log2_nb;
	bool rows, cols;
	/* Splits: rotation, then the fields' widths, lowest first; 0 ends. gated: the lowest field is under a gate that leaves out the rows in which it
	 * is 0 throughout. */
	uint8_t rotate, field[EXPR_MAX_ARGS];
	bool gated;
	bool zeros;                     /* splits: only where the lowest field is 0 throughout */
	bool start;                     /* only where a start asks for it */
};

/* What fills the root before a search begins, for streams that look like it: a lookup or a scatter, below a merge that takes the sign away or not; or
 * a weave of records, with a deal below it or not. */
struct start {
	uint8_t op;
	bool dealt;
	const struct record_type *record; /* of a weave */
	bool sign_apart;
	uint8_t bits;                   /* of a lookup's index */
	uint64_t imm;
};

extern const struct production productions[];
extern const unsigned nproductions;

/* Whether production p can be tried on a target at this depth, before its words are looked at. */
bool production_fits(const struct production *p, const struct target *target, unsigned depth, unsigned max_depth);

/* Fills hole `at` of expr with a production that is no literal. False if the target does not allow it (or there is no room): then expr is as it was.
 * May make the hole's target (for operands), not its arguments'. */
bool production_apply(unsigned p, struct targets *targets, struct expr *expr, unsigned at);

/* Fills node 0, the only one, a hole, as a start says. False if it cannot be. */
bool production_start(const struct start *start, struct targets *targets, struct expr *expr);

/* Whether a target is scales of records, two bytes each. */
static inline bool target_is_scales(const struct target *t) { return t->op == OP_WEAVE && (t->imm >> 16 * t->slot & 0xffff) == 2; }

/* Fills node 0, a hole of such a target, with words of two bytes, and these with their bytes: two holes. False if there is no room. */
bool production_halves(struct targets *targets, struct expr *expr);

/* Fills target->literal[]: what each literal would cost over the whole tensor. False if memory is short or the target is not exact. */
bool literals_judge(struct targets *targets, unsigned index, const struct cost_model *model);

/* Trains the table of a literal from counts of its symbols (as in synth/train.h). */
bool literal_train(const struct expr_node *node, const struct classes *classes, const uint32_t *counts, struct buffer *body);

/* The kind byte of the table in TABL that op needs; 0 for none. */
static inline uint8_t table_kind(uint8_t op) { return bc_opinfo(op)->table; }

#endif

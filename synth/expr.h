/* expr.h: a candidate program as a tree, with holes where nothing has been decided yet.
 *
 * A tree is a small flat array, node 0 its root, so that search states are copied by assignment. Every node knows the target: the
 * stream that it has to produce (synth/targets.h). SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_EXPR_H
#define SYNTH_EXPR_H

#include "common/bytecode.h"

enum { EXPR_MAX_NODES = 40, EXPR_MAX_ARGS = 8, EXPR_HOLE = 0 };

struct expr_node {
	uint8_t op;                     /* enum bc_op, or EXPR_HOLE */
	uint8_t width, nargs, depth;
	uint8_t arg[EXPR_MAX_ARGS];
	uint16_t target;
	/* Literals with a table: what the table is to be. */
	uint8_t log2_nb;                /* lit.rans */
	bool rows, cols;                /* by the tensor's row classes, column classes */
	uint8_t choice;                 /* production that filled the node, for the prior */
	uint64_t imm;
};

struct expr {
	uint8_t nnodes;
	struct expr_node node[EXPR_MAX_NODES];
};

/* A tree of one hole. */
void expr_init(struct expr *expr, unsigned width, unsigned target);

/* Turns hole `at` into op with nargs new holes; their widths and targets are the caller's to set. False if there is no room. */
bool expr_fill(struct expr *expr, unsigned at, enum bc_op op, uint64_t imm, unsigned nargs);

/* Puts a tree into hole `at` of another. False if there is no room. */
bool expr_graft(struct expr *expr, unsigned at, const struct expr *tree);

/* Whether two trees are the same, node by node. */
bool expr_equal(const struct expr *a, const struct expr *b);

/* The first hole in the order of execution, or -1. */
int expr_hole(const struct expr *expr);

/* The tree as bytecode: post-order, CLASSED flags set, and with `carry` each rANS literal made the carrier of the nearest
 * lit.raw before it. order[i] is the node of instruction i. False if there is a hole or it does not fit or link. */
bool expr_to_program(const struct expr *expr, bool carry, struct bc_program *program, uint8_t order[BC_MAX_INSTR]);

#endif

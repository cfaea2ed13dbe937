/* expr.c: candidate programs as trees, and their translation into bytecode. SPDX-License-Identifier: Apache-2.0 */
#include "synth/expr.h"

void expr_init(struct expr *expr, unsigned width, unsigned target)
{
	memset(expr, 0, sizeof(*expr));
	expr->nnodes = 1;
	expr->node[0] = (struct expr_node){ .op = EXPR_HOLE, .width = (uint8_t)width, .target = (uint16_t)target };
}

bool expr_fill(struct expr *expr, unsigned at, enum bc_op op, uint64_t imm, unsigned nargs)
{
	struct expr_node *node = &expr->node[at];

	if (nargs > EXPR_MAX_ARGS || expr->nnodes + nargs > EXPR_MAX_NODES)
		return false;
	node->op = (uint8_t)op, node->imm = imm, node->nargs = (uint8_t)nargs;
	for (unsigned i = 0; i < nargs; i++) {
		node->arg[i] = expr->nnodes;
		expr->node[expr->nnodes++] = (struct expr_node){ .op = EXPR_HOLE, .width = node->width, .depth = (uint8_t)(node->depth + 1) };
	}
	return true;
}

bool expr_graft(struct expr *expr, unsigned at, const struct expr *tree)
{
	/* Node 0 takes the hole's place, the others come behind. */
	const unsigned behind = expr->nnodes - 1u;

	if (expr->nnodes + tree->nnodes - 1u > EXPR_MAX_NODES)
		return false;
	for (unsigned i = 0; i < tree->nnodes; i++) {
		struct expr_node *node = &expr->node[i ? behind + i : at];
		*node = tree->node[i];
		for (unsigned k = 0; k < node->nargs; k++)
			node->arg[k] = (uint8_t)(behind + node->arg[k]);
	}
	expr->nnodes = (uint8_t)(behind + tree->nnodes);
	return true;
}

static int first_hole(const struct expr *expr, unsigned at)
{
	const struct expr_node *node = &expr->node[at];

	if (node->op == EXPR_HOLE)
		return (int)at;
	for (unsigned i = 0; i < node->nargs; i++) {
		int hole = first_hole(expr, node->arg[i]);
		if (hole >= 0)
			return hole;
	}
	return -1;
}

static bool same_node(const struct expr_node *a, const struct expr_node *b)
{
	return a->op == b->op && a->width == b->width && a->nargs == b->nargs && a->depth == b->depth && a->target == b->target &&
	       a->log2_nb == b->log2_nb && a->rows == b->rows && a->cols == b->cols && a->choice == b->choice && a->imm == b->imm &&
	       !memcmp(a->arg, b->arg, a->nargs);
}

bool expr_equal(const struct expr *a, const struct expr *b)
{
	bool same = a->nnodes == b->nnodes;
	for (unsigned i = 0; same && i < a->nnodes; i++)
		same = same_node(&a->node[i], &b->node[i]);
	return same;
}

int expr_hole(const struct expr *expr) { return first_hole(expr, 0); }

/* Appends the subtree at a node in post-order; false if it has a hole or too many instructions. */
static bool append(const struct expr *expr, unsigned at, struct bc_program *program, uint8_t *order)
{
	const struct expr_node *node = &expr->node[at];

	if (node->op == EXPR_HOLE)
		return false;
	for (unsigned i = 0; i < node->nargs; i++)
		if (!append(expr, node->arg[i], program, order))
			return false;
	if (program->ninstr == BC_MAX_INSTR)
		return false;
	order[program->ninstr] = (uint8_t)at;
	program->instr[program->ninstr++] = (struct bc_instr){
		.op = node->op, .width = node->width, .nargs = node->nargs, .imm = node->imm,
		.flags = node->rows || node->cols || node->op == OP_GATE ? BC_CLASSED : 0,
	};
	return true;
}

/* Gives every rANS literal the widest lit.raw before it that is not yet taken (of equals the nearest): the one whose last bytes it hides,
 * and the one where these are the fewest words. */
static void place_carries(struct bc_program *program)
{
	bool taken[BC_MAX_INSTR] = { false };

	for (unsigned i = 0; i < program->ninstr; i++) {
		struct bc_instr *instr = &program->instr[i];
		int best = -1;
		if (!bc_is_rans(instr->op))
			continue;
		for (unsigned k = 0; k < i; k++)
			if (program->instr[k].op == OP_LIT_RAW && !taken[k] && (best < 0 || program->instr[k].width >= program->instr[best].width))
				best = (int)k;
		if (best >= 0)
			instr->flags |= BC_CARRY, instr->aux = (uint32_t)best, taken[best] = true;
	}
}

bool expr_to_program(const struct expr *expr, bool carry, struct bc_program *program, uint8_t order[BC_MAX_INSTR])
{
	memset(program, 0, sizeof(*program));
	if (!append(expr, 0, program, order))
		return false;
	if (carry)
		place_carries(program);
	return program_link(program, NULL) == BRV_OK;
}

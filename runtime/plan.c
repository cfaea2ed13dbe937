/* plan.c: order, places and fusions of a program (plan.h).
 *
 * Places follow the tree from the root: the arguments of an instruction stand side by side right behind its own words, so a
 * subtree works in the space behind its result, and siblings reuse what the subtrees before them needed. A literal that runs early
 * because it carries bytes for another has a place for itself before all those. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan.h"

#include "common/deal.h"

static bool is_carrier(const struct bc_instr *instr) { return instr->flags & BC_CARRY; }

static struct place behind(struct place place, unsigned units)
{
	return (struct place){ (uint16_t)(place.units + units), (uint16_t)(place.pads + 1) };
}

/* Most words that register i has for a word of the root, rounded up: more than one only below a deal, whose words have fewer bits. */
static unsigned most_words(const struct bc_program *program, unsigned i)
{
	for (unsigned at = i; at + 1u < program->ninstr;) {
		const unsigned arg = at;
		at = program->parent[at];
		if (program->instr[at].op == OP_DEAL)
			return deal_most_words(program->instr[at].width, program->instr[arg].width);
	}
	return 1;
}

/* Bytes of arena that register i takes for a word of the root. */
static unsigned units_of(const struct bc_program *program, unsigned i)
{
	return most_words(program, i) * (unsigned)word_nbytes(program->instr[i].width);
}

static bool is_in_payload(const struct bc_program *program, unsigned i)
{
	unsigned w = program->instr[i].width;
	return program->instr[i].op == OP_LIT_RAW && program->carry_of[i] == PLAN_NONE && w == 8 * word_nbytes(w);
}

static void make_order(struct plan *plan, const struct bc_program *program)
{
	unsigned n = 0;
	for (unsigned i = 0; i < program->ninstr; i++) {
		if (program->carry_of[i] != PLAN_NONE)
			plan->order[n++] = program->carry_of[i];
		if (!is_carrier(&program->instr[i]))
			plan->order[n++] = (uint8_t)i;
	}
	assert(n == program->ninstr);
}

static void make_places(struct plan *plan, const struct bc_program *program)
{
	unsigned root = program->ninstr - 1u, unpacked = 0, longest = 1;
	plan->at[root] = (struct place){ 0, 0 };
	struct place end = behind(plan->at[root], units_of(program, root));
	for (unsigned i = 0; i < root; i++) {
		if (is_carrier(&program->instr[i])) {
			plan->at[i] = end;
			end = behind(end, units_of(program, i));
		}
		if (program->carry_of[i] != PLAN_NONE)
			unpacked = MAX(unpacked, units_of(program, i));
		longest = MAX(longest, most_words(program, i));
	}
	struct place tree = end;
	for (unsigned i = program->ninstr; i-- > 0;) {
		bool pinned = i == root || is_carrier(&program->instr[i]);
		struct place next = pinned ? tree : behind(plan->at[i], plan->in_payload[i] ? 0 : units_of(program, i));
		for (unsigned k = 0; k < program->instr[i].nargs; k++) {
			unsigned arg = program->arg[program->arg_at[i] + k];
			if (is_carrier(&program->instr[arg]))
				continue;
			plan->at[arg] = next;
			next = behind(next, plan->in_payload[arg] ? 0 : units_of(program, arg));
		}
		end.units = MAX(end.units, next.units);
		end.pads = MAX(end.pads, next.pads);
	}
	plan->scratch = end;
	plan->unpacked = behind(end, 2 * longest);
	plan->end = behind(plan->unpacked, unpacked);
}

/* Whether instructions first..last are executed at just these positions, in any order among themselves: no carrier of elsewhere is moved before them. */
static bool is_in_place(const struct plan *plan, unsigned first, unsigned last)
{
	for (unsigned at = first; at <= last; at++)
		if (plan->order[at] < first || plan->order[at] > last)
			return false;
	return true;
}

/* A merge of lit.raw fields under one entropy-coded field, all direct arguments, whose carry, if any, stays inside. */
static bool is_fusable(const struct bc_program *program, unsigned merge)
{
	const struct bc_instr *instr = &program->instr[merge];
	if (instr->op != OP_MERGE || instr->nargs > 4)
		return false;
	unsigned first = merge - instr->nargs, coded = merge - 1;
	const struct bc_instr *top = &program->instr[coded];
	if (program->arg[program->arg_at[merge]] != first || !bc_is_rans(top->op))
		return false;
	if (is_carrier(top) && top->aux < first)
		return false;
	for (unsigned i = first; i < coded; i++)
		if (program->instr[i].op != OP_LIT_RAW || (program->carry_of[i] != PLAN_NONE && program->carry_of[i] != coded))
			return false;
	return true;
}

void plan_make(struct plan *plan, const struct bc_program *program)
{
	memset(plan, 0, sizeof *plan);
	memset(plan->fused, PLAN_NONE, sizeof plan->fused);
	make_order(plan, program);
	for (unsigned i = 0; i < program->ninstr; i++) {
		plan->in_payload[i] = is_in_payload(program, i);
		plan->has_gate = plan->has_gate || program->instr[i].op == OP_GATE;
		if (is_fusable(program, i) && is_in_place(plan, i - program->instr[i].nargs, i))
			plan->fused[i - program->instr[i].nargs] = (uint8_t)i;
	}
	make_places(plan, program);
}

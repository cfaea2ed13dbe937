/* search.c: bounded A* over partial programs.
 *
 * g is the sum of -log2 P(production | context) of what has been filled. h is, for each hole, the least such value that any production
 * has in the hole's context: every completion fills each hole with at least one production, so h never exceeds what a completion adds, and f
 * = g + h is admissible (and consistent: filling a hole adds its production's value and takes away that hole's minimum).
 *
 * The lower bound in cost is exact for closed literals and 0 for what is below a hole, except at the depth limit, where only literals
 * remain and the cheapest is the bound. It grows along every path, so a state whose bound reaches the best complete cost can be cut without
 * losing anything better. SPDX-License-Identifier: Apache-2.0 */
#include "synth/search.h"

#include <math.h>
#include <stdlib.h>

struct state {
	double f, g, bound;
	unsigned serial;                /* ties go to the older state */
	struct expr expr;
};

struct heap {
	struct state **at;
	unsigned count, limit;
};

static bool before(const struct state *a, const struct state *b) { return a->f != b->f ? a->f < b->f : a->serial < b->serial; }

static void heap_push(struct heap *heap, struct state *state)
{
	unsigned i = heap->count++;

	for (; i && before(state, heap->at[(i - 1) / 2]); i = (i - 1) / 2)
		heap->at[i] = heap->at[(i - 1) / 2];
	heap->at[i] = state;
}

static struct state *heap_pop(struct heap *heap)
{
	struct state *top = heap->at[0], *last = heap->at[--heap->count];
	unsigned i = 0;

	for (unsigned child; (child = 2 * i + 1) < heap->count; i = child) {
		if (child + 1 < heap->count && before(heap->at[child + 1], heap->at[child]))
			child++;
		if (before(last, heap->at[child]))
			break;
		heap->at[i] = heap->at[child];
	}
	heap->at[i] = last;
	return top;
}

static struct prior_context context_of(const struct search *s, const struct expr *expr, unsigned hole)
{
	const struct expr_node *node = &expr->node[hole];

	return (struct prior_context){ .dtype = s->dtype, .width = node->width, .depth = node->depth, .size_class = s->size_class,
				       .parent_op = s->targets->target[node->target]->op };
}

static double hole_least_bits(const struct search *s, const struct expr *expr, unsigned hole)
{
	const struct prior_context context = context_of(s, expr, hole);
	double bits[PRIOR_MAX_PRODUCTIONS], least;

	prior_bits(s->prior, &context, bits, &least);
	return least;
}

/* Cycles of a word; the coded field of a gated merge is its third. */
static double node_cycles(const struct search *s, const struct expr_node *node)
{
	return cost_cycles(&s->model, node, 1) + (node->op == OP_GATE ? cost_apart_cycles(productions[node->choice].field[2]) : 0);
}

/* Cycles that all nodes of the tree but its literals take over the tensor. */
static double ops_cycles(const struct search *s, const struct expr *expr)
{
	double cycles = 0;

	for (unsigned i = 0; i < expr->nnodes; i++) {
		const struct expr_node *node = &expr->node[i];
		const struct target *t = s->targets->target[node->target];
		if (node->op != EXPR_HOLE && !productions[node->choice].literal && t->made)
			cycles += node_cycles(s, node) * (double)t->total * s->targets->scale;
	}
	return cycles;
}

/* The literal of a target that a closed node holds. */
static const struct literal *literal_of(const struct search *s, const struct expr_node *node)
{
	const struct target *t = s->targets->target[node->target];

	for (unsigned i = 0; i < t->nliterals; i++)
		if (t->literal[i].node.choice == node->choice)
			return &t->literal[i];
	return NULL;
}

void search_close(struct expr *expr, unsigned hole, const struct literal *literal)
{
	struct expr_node *node = &expr->node[hole];
	const uint8_t depth = node->depth;
	const uint16_t target = node->target;

	*node = literal->node;
	node->depth = depth, node->target = target;
}

/* Bytes that the ops themselves take of every chunk: the first word of a scan, a count in the chunk record. */
enum { COUNT_NBYTES = 3 };
static double ops_nbytes(const struct search *s, const struct expr *expr)
{
	double nbytes = 0;

	for (unsigned i = 0; i < expr->nnodes; i++) {
		const struct bc_opinfo *info = bc_opinfo(expr->node[i].op);
		if (info && info->payload == PAYLOAD_FIRST)
			nbytes += (double)s->targets->nchunks * ((expr->node[i].width + 7) / 8);
		else if (info && info->words == WORDS_COUNT)
			nbytes += (double)s->targets->nchunks * COUNT_NBYTES;
	}
	return nbytes;
}

double search_bound(const struct search *s, const struct expr *expr)
{
	double bound = ops_nbytes(s, expr) + s->model.lambda * ops_cycles(s, expr);

	for (unsigned i = 0; i < expr->nnodes; i++) {
		const struct expr_node *node = &expr->node[i];
		if (node->op == EXPR_HOLE) {
			const struct target *t = s->targets->target[node->target];
			if (node->depth >= s->limits.depth && t->judged && t->nliterals)
				bound += t->literal[0].nbytes + s->model.lambda * t->literal[0].cycles;
		} else if (productions[node->choice].literal) {
			const struct literal *literal = literal_of(s, node);
			bound += literal ? literal->nbytes + s->model.lambda * literal->cycles : 0;
		}
	}
	return bound;
}

static void explain(const struct search *s, const char *verdict, const struct expr *expr, double g, double h, double nbytes, double cost)
{
	struct bc_program program;
	uint8_t order[BC_MAX_INSTR];
	char text[200] = "(partial)";

	if (!s->explain)
		return;
	if (expr_to_program(expr, false, &program, order))
		program_print(&program, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "(partial) %s", productions[expr->node[0].choice].name);
	fprintf(s->explain, "%-9s f %6.2f g %6.2f h %6.2f", verdict, g + h, g, h);
	if (nbytes >= 0)
		fprintf(s->explain, " bytes %12.0f cost %12.0f", nbytes, cost);
	fprintf(s->explain, "  %s\n", text);
}

/* Notes a complete program among the cheapest. */
static void keep(struct search_result *r, const struct expr *expr, double cost)
{
	unsigned at = r->nkept;

	if (at == SEARCH_KEPT && cost >= r->kept[at - 1].cost)
		return;
	for (unsigned i = 0; i < r->nkept; i++)
		if (r->kept[i].cost == cost && expr_equal(&r->kept[i].expr, expr))
			return;
	if (at == SEARCH_KEPT)
		at--;
	else
		r->nkept++;
	for (; at && r->kept[at - 1].cost > cost; at--)
		r->kept[at] = r->kept[at - 1];
	r->kept[at].expr = *expr, r->kept[at].cost = cost;
}

double search_cost(const struct search *s, const struct expr *expr, double *nbytes, double *cycles)
{
	*nbytes = ops_nbytes(s, expr), *cycles = ops_cycles(s, expr);
	for (unsigned i = 0; i < expr->nnodes; i++) {
		const struct literal *literal = productions[expr->node[i].choice].literal ? literal_of(s, &expr->node[i]) : NULL;
		if (literal)
			*nbytes += literal->nbytes, *cycles += literal->cycles;
	}
	*nbytes += 0.5 * expr->nnodes; /* bytecode, shared by many tensors */
	return *nbytes + s->model.lambda * *cycles;
}

/* Takes a complete program as the best if it is. Programs that cost the same: the first stays. */
static void consider(struct search *s, struct search_result *r, const struct expr *expr, double g)
{
	double nbytes, cycles;
	const double cost = search_cost(s, expr, &nbytes, &cycles);
	const bool better = cost < r->cost;
	explain(s, better ? "best" : "complete", expr, g, 0, nbytes, cost);
	if (better)
		r->best = *expr, r->nbytes = nbytes, r->cycles = cycles, r->cost = cost;
	keep(r, expr, cost);
}

/* Closes every hole with its cheapest literal. False if some hole's target does not exist. */
static bool close_all(struct search *s, struct expr *expr)
{
	for (int hole; (hole = expr_hole(expr)) >= 0;) {
		const unsigned target = expr->node[hole].target;
		if (!literals_judge(s->targets, target, &s->model) || !s->targets->target[target]->nliterals)
			return false;
		search_close(expr, (unsigned)hole, &s->targets->target[target]->literal[0]);
	}
	return true;
}

/* By the production alone: closing needs no probable literals, and by f a merge of eight fields, whose holes add up, would come behind everything. */
static int by_g(const void *a, const void *b)
{
	const struct state *x = *(struct state *const *)a, *y = *(struct state *const *)b;
	return x->g != y->g ? (x->g < y->g ? -1 : 1) : before(x, y) ? -1 : 1;
}

double search_h(const struct search *s, const struct expr *expr)
{
	double h = 0;

	for (unsigned i = 0; i < expr->nnodes; i++)
		if (expr->node[i].op == EXPR_HOLE)
			h += hole_least_bits(s, expr, i);
	return h;
}

/* All ways to fill the first hole of a state: successors in next[], at most nproductions. */
static unsigned successors(struct search *s, const struct state *state, struct search_result *r, struct state **next)
{
	const unsigned hole = (unsigned)expr_hole(&state->expr), target = state->expr.node[hole].target;
	const struct prior_context context = context_of(s, &state->expr, hole);
	double bits[PRIOR_MAX_PRODUCTIONS], least;
	unsigned count = 0;

	prior_bits(s->prior, &context, bits, &least);
	const bool judged = literals_judge(s->targets, target, &s->model);
	const struct target *t = s->targets->target[target];
	for (unsigned p = 0; judged && p < nproductions; p++) {
		const struct literal *literal = NULL;
		struct state *n;

		if (!production_fits(&productions[p], t, state->expr.node[hole].depth, s->limits.depth))
			continue;
		/* Costs add up over holes, so every literal but the cheapest is dominated by it. */
		if (productions[p].literal && t->nliterals && t->literal[0].node.choice == p)
			literal = &t->literal[0];
		if ((productions[p].literal && !literal) || !(n = malloc(sizeof(*n))))
			continue;
		n->expr = state->expr;
		if (literal)
			search_close(&n->expr, hole, literal);
		else if (!production_apply(p, s->targets, &n->expr, hole)) {
			free(n);
			continue;
		}
		n->g = state->g + bits[p];
		n->f = n->g + search_h(s, &n->expr);
		n->bound = search_bound(s, &n->expr);
		n->serial = r->generated++;
		next[count++] = n;
	}
	qsort(next, count, sizeof(*next), by_g);
	return count;
}

static void expand(struct search *s, struct search_result *r, struct heap *open, const struct state *state)
{
	struct state *next[PRIOR_MAX_PRODUCTIONS];
	unsigned count = successors(s, state, r, next), closings = 0;
	const double most = count ? next[0]->g : 0; /* of the most probable successor; next[] is freed as we go */

	r->expansions++;
	for (unsigned i = 0; i < count; i++) {
		struct state *n = next[i];
		const bool open_hole = expr_hole(&n->expr) >= 0;
		if (n->bound >= r->cost) {
			explain(s, "cut", &n->expr, n->g, n->f - n->g, -1, 0);
			r->pruned++;
			free(n);
			continue;
		}
		if (!open_hole) {
			consider(s, r, &n->expr, n->g);
			free(n);
			continue;
		}
		if (closings < s->limits.closings && n->g <= most + s->limits.window) {
			struct expr closed = n->expr;
			closings++;
			if (close_all(s, &closed))
				consider(s, r, &closed, n->g);
		}
		if (open->count < open->limit) {
			heap_push(open, n);
		} else {
			explain(s, "dropped", &n->expr, n->g, n->f - n->g, -1, 0);
			free(n);
		}
	}
}

enum brv_status search_run(struct search *s, struct search_result *r)
{
	struct heap open = { .limit = MAX(s->limits.nodes, 1) };
	struct state *root = calloc(1, sizeof(*root));

	memset(r, 0, sizeof(*r));
	r->cost = HUGE_VAL;
	open.at = malloc((open.limit + 1) * sizeof(*open.at));
	if (!root || !open.at) {
		free(root);
		free(open.at);
		return BRV_MEMORY;
	}
	expr_init(&root->expr, s->targets->target[s->root]->width, s->root);
	heap_push(&open, root);
	while (open.count && r->expansions < s->limits.expansions) {
		struct state *state = heap_pop(&open);
		if (state->bound < r->cost)
			expand(s, r, &open, state);
		free(state);
	}
	while (open.count)
		free(heap_pop(&open));
	free(open.at);
	return isfinite(r->cost) ? BRV_OK : BRV_MEMORY;
}

static void learn_expr(const struct search *s, const struct expr *expr, double weight, struct prior *prior)
{
	for (unsigned i = 0; i < expr->nnodes; i++) {
		const struct expr_node *node = &expr->node[i];
		const unsigned parent_op = s->targets->target[node->target]->op;
		/* One production filled a whole split: its rotation, merge and gate. */
		if ((parent_op == OP_MAP_ROT && node->op == OP_MERGE) || node->op == OP_GATE || productions[node->choice].start)
			continue;
		const struct prior_context context = context_of(s, expr, i);
		prior_observe(prior, &context, node->choice, weight);
	}
}

void search_learn(const struct search *s, const struct search_result *r, struct prior *prior)
{
	for (unsigned i = 0; i < r->nkept; i++)
		learn_expr(s, &r->kept[i].expr, exp2(-(r->kept[i].cost / r->cost - 1) / 0.002), prior);
}

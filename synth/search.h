/* search.h: the best program for one tensor within a budget: A* over partial programs.
 *
 * The search works backward: every hole carries the exact stream that it has to produce, and an op fills it only if it
 * decomposes that stream exactly. States are ordered by f = g + h; what is best is decided by cost alone: bytes + lambda * cycles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_SEARCH_H
#define SYNTH_SEARCH_H

#include <stdio.h>

#include "synth/prior.h"
#include "synth/productions.h"

struct search_limits {
	unsigned expansions;            /* states whose first hole is filled in every way; at least 1 */
	unsigned closings;              /* successors of a state that are closed with the cheapest literals at once, most probable first */
	unsigned nodes;                 /* states kept open */
	unsigned depth;                 /* ops above a literal */
	double window;                  /* bits: no closing of successors that are less probable than the best one by more than this */
};

struct search {
	struct targets *targets;
	const struct prior *prior;
	struct cost_model model;
	struct search_limits limits;
	unsigned root;                  /* the target to produce: 0 is the tensor, another one a hole of a start (starts.h) */
	uint8_t dtype, size_class;
	FILE *explain;                  /* a line for every candidate, or NULL */
};

enum { SEARCH_KEPT = 8 };

struct search_result {
	struct expr best;               /* without holes */
	double nbytes, cycles, cost;
	unsigned expansions, generated, pruned;
	/* The cheapest complete programs, best first: what a prior learns from. */
	unsigned nkept;
	struct { struct expr expr; double cost; } kept[SEARCH_KEPT];
};

/* Finds the best program found within the limits. There is always one (lit.raw) unless memory is short or
 * the target is not exact: BRV_MEMORY. */
enum brv_status search_run(struct search *search, struct search_result *result);

/* Adds what the productions of the best programs say about the tensor to a prior. A program that costs c counts 2^-((c / best - 1) / 0.2 %): a
 * close second is nearly as good a guess for the next tensor. */
void search_learn(const struct search *search, const struct search_result *result, struct prior *prior);

/* The parts of it, for tests. h of a partial program; the lower bound of the cost of all its completions; the cost of a complete one. */
double search_h(const struct search *search, const struct expr *expr);
double search_bound(const struct search *search, const struct expr *expr);
double search_cost(const struct search *search, const struct expr *expr, double *nbytes, double *cycles);

/* Closes hole `hole` with a literal of its target. */
void search_close(struct expr *expr, unsigned hole, const struct literal *literal);

#endif

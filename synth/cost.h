/* cost.h: the one cost that the search minimises: bytes + lambda * decode cycles.
 *
 * Cycles are those of one core for one word, by target instruction set, as `make bench` measures them (docs/PERFORMANCE.md). favor
 * size, balanced and speed are three lambdas and nothing else. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_COST_H
#define SYNTH_COST_H

#include "synth/expr.h"

enum cost_target { COST_AVX512, COST_AVX2, COST_NEON, COST_TARGETS };
enum cost_favor { COST_SIZE, COST_BALANCED, COST_SPEED };

struct cost_model {
	double lambda;                  /* bytes that one cycle is worth */
	enum cost_target target;
};

struct cost_model cost_model(enum cost_favor favor, enum cost_target target);

/* Cycles that decoding one word takes in this node itself. kc: column classes of the tensor, if the node uses them. */
double cost_cycles(const struct cost_model *model, const struct expr_node *node, unsigned kc);

/* Cycles that a word takes beside those when its coded field, of this width, is decoded apart from its merge, as below a gate. */
double cost_apart_cycles(unsigned coded_width);

/* Cycles that opening takes for each decoded byte of a section in this form (enum ar_form). */
double cost_form_cycles(unsigned form);

#endif

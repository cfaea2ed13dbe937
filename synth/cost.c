/* cost.c: decode cycles by op and target. SPDX-License-Identifier: Apache-2.0 */
#include "synth/cost.h"

#include "common/archive.h"

/* Bytes a cycle is worth. Balanced takes a step of the rANS family (0.09 cycles a word for 0.005 bytes) but no gather
 * (2 cycles for 0.003); speed takes column classes (0.05 cycles for 0.008 bytes) but no joint symbols. */
static const double lambda[] = { [COST_SIZE] = 0.0001, [COST_BALANCED] = 0.009, [COST_SPEED] = 0.10 };

struct cost_model cost_model(enum cost_favor favor, enum cost_target target)
{
	return (struct cost_model){ .lambda = lambda[favor], .target = target };
}

/* lit.rans by log2 of the buckets (4, 5, 6) and column classes (1, 2, 4), fused with its merge. */
static const double rans_cycles[COST_TARGETS][3][3] = {
	[COST_AVX512] = { { .36, .38, .41 }, { .40, .43, .50 }, { .45, .50, .64 } },
	[COST_AVX2] = { { .65, .80, 1.2 }, { 1.0, 1.3, 2.0 }, { 1.6, 2.4, 4.0 } },
	[COST_NEON] = { { .70, .75, .90 }, { .80, .90, 1.2 }, { 1.0, 1.3, 2.0 } },
};
static const double wide_cycles[COST_TARGETS] = { 2.4, 3.5, 5.0 };
/* lit.alias by buckets times column classes, up to 32, 64, 128 and 256; its tables, which take longer to expand, are in it. */
static const double alias_cycles[COST_TARGETS][4] = {
	[COST_AVX512] = { .75, .75, 1.1, 1.5 },
	[COST_AVX2] = { 2.0, 2.6, 3.9, 5.5 },
	[COST_NEON] = { 8, 8, 8, 8 },
};
static const double huff_cycles[COST_TARGETS] = { 1.7, 1.7, 2.0 };
static const double lookup_cycles[COST_TARGETS] = { .5, 1.6, 2.0 };
static const double scatter_cycles[COST_TARGETS] = { .4, .7, 3.0 };

double cost_cycles(const struct cost_model *model, const struct expr_node *node, unsigned kc)
{
	switch (node->op) {
	case OP_LIT_RANS: return rans_cycles[model->target][node->log2_nb - 4][node->cols && kc > 1 ? (kc > 2 ? 2 : 1) : 0];
	case OP_LIT_ALIAS: {
		const unsigned entries = (node->cols ? kc : 1) << node->log2_nb;
		return alias_cycles[model->target][entries <= 32 ? 0 : entries <= 64 ? 1 : entries <= 128 ? 2 : 3];
	}
	case OP_LIT_WIDE: return wide_cycles[model->target];
	case OP_LIT_HUFF: return huff_cycles[model->target];
	case OP_LIT_RAW: return .02 + .004 * node->width;
	case OP_LIT_PACK: return .2;
	case OP_SCAN_ADD: case OP_SCAN_XOR: return .3;
	case OP_GATE: return .4; /* itself, and a merge that is not fused */
	case OP_CONST: return .01;
	case OP_LOOKUP: return lookup_cycles[model->target];
	case OP_SCATTER: return scatter_cycles[model->target];
	case OP_CUT: case OP_DEAL: return .25;
	default: return .05 * node->nargs;
	}
}

/* Symbols of more than 8 bits have vectors only in a fused merge. */
double cost_apart_cycles(unsigned coded_width) { return coded_width > 8 ? 5 : 0; }

/* Form 2: about 600 instructions a byte, by callgrind. */
double cost_form_cycles(unsigned form) { return form == AR_FORM_LZP ? 300 : form == AR_FORM_HUFF ? 2 : 0; }

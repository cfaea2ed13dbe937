/* settings.c: what is asked of the search for all tensors (settings.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/settings.h"

#include <math.h>

/* What the favors differ in besides lambda: how hard is searched, and the size of chunks. A chunk's states cost about 90 bytes. */
static const struct synth_plan defaults[] = {
	[COST_SIZE] = { .limits = { 8, 32, 1024, 4, HUGE_VAL }, .sample_words = 262144, .class_budget = 4 << 20, .kr = 8, .kc = KN_MAX_COLS, .pair_words = 49152,
			.chunk_nbytes = 512 << 10 },
	[COST_BALANCED] = { .limits = { 2, 6, 256, 3, 8 }, .sample_words = 65536, .class_budget = 1 << 20, .kr = 4, .kc = 4, .pair_words = 8192,
			    .chunk_nbytes = 256 << 10 },
	[COST_SPEED] = { .limits = { 1, 8, 256, 3, 5 }, .sample_words = 65536, .class_budget = 1 << 20, .kr = 4, .kc = 4, .pair_words = 8192,
			 .chunk_nbytes = 256 << 10 },
};

struct synth_plan plan_of(const struct synth_options *o, const struct prior *prior)
{
	struct synth_plan plan = defaults[o->favor];
	struct search_limits *limits = &plan.limits;

	plan.model = cost_model(o->favor, o->target), plan.prior = prior;
	limits->expansions = o->limits.expansions ? o->limits.expansions : limits->expansions;
	limits->closings = o->limits.closings ? o->limits.closings : limits->closings;
	limits->nodes = o->limits.nodes ? o->limits.nodes : limits->nodes;
	limits->depth = o->limits.depth ? o->limits.depth : limits->depth;
	if (o->no_classes)
		plan.kr = plan.kc = 1;
	return plan;
}

/* The width of the words that a tensor is made of: its type's, with complex numbers as two; bytes where that does not fit. */
static unsigned word_width(const struct tensor *t)
{
	const unsigned bits = !strcmp(t->dtype->name, "C64") ? 32 : t->dtype->bits;
	return (bits == 16 || bits == 32 || bits == 64) && t->nbytes % (bits / 8) == 0 ? bits : 8;
}

struct source source_of(const struct tensor *t, const void *words)
{
	const unsigned width = word_width(t);
	struct source s = { .words = words, .nwords = t->nbytes / (width / 8), .width = width, .dtype = t->dtype->code };

	if (t->ndim >= 2 && t->shape[0] >= 2 && s.nwords % t->shape[0] == 0 && s.nwords)
		s.rows = t->shape[0], s.row_words = s.nwords / t->shape[0];
	return s;
}

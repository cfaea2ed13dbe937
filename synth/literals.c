/* literals.c: every literal's cost on a target, so that a hole can be closed with the cheapest.
 *
 * Counts are taken on the sample and scaled to the tensor; tables and per-chunk parts are counted as they will be stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "synth/productions.h"

bool literal_train(const struct expr_node *node, const struct classes *classes, const uint32_t *counts, struct buffer *body)
{
	const unsigned kr = node->rows ? classes->kr : 1, kc = node->cols ? classes->kc : 1;

	switch (node->op) {
	case OP_LIT_HUFF: return train_huff(node->width, counts, body);
	case OP_LIT_RANS: return train_rans(node->width, node->log2_nb, kr, kc, counts, body);
	case OP_LIT_WIDE: return train_wide(node->width, kr, kc, counts, body);
	default: return false;
	}
}

/* Counts of a target by class pair: zeroed memory that the caller frees, or NULL. */
static uint32_t *count(const struct targets *targets, const struct target *t, bool rows, bool cols)
{
	const struct classes *c = targets->classes;
	const size_t pairs = (rows ? c->kr : 1) * (cols ? c->kc : 1), size = word_nbytes(t->width);
	uint32_t *counts = calloc(pairs << t->width, sizeof(*counts));
	const uint8_t *at = t->words;

	for (unsigned s = 0; counts && s < targets->nsegments; at += t->n[s] * size, s++)
		classes_count(c, rows, cols, at, t->width, t->n[s], targets->first[s], counts);
	return counts;
}

static double entropy_bits(const uint32_t *counts, unsigned width, size_t n)
{
	double bits = 0;

	for (size_t s = 0; s < (size_t)1 << width; s++)
		if (counts[s])
			bits -= counts[s] * log2((double)counts[s] / (double)n);
	return bits;
}

/* Bytes of a literal with a table over the whole tensor; HUGE_VAL if there is no such table. */
static double table_literal_nbytes(const struct targets *targets, const struct target *t, const struct expr_node *node, const uint32_t *counts)
{
	struct buffer body = { 0 };
	struct kn_table *table = NULL;
	double nbytes = HUGE_VAL;

	if (literal_train(node, targets->classes, counts, &body) && !body.failed &&
	    table_expand(table_kind(node->op), (struct span){ body.data, body.nbytes }, &table, NULL) == BRV_OK)
		nbytes = table_cost_bits(table, counts) / 8 * targets->scale + (double)body.nbytes + 3 +
			 (double)targets->nchunks * item_overhead_nbytes(table_kind(node->op), t->positional);
	free(table);
	buffer_free(&body);
	return nbytes;
}

static double pack_nbytes(const struct targets *targets, const struct target *t)
{
	uint64_t low, high;

	words_range((struct words){ t->words, t->total, t->width }, &low, &high);
	unsigned bits = high == low ? 0 : 64 - (unsigned)__builtin_clzll(high - low);
	if (bits >= t->width)
		return HUGE_VAL;
	return (double)t->total * targets->scale * bits / 8 + (double)targets->nchunks * (5 + (t->width + 7) / 8);
}

/* Keeps literal[] sorted by cost, first come first on ties. */
static void insert(struct target *t, const struct cost_model *model, struct literal literal)
{
	const double cost = literal.nbytes + model->lambda * literal.cycles;
	unsigned at = t->nliterals;

	if (!isfinite(cost) || t->nliterals == TARGET_MAX_LITERALS)
		return;
	for (; at > 0 && t->literal[at - 1].nbytes + model->lambda * t->literal[at - 1].cycles > cost; at--)
		t->literal[at] = t->literal[at - 1];
	t->literal[at] = literal;
	t->nliterals++;
}

bool literals_judge(struct targets *targets, unsigned index, const struct cost_model *model)
{
	struct target *t = targets->target[index];
	uint32_t *flat = NULL, *by_class[2] = { NULL, NULL };
	bool ok = true, flat_is_noise = false;

	if (t->judged)
		return t->exact;
	t->judged = true;
	if (!targets_get(targets, index))
		return false;
	const struct words all = { t->words, t->total, t->width };
	const double words = (double)t->total * targets->scale, raw = words * t->width / 8;
	const bool constant = t->total == 0 || words_constant(all);

	if (t->width <= 16 && !constant) {
		flat = count(targets, t, false, false);
		ok = flat != NULL;
		flat_is_noise = ok && entropy_bits(flat, t->width, t->total) > .9985 * t->width * (double)t->total;
	}
	for (unsigned i = 0; ok && i < nproductions; i++) {
		const struct production *p = &productions[i];
		struct literal literal = { .node = { .op = p->op, .width = t->width, .log2_nb = p->log2_nb, .rows = p->rows, .cols = p->cols,
						     .choice = (uint8_t)i, .target = (uint16_t)index } };
		const bool classed = p->rows || p->cols;

		if (!p->literal || !production_fits(p, t, 0, 0) || (classed && !targets->classes))
			continue;
		if (p->op == OP_CONST) {
			literal.nbytes = constant ? 1 : HUGE_VAL;
			literal.node.imm = t->total ? get_word(t->words, word_nbytes(t->width), 0) : 0;
		} else if (p->op == OP_LIT_RAW) {
			literal.nbytes = raw;
		} else if (constant || flat_is_noise) {
			continue;
		} else if (p->op == OP_LIT_PACK) {
			literal.nbytes = pack_nbytes(targets, t);
		} else if (!classed) {
			literal.nbytes = table_literal_nbytes(targets, t, &literal.node, flat);
		} else {
			uint32_t **counts = &by_class[p->cols];
			if (!*counts)
				*counts = count(targets, t, p->rows, p->cols);
			ok = *counts != NULL;
			literal.nbytes = ok ? table_literal_nbytes(targets, t, &literal.node, *counts) : HUGE_VAL;
		}
		literal.cycles = words * cost_cycles(model, &literal.node, targets->classes ? targets->classes->kc : 1);
		insert(t, model, literal);
	}
	free(flat);
	free(by_class[0]);
	free(by_class[1]);
	return ok;
}

/* literals.c: every literal's cost on a target, so that a hole can be closed with the cheapest.
 *
 * Counts are taken on the sample and scaled to the tensor; tables and per-chunk parts are counted as they will be stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "synth/estimate.h"
#include "synth/log2i.h"
#include "synth/productions.h"

bool literal_train(const struct expr_node *node, const struct classes *classes, const uint32_t *counts, struct buffer *body)
{
	const unsigned kr = node->rows ? classes->kr : 1, kc = node->cols ? classes->kc : 1;

	return train_table(node->op, node->width, node->log2_nb, kr, kc, counts, body);
}

/* Counts of a target by class pair: zeroed memory that the caller frees, or NULL. */
static uint32_t *count(const struct targets *targets, const struct target *t, bool rows, bool cols)
{
	const struct classes *c = targets->classes;
	const size_t pairs = (rows ? c->kr : 1) * (cols ? c->kc : 1), size = word_nbytes(t->width);
	uint32_t *counts = calloc(pairs << t->width, sizeof(*counts));
	const uint8_t *at = t->words;

	for (unsigned s = 0; counts && s < targets->nsegments; at += t->n[s] * size, s++)
		classes_count(c, rows, cols, at, t->width, t->n[s], rows || cols ? target_first(targets, t, s) : 0, counts);
	return counts;
}

/* Bits of ideal codes for the counts, a code for each class pair; *distinct: symbols that occur, over all pairs. */
static double entropy_bits(const uint32_t *counts, unsigned width, size_t pairs, size_t *distinct)
{
	double bits = 0;

	*distinct = 0;
	for (size_t p = 0; p < pairs; p++, counts += (size_t)1 << width) {
		uint64_t sum = 0;
		double inner = 0;
		for (size_t s = 0; s < (size_t)1 << width; s++)
			if (counts[s])
				sum += counts[s], inner += counts[s] * log2i(counts[s]), ++*distinct;
		bits += sum ? (double)sum * log2((double)sum) - inner : 0;
	}
	return bits;
}

/* Words of the tensor's for each of the sample's. A scan has one less than what it makes for each chunk, and for each piece of the sample, which may be far more. */
static double scale_of(const struct targets *targets, const struct target *t)
{
	double words = (double)t->total * targets->scale;

	for (const struct target *at = t; at != targets->target[0]; at = targets->target[at->parent])
		if (bc_opinfo(at->op)->words == WORDS_LESS1)
			words += targets->nsegments * targets->scale - (double)targets->nchunks;
	return t->total ? words / (double)t->total : targets->scale;
}

static double pack_nbytes(const struct targets *targets, const struct target *t)
{
	uint64_t low, high;

	words_range((struct words){ t->words, t->total, t->width }, &low, &high);
	unsigned bits = high == low ? 0 : 64 - (unsigned)__builtin_clzll(high - low);
	if (bits >= t->width)
		return HUGE_VAL;
	return (double)t->total * scale_of(targets, t) * bits / 8 + (double)targets->nchunks * (5 + (t->width + 7) / 8);
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

/* What a literal with a table costs at least: ideal codes and the part of its item that any table has. */
struct hope {
	unsigned production;
	double cost;
};

/* Counts by class pair, and the bits of ideal codes for them: flat, by rows, by both. optimism: bytes by which a code fitted to the sample looks
 * better there than one fitted to the tensor will be: (symbols - 1) / (2 ln 2) bits a pair for each time the sample goes into the tensor. */
struct views {
	uint32_t *counts[3];
	bool done[3];                   /* bits, optimism and distinct are there */
	double bits[3], optimism[3];
	size_t distinct[3];             /* symbols, over all pairs */
	struct estimator estimator;     /* of the flat ones */
};

static unsigned view_of(const struct production *p) { return p->cols ? 2 : p->rows ? 1 : 0; }

/* Adds up the counts of the `parts` class pairs that each of `pairs` pairs is made of; NULL: no memory. */
static uint32_t *add_up(const uint32_t *counts, size_t pairs, size_t parts, size_t symbols)
{
	uint32_t *sums = calloc(pairs * symbols, sizeof(*sums));

	if (!sums)
		return NULL;
	for (size_t p = 0; p < pairs; p++)
		for (size_t k = 0; k < parts; k++, counts += symbols)
			for (size_t s = 0; s < symbols; s++)
				sums[p * symbols + s] += counts[s];
	return sums;
}

/* Flat counts; where there can be classes, those by both are taken in the same pass, and the others from them. */
static bool make_view(const struct targets *targets, const struct target *t, struct views *views, unsigned v)
{
	enum { MANY_COUNTS = 1 << 15 }; /* which are not worth clearing for literals that will not use classes */
	const struct classes *c = targets->classes;
	const size_t all_kr = c ? c->kr : 1, all_kc = c ? c->kc : 1, symbols = (size_t)1 << t->width;
	const size_t kr = v > 0 ? all_kr : 1, pairs = kr * (v > 1 ? all_kc : 1);
	uint32_t **counts = &views->counts[v];

	if (views->done[v])
		return true;
	if (v == 0 && c && t->classed && all_kr * all_kc * symbols <= MANY_COUNTS)
		views->counts[2] = count(targets, t, true, true);
	if (!*counts)
		*counts = v < 2 && views->counts[2] ? add_up(views->counts[2], kr, all_kr / kr * all_kc, symbols) : count(targets, t, v > 0, v > 1);
	if (!*counts)
		return false;
	views->done[v] = true;
	views->bits[v] = entropy_bits(*counts, t->width, pairs, &views->distinct[v]);
	if (views->distinct[v] > pairs)
		views->optimism[v] = (double)(views->distinct[v] - pairs) * .7213 * (targets->scale - 1) / 8;
	return true;
}

/* Bits of a literal with a table, and the bytes of its body; HUGE_VAL if there is no such table. */
static double table_bits(const struct targets *targets, const struct expr_node *node, struct views *views, double *body_nbytes)
{
	const struct classes *c = targets->classes;
	const size_t pairs = (size_t)(node->rows ? c->kr : 1) * (node->cols ? c->kc : 1);
	const uint32_t *counts = views->counts[node->cols ? 2 : node->rows];
	struct buffer body = { 0 };
	struct kn_table *table = NULL;
	double bits = HUGE_VAL;

	if (node->op == OP_LIT_RANS)
		return estimate_rans(&views->estimator, node->log2_nb, pairs, counts, body_nbytes);
	if ((node->op == OP_LIT_WIDE || node->op == OP_LIT_ALIAS) && !estimator_widen(&views->estimator, views->counts[0]))
		return HUGE_VAL;
	if (node->op == OP_LIT_WIDE)
		return estimate_wide(&views->estimator, pairs, counts, body_nbytes);
	if (node->op == OP_LIT_ALIAS)
		return estimate_alias(&views->estimator, node->log2_nb, pairs, counts, body_nbytes);
	if (literal_train(node, c, counts, &body) && !body.failed &&
	    table_expand(table_kind(node->op), (struct span){ body.data, body.nbytes }, &table, NULL) == BRV_OK)
		bits = table_cost_bits(table, counts);
	*body_nbytes = (double)body.nbytes;
	free(table);
	buffer_free(&body);
	return bits;
}

/* Bytes of a literal with a table over the whole tensor. */
static double table_literal_nbytes(const struct targets *targets, const struct target *t, const struct expr_node *node, struct views *views)
{
	double body_nbytes = 0;
	const double bits = table_bits(targets, node, views, &body_nbytes);

	return bits / 8 * scale_of(targets, t) + body_nbytes + 3 + (double)targets->nchunks * item_overhead_nbytes(table_kind(node->op), t->positional);
}

static struct literal literal_for(unsigned production, unsigned index, const struct target *t)
{
	const struct production *p = &productions[production];

	return (struct literal){ .node = { .op = p->op, .width = t->width, .log2_nb = p->log2_nb, .rows = p->rows, .cols = p->cols,
					   .choice = (uint8_t)production, .target = (uint16_t)index } };
}

/* The literals that have a table, cheapest hope first; stops where no hope is left to be the best with or without classes. */
static bool judge_tables(struct targets *targets, unsigned index, const struct cost_model *model, struct views *views)
{
	struct target *t = targets->target[index];
	const double words = (double)t->total * scale_of(targets, t);
	const unsigned kc = targets->classes ? targets->classes->kc : 1;
	struct hope hope[TARGET_MAX_LITERALS];
	double best[2] = { HUGE_VAL, HUGE_VAL }; /* without classes, with */
	unsigned count = 0;

	if (!estimator_make(&views->estimator, t->width, views->counts[0]))
		return false;
	for (unsigned i = 0; i < nproductions; i++) {
		const struct production *p = &productions[i];
		const unsigned v = view_of(p);
		if (!p->literal || table_kind(p->op) == TABLE_NONE || !production_fits(p, t, 0, 0) || (v && !targets->classes))
			continue;
		if (p->op != OP_LIT_WIDE && p->cols && kc > RANS_MAX_COLS)
			continue;
		/* Half as many buckets have room for all symbols. */
		if (p->op == OP_LIT_ALIAS && p->log2_nb > 4 && views->distinct[0] <= 1u << (p->log2_nb - 1))
			continue;
		if (!make_view(targets, t, views, v))
			return false;
		const struct literal l = literal_for(i, index, t);
		const double cost = views->bits[v] / 8 * scale_of(targets, t) + views->optimism[v] + model->lambda * words * cost_cycles(model, &l.node, kc) +
				    (double)targets->nchunks * item_overhead_nbytes(table_kind(p->op), t->positional);
		unsigned at = count++;
		for (; at && hope[at - 1].cost > cost; at--)
			hope[at] = hope[at - 1];
		hope[at] = (struct hope){ i, cost };
	}
	for (unsigned h = 0; h < count; h++) {
		const struct production *p = &productions[hope[h].production];
		struct literal l = literal_for(hope[h].production, index, t);
		if (hope[h].cost >= best[0] || (view_of(p) && hope[h].cost >= best[1]))
			continue;
		l.nbytes = table_literal_nbytes(targets, t, &l.node, views) + views->optimism[view_of(p)];
		l.cycles = words * cost_cycles(model, &l.node, kc);
		best[view_of(p) > 0] = fmin(best[view_of(p) > 0], l.nbytes + model->lambda * l.cycles);
		insert(t, model, l);
	}
	return true;
}

bool literals_judge(struct targets *targets, unsigned index, const struct cost_model *model)
{
	enum { MANY_SYMBOLS = 1024 };   /* of which no table can hold enough */
	struct target *t = targets->target[index];
	struct views views = { .bits = { 0 } };
	bool ok = true, tables = false;

	if (t->judged)
		return t->exact;
	t->judged = true;
	if (!targets_get(targets, index))
		return false;
	const struct words all = { t->words, t->total, t->width };
	const double words = (double)t->total * scale_of(targets, t);
	const bool constant = t->total == 0 || words_constant(all);

	if (t->width <= 16 && !constant) {
		ok = make_view(targets, t, &views, 0);
		tables = ok && views.distinct[0] <= MANY_SYMBOLS && views.bits[0] < .9985 * t->width * (double)t->total;
	}
	for (unsigned i = 0; ok && i < nproductions; i++) {
		struct literal l = literal_for(i, index, t);
		if (!productions[i].literal || table_kind(l.node.op) != TABLE_NONE)
			continue;
		l.nbytes = l.node.op == OP_LIT_RAW ? words * t->width / 8 : l.node.op == OP_LIT_PACK && (!constant || t->varies) ? pack_nbytes(targets, t) :
			   l.node.op == OP_CONST && constant && !t->varies ? 1 : HUGE_VAL;
		l.node.imm = l.node.op == OP_CONST && t->total ? get_word(t->words, word_nbytes(t->width), 0) : 0;
		l.cycles = words * cost_cycles(model, &l.node, 1);
		insert(t, model, l);
	}
	ok = ok && (!tables || judge_tables(targets, index, model, &views));
	for (unsigned v = 0; v < 3; v++)
		free(views.counts[v]);
	return ok;
}

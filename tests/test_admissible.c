/* test_admissible.c: what the search promises, against every program there is: h never exceeds what a completion adds, the bound never exceeds what one
 * costs, and nothing that is pruned or ordered makes it miss the cheapest.
 *
 * Streams are tiny and programs shallow, so that all of them can be enumerated: every production in every hole, every literal.
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "synth/search.h"
#include "tests/gen.h"

enum { MAX_WORDS = 64, MAX_STATES = 400000 };
static const double slack = 1e-6;       /* of sums in another order */

/* The least that a completion of a partial program adds to g, and the least that one costs. */
struct least {
	double g, cost;
};

struct all {
	struct search *search;
	unsigned states;
};

static struct least enumerate(struct all *all, const struct expr *expr);

static void take(struct least *least, struct least found, double bits)
{
	least->g = fmin(least->g, found.g + bits);
	least->cost = fmin(least->cost, found.cost);
}

static struct least fill(struct all *all, const struct expr *expr, unsigned hole)
{
	struct search *s = all->search;
	const struct expr_node *node = &expr->node[hole];
	const struct prior_context context = { .dtype = s->dtype, .width = node->width, .depth = node->depth, .size_class = s->size_class,
					       .parent_op = s->targets->target[node->target]->op };
	struct least least = { HUGE_VAL, HUGE_VAL };
	double bits[PRIOR_MAX_PRODUCTIONS], smallest;

	prior_bits(s->prior, &context, bits, &smallest);
	if (!literals_judge(s->targets, node->target, &s->model))
		return least;
	const struct target *t = s->targets->target[node->target];
	for (unsigned k = 0; k < t->nliterals; k++) {
		struct expr next = *expr;
		search_close(&next, hole, &t->literal[k]);
		take(&least, enumerate(all, &next), bits[t->literal[k].node.choice]);
	}
	for (unsigned p = 0; p < nproductions; p++) {
		struct expr next = *expr;
		if (!productions[p].literal && production_fits(&productions[p], t, node->depth, s->limits.depth) &&
		    production_apply(p, s->targets, &next, hole))
			take(&least, enumerate(all, &next), bits[p]);
	}
	return least;
}

/* Checks the promises for a state and, on the way, for all states behind it. */
static struct least enumerate(struct all *all, const struct expr *expr)
{
	const int hole = expr_hole(expr);
	double nbytes, cycles;

	cr_assert_lt(all->states++, MAX_STATES, "too many programs for this test");
	if (hole < 0)
		return (struct least){ 0, search_cost(all->search, expr, &nbytes, &cycles) };
	const struct least least = fill(all, expr, (unsigned)hole);
	const double h = search_h(all->search, expr), bound = search_bound(all->search, expr);
	cr_assert_leq(h, least.g + slack, "h %f, but a completion adds %f", h, least.g);
	cr_assert_leq(bound, least.cost * (1 + slack), "bound %f, but a completion costs %f", bound, least.cost);
	return least;
}

static uint64_t noise(size_t i, uint64_t *state) { (void)i; return gen_random(state); }
static uint64_t few(size_t i, uint64_t *state) { (void)i; return 7 + gen_random(state) % 3 * (gen_random(state) % 2); }
static uint64_t ramp(size_t i, uint64_t *state) { (void)state; return 3 * i + 1; }
static uint64_t squares(size_t i, uint64_t *state) { (void)state; return i * i; }
static uint64_t period(size_t i, uint64_t *state) { (void)state; return (i % 4) * 0x9e37u; }
static uint64_t high_zero(size_t i, uint64_t *state) { (void)i; return gen_random(state) & 0x0f; }
static uint64_t low_zero(size_t i, uint64_t *state) { (void)i; return gen_random(state) << 16; }
static uint64_t same(size_t i, uint64_t *state) { (void)i, (void)state; return 0x5a; }

static const struct row {
	const char *what, *dtype;
	unsigned width, depth;
	size_t nwords;
	uint64_t (*word)(size_t i, uint64_t *state);
} rows[] = {
	{ "noise, bytes", "U8", 8, 2, 48, noise },	{ "few values, bytes", "U8", 8, 2, 64, few },
	{ "ramp, bytes", "I8", 8, 2, 40, ramp },	{ "small values, bytes", "U8", 8, 2, 64, high_zero },
	{ "period, 16 bits", "I16", 16, 1, 64, period }, { "few values, 16 bits", "BF16", 16, 1, 64, few },
	{ "squares, 16 bits", "I16", 16, 2, 24, squares }, { "high half, 32 bits", "F32", 32, 1, 32, low_zero },
	{ "one word", "F16", 16, 2, 16, same },
};

/* The cheapest of all programs, and what the search finds with room for all of them. */
static void check(const struct row *row, enum cost_favor favor, const struct prior *prior, struct prior *learn)
{
	uint64_t state = 11;
	const size_t first = 0;
	uint8_t *words = malloc(row->nwords * row->width / 8 + 8);
	struct targets targets;
	struct search_result result;

	for (size_t i = 0; i < row->nwords; i++)
		set_word(words, row->width / 8, i, row->word(i, &state) & mask_bits(row->width));
	cr_assert(targets_init(&targets, words, row->width, 1, &row->nwords, &first));
	targets.scale = 1, targets.nchunks = 1;
	struct search search = { .targets = &targets, .prior = prior, .model = cost_model(favor, COST_AVX512),
				 .limits = { .expansions = 1 << 20, .closings = 0, .nodes = 1 << 20, .depth = row->depth, .window = HUGE_VAL },
				 .dtype = dtype_by_name(row->dtype, strlen(row->dtype))->code };
	struct all all = { .search = &search };
	struct expr root;
	expr_init(&root, row->width, 0);
	const struct least least = enumerate(&all, &root);
	for (unsigned closings = 0; closings <= 64; closings += 64) {
		search.limits.closings = closings;
		cr_assert_eq(search_run(&search, &result), BRV_OK);
		cr_assert_float_eq(result.cost, least.cost, slack * least.cost + slack, "%s, favor %d: found %f, the cheapest of %u states costs %f",
				   row->what, favor, result.cost, all.states, least.cost);
	}
	if (learn)
		search_learn(&search, &result, learn);
	targets_free(&targets);
}

Test(admissible, nothing_cheaper_is_missed)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct prior *uniform = alloc_prior(), *learned = alloc_prior();
		for (unsigned favor = COST_SIZE; favor <= COST_SPEED; favor++) {
			check(&rows[i], (enum cost_favor)favor, uniform, learned);
			check(&rows[i], (enum cost_favor)favor, learned, NULL);
		}
		free_prior(uniform);
		free_prior(learned);
	}
}

/* kin.c: programs of tensors that are alike (kin.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/kin.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#include "synth/log2i.h"

/* Programs that are this much worse than the best on an example may be better on its kin. */
static const double close_cost = .006;
/* Kin whose bytes' ideal codes differ from its example's by more than this many bits a word, all bytes together, has another example. */
static const double most_bits = 1.5;
/* Kin whose programs cost more than the example's, and what its bytes' ideal codes need more, by this part and these bytes is searched. */
static const double most_cost = .02, most_nbytes = 64;

struct kinds {
	size_t n, places;               /* a power of two, at least half of them free */
	struct kin **kin;               /* open addressing */
};

uint64_t kind_name(const char *name, size_t nbytes)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

	for (size_t i = 0; i < nbytes; i++)
		if (name[i] < '0' || name[i] > '9')
			hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3;
	return hash;
}

void look_at(struct look *look, const void *words, size_t n, unsigned width)
{
	enum { LOOK_WORDS = 16384 };
	const unsigned size = word_nbytes(width);
	const size_t step = MAX(n / LOOK_WORDS, 1), seen = ceil_div(n, step);
	uint32_t count[8][256] = { { 0 } };

	for (size_t i = 0; i < n; i += step)
		for (unsigned k = 0; k < size; k++)
			count[k][((const uint8_t *)words)[i * size + k]]++;
	*look = (struct look){ { 0 } };
	for (unsigned k = 0; k < size && seen; k++)
		look->bits[k] = (float)(ideal_bits(count[k], 256, (double)seen) / (double)seen);
}

/* Whether no program of the example has the same ops above its literals. */
static bool is_new(const struct kin_example *example, const struct expr *expr)
{
	for (unsigned i = 0; i < example->n; i++) {
		bool same = example->expr[i].nnodes == expr->nnodes;
		for (unsigned k = 0; same && k < expr->nnodes; k++) {
			const struct production *a = &productions[example->expr[i].node[k].choice], *b = &productions[expr->node[k].choice];
			same = a == b || (a->literal && b->literal);
		}
		if (same)
			return false;
	}
	return true;
}

void kin_learn(struct kin_example *out, const struct look *look, const struct search_result *result, double nwords)
{
	out->look = *look, out->word_cost = result->cost / nwords;
	out->expr[0] = result->best, out->n = 1;
	for (unsigned i = 0; i < result->nkept && out->n < KIN_PROGRAMS; i++)
		if (result->kept[i].cost <= result->cost * (1 + close_cost) && is_new(out, &result->kept[i].expr))
			out->expr[out->n++] = result->kept[i].expr;
}

const struct kin_example *kin_like(const struct kin *kin, const struct look *look)
{
	const struct kin_example *best = NULL;
	double least = most_bits;

	for (unsigned i = 0; i < kin->n; i++) {
		double bits = 0;
		for (unsigned k = 0; k < 8; k++)
			bits += fabs((double)kin->example[i]->look.bits[k] - (double)look->bits[k]);
		if (bits < least)
			least = bits, best = kin->example[i];
	}
	return best;
}

/* The same ops for this tensor, over the literals that are cheapest here: whether classes pay is a matter of each tensor. Holes are filled in the order of
 * the search, so that nodes have the same numbers. */
static bool repeat(struct search *s, const struct expr *like, struct expr *out)
{
	expr_init(out, s->targets->target[0]->width, 0);
	for (int hole; (hole = expr_hole(out)) >= 0;) {
		const unsigned target = out->node[hole].target;
		if (hole >= like->nnodes)
			return false;
		if (!productions[like->node[hole].choice].literal) {
			if (!production_apply(like->node[hole].choice, s->targets, out, (unsigned)hole))
				return false;
		} else if (literals_judge(s->targets, target, &s->model) && s->targets->target[target]->nliterals) {
			search_close(out, (unsigned)hole, &s->targets->target[target]->literal[0]);
		} else {
			return false;
		}
	}
	return true;
}

bool kin_follow(struct search *s, const struct kin_example *example, const struct look *look, double nwords, struct search_result *result)
{
	double expected = example->word_cost * nwords;

	*result = (struct search_result){ .cost = HUGE_VAL };
	for (unsigned i = 0; i < example->n; i++) {
		struct expr expr;
		double nbytes, cycles;
		if (!repeat(s, &example->expr[i], &expr))
			continue;
		const double cost = search_cost(s, &expr, &nbytes, &cycles);
		if (cost < result->cost)
			result->best = expr, result->cost = cost, result->nbytes = nbytes, result->cycles = cycles;
	}
	for (unsigned k = 0; k < 8; k++)
		expected += ((double)look->bits[k] - (double)example->look.bits[k]) / 8 * nwords;
	return result->cost <= expected * (1 + most_cost) + most_nbytes;
}

struct kinds *alloc_kinds(void) { return calloc(1, sizeof(struct kinds)); }

static void free_kin(struct kin *kin)
{
	for (unsigned i = 0; kin && i < kin->n; i++)
		free(kin->example[i]);
	free(kin);
}

void free_kinds(struct kinds *kinds)
{
	if (!kinds)
		return;
	for (size_t i = 0; i < kinds->places; i++)
		free_kin(kinds->kin[i]);
	free(kinds->kin);
	free(kinds);
}

/* Where a kind is, or belongs. */
static struct kin **place_of(const struct kinds *kinds, const struct kind *kind)
{
	size_t at = XXH3_64bits(kind, sizeof(*kind)) & (kinds->places - 1);

	while (kinds->kin[at] && memcmp(&kinds->kin[at]->kind, kind, sizeof(*kind)))
		at = (at + 1) & (kinds->places - 1);
	return &kinds->kin[at];
}

static bool grow(struct kinds *kinds)
{
	struct kinds more = { .n = kinds->n, .places = kinds->places ? 2 * kinds->places : 64 };

	more.kin = calloc(more.places, sizeof(*more.kin));
	if (!more.kin)
		return false;
	for (size_t i = 0; i < kinds->places; i++)
		if (kinds->kin[i])
			*place_of(&more, &kinds->kin[i]->kind) = kinds->kin[i];
	free(kinds->kin);
	*kinds = more;
	return true;
}

struct kin *kinds_find(struct kinds *kinds, const struct kind *kind)
{
	if (2 * kinds->n >= kinds->places && !grow(kinds))
		return NULL;
	struct kin **at = place_of(kinds, kind);
	if (!*at && (*at = calloc(1, sizeof(**at))))
		(*at)->kind = *kind, kinds->n++;
	return *at;
}

void kin_add(struct kin *kin, struct kin_example *example)
{
	if (kin->n < KIN_EXAMPLES)
		kin->example[kin->n++] = example;
	else
		free(example);
}

/* starts.c: a cheap look at a stream, and a search for each thing that it looks like (starts.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/starts.h"

#include <math.h>
#include <stdlib.h>

#include "common/by_size.h"
#include "synth/dictionary.h"

enum { MIN_WORDS = 256, MORE_EXPANSIONS = 2, START_CLOSINGS = 32 };

void source_look(struct source *source)
{
	/* Groups of quantised rows; a group has to be worth its dictionary. */
	static const uint8_t group[] = { 128, 64 };
	const uint64_t row = source->row_words;

	source->block = 0;
	source->record = NULL;
	if (source->dtype == dtype_by_name("U8", 2)->code)
		source->record = record_find(source->words, source->nwords, source->rows ? source->row_words : source->nwords);
	source->few = source->width >= 16 && source->nwords >= MIN_WORDS && dictionary_promises(source->words, source->nwords, source->width, 0);
	if (source->width < 16 || source->rows < 2)
		return;
	if (row >= 32 && row <= BC_MAX_CHUNK_WORDS / 8 && dictionary_promises(source->words, source->nwords, source->width, row))
		source->block = row;
	for (unsigned i = 0; i < sizeof(group) && !source->block; i++)
		if (row > group[i] && row % group[i] == 0 && dictionary_promises(source->words, source->nwords, source->width, group[i]))
			source->block = group[i];
}

static void add(struct starts *starts, struct start start)
{
	if (starts->count < STARTS_MAX)
		starts->start[starts->count++] = start;
}

static void find_lookups(struct starts *starts, const struct source *source, uint64_t chunk_words)
{
	const uint64_t blocks[2] = { 0, source->block };

	for (unsigned i = 0; i < 2; i++) {
		const uint64_t block = blocks[i];
		unsigned bits = 0;
		if (i == 0 ? source->few : block != 0)
			bits = dictionary_bits(source->words, source->nwords, source->width, chunk_words, block);
		/* Computed tables have most words with both signs. */
		if (bits == DICTIONARY_BITS && block == 0 && (source->width == 16 || source->width == 32))
			add(starts, (struct start){ .op = OP_LOOKUP, .sign_apart = true, .bits = DICTIONARY_BITS });
		if (bits)
			add(starts, (struct start){ .op = OP_LOOKUP, .bits = (uint8_t)bits, .imm = block });
	}
}

/* Some of a sample's words are looked at: every so many, odd because of groups of 2 and 4. */
static size_t stride_of(const struct target *t) { return t->total / 4096 | 1; }

/* How many of the words looked at are a, or b. */
static size_t count_words(const struct target *t, uint64_t a, uint64_t b)
{
	const size_t stride = stride_of(t);
	size_t count = 0;

	BY_SIZE(T, word_nbytes(t->width), {
		const T *v = t->words;
		const T x = (T)a, y = (T)b;
		for (size_t i = 0; i < t->total; i += stride)
			count += (v[i] == x) | (v[i] == y);
	})
	return count;
}

/* The word that most are, if one has the majority (Boyer, Moore 1981: a vote). */
static uint64_t majority(const struct target *t)
{
	uint64_t word = 0;
	size_t lead = 0;

	for (size_t i = 0; i < t->total; i += stride_of(t)) {
		const uint64_t v = get_word(t->words, word_nbytes(t->width), i);
		word = lead ? word : v;
		lead += v == word ? 1 : -(size_t)1;
	}
	return word;
}

/* Zero if there is some of it, of both signs if it has them; else what most words are. */
static void find_scatters(struct starts *starts, const struct target *t)
{
	const uint64_t minus = 1ull << (t->width - 1);
	const size_t zeros = count_words(t, 0, 0), both = count_words(t, 0, minus), looked = ceil_div(t->total, stride_of(t)), some = looked / 16;
	const bool has_sign = t->width == 16 || t->width == 32;

	if (has_sign && both > some && both - zeros > zeros / 16)
		add(starts, (struct start){ .op = OP_SCATTER, .sign_apart = true });
	if (zeros > some) {
		add(starts, (struct start){ .op = OP_SCATTER });
		return;
	}
	const uint64_t most = majority(t);
	if (count_words(t, most, most) > looked / 4)
		add(starts, (struct start){ .op = OP_SCATTER, .imm = most });
}

void starts_find(struct starts *starts, const struct source *source, uint64_t chunk_words, const struct targets *targets)
{
	const struct target *t = targets->target[0];

	starts->count = 0;
	if (source->record && t->total % source->record->period == 0) {
		add(starts, (struct start){ .op = OP_WEAVE, .record = source->record });
		if (source->record->deal)
			add(starts, (struct start){ .op = OP_WEAVE, .record = source->record, .dealt = true });
		return;
	}
	if (t->width < 16 || t->total < MIN_WORDS || words_constant((struct words){ t->words, t->total, t->width }))
		return;
	find_lookups(starts, source, chunk_words);
	find_scatters(starts, t);
}

/* A search for one hole, and its best program put there. */
static bool search_hole(struct search *search, struct expr *expr, unsigned hole, struct search_result *result, unsigned *expansions)
{
	search->root = expr->node[hole].target;
	if (search_run(search, result) != BRV_OK || !expr_graft(expr, hole, &result->best))
		return false;
	*expansions += result->expansions;
	return true;
}

/* Scales of a record: a search that knows nothing of them, and one for each of their bytes, which two ops lead to that do not pay one by one. */
static bool search_scales(struct search *search, struct expr *expr, unsigned hole, struct search_result *result, unsigned *expansions)
{
	const unsigned root = search->root = expr->node[hole].target;
	struct expr halves;
	double nbytes, cycles;

	if (search_run(search, result) != BRV_OK)
		return false;
	*expansions += result->expansions;
	struct expr best = result->best;
	const double cost = result->cost;
	expr_init(&halves, 8, root);
	bool good = production_halves(search->targets, &halves);
	for (int next; good && (next = expr_hole(&halves)) >= 0;)
		good = search_hole(search, &halves, (unsigned)next, result, expansions);
	search->root = root;
	if (good && search_cost(search, &halves, &nbytes, &cycles) < cost)
		best = halves;
	return expr_graft(expr, hole, &best);
}

/* The root filled as the start says, and each of its holes by a search of its own, since costs add up over holes. Takes the program if it is the best. A
 * start that does not fit, or for which there is no room, is no loss. */
static void search_start(struct search *search, const struct start *start, struct search_result *hole_result, struct search_result *result,
			 unsigned *expansions)
{
	double nbytes, cycles;
	struct expr expr;

	expr_init(&expr, search->targets->target[0]->width, 0);
	if (!production_start(start, search->targets, &expr))
		return;
	for (int hole; (hole = expr_hole(&expr)) >= 0;) {
		const struct target *t = search->targets->target[expr.node[hole].target];
		if (!(target_is_scales(t) ? search_scales : search_hole)(search, &expr, (unsigned)hole, hole_result, expansions))
			return;
	}
	const double cost = search_cost(search, &expr, &nbytes, &cycles);
	if (cost < result->cost)
		result->best = expr, result->nbytes = nbytes, result->cycles = cycles, result->cost = cost;
}

enum brv_status search_starts(struct search *search, const struct starts *starts, struct search_result *result, unsigned *expansions)
{
	const struct search_limits limits = search->limits;
	struct search_result *hole_result = starts->count ? malloc(sizeof(*hole_result)) : NULL;
	enum brv_status status = starts->count && !hole_result ? BRV_MEMORY : search_run(search, result);

	*expansions += status == BRV_OK ? result->expansions : 0;
	/* No prior knows these holes: all that can fill them is tried. */
	search->limits.expansions += MORE_EXPANSIONS, search->limits.closings = MAX(limits.closings, START_CLOSINGS), search->limits.window = HUGE_VAL;
	for (unsigned i = 0; status == BRV_OK && hole_result && i < starts->count; i++)
		search_start(search, &starts->start[i], hole_result, result, expansions);
	search->root = 0, search->limits = limits;
	free(hole_result);
	return status;
}

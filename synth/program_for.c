/* program_for.c: sample, classes, search, tables of one stream. SPDX-License-Identifier: Apache-2.0 */
#include "synth/program_for.h"

#include <stdlib.h>

#include "kernels/kernel.h"
#include "synth/starts.h"

enum { TINY_NBYTES = 32, CLASS_MIN_WORDS = 16384, CLASS_MIN_ROW = 4 };

/* What chunks, and pieces of a sample, are whole multiples of: records, or blocks of few distinct words; 1 where the longest chunk holds none. */
static uint64_t unit_words(const struct source *source, uint64_t longest)
{
	const uint64_t unit = MAX(source->block, source->record ? source->record->period : (uint64_t)0);
	return unit && unit <= longest ? unit : 1;
}

uint64_t chunk_words_for(const struct synth_plan *plan, const struct source *source)
{
	if (source->chunk_words)
		return source->chunk_words;
	const uint64_t words = MIN(plan->chunk_nbytes / word_nbytes(source->width), (uint64_t)BC_MAX_CHUNK_WORDS), unit = unit_words(source, words);
	return words / unit * unit;
}

/* Whole chunks of a stream that dictionaries may make: only they have dictionaries as large as chunks do. */
static unsigned whole_pieces(const struct synth_plan *plan, uint64_t nchunks, uint64_t chunk_words)
{
	return (unsigned)MIN(nchunks, MIN(MAX(2 * plan->sample_words / chunk_words, (uint64_t)1), (uint64_t)TARGET_MAX_SEGMENTS));
}

/* Pieces of sample_words words in all, spread evenly, each within one chunk; the whole stream if it is not larger. Pieces are chunks where dictionaries are
 * expected. */
static bool take_sample(const struct synth_plan *plan, const struct source *source, uint64_t chunk_words, struct targets *targets)
{
	const unsigned size = word_nbytes(source->width);
	const uint64_t unit = unit_words(source, chunk_words), nchunks = ceil_div(source->nwords, chunk_words);
	const bool whole = source->nwords <= plan->sample_words && nchunks <= TARGET_MAX_SEGMENTS;
	const unsigned pieces = whole ? (unsigned)nchunks : source->few ? whole_pieces(plan, nchunks, chunk_words) : TARGET_MAX_SEGMENTS;
	const uint64_t piece = MAX(plan->sample_words / TARGET_MAX_SEGMENTS, unit), step = unit > 1 ? unit : KN_GROUP;
	size_t first[TARGET_MAX_SEGMENTS] = { 0 }, n[TARGET_MAX_SEGMENTS] = { 0 }, total = 0;

	for (unsigned i = 0; i < pieces; i++) {
		if (whole || source->few) {
			first[i] = (size_t)(nchunks * i / pieces * chunk_words), n[i] = (size_t)MIN(chunk_words, source->nwords - first[i]);
		} else {
			const uint64_t at = source->nwords / (2 * pieces) * (2 * i + 1), chunk = at / chunk_words * chunk_words;
			first[i] = (size_t)(chunk + (at - chunk) / step * step);
			n[i] = (size_t)MIN(piece, MIN(chunk + chunk_words, source->nwords) - first[i]);
			n[i] -= n[i] % unit;
		}
		total += n[i];
	}
	uint8_t *sample = malloc(total * size + 8), *at = sample;
	if (!sample)
		return false;
	for (unsigned i = 0; i < pieces; at += n[i] * size, i++)
		memcpy(at, (const uint8_t *)source->words + first[i] * size, n[i] * size);
	if (!targets_init(targets, sample, source->width, pieces, n, first))
		return false;
	targets->scale = total ? (double)source->nwords / (double)total : 1;
	targets->nchunks = nchunks;
	return true;
}

/* Where a type keeps sign and exponent: the view that classes are built on. False for types that have no scale. */
static bool scale_view(const struct source *source, struct class_view *view)
{
	static const struct { const char *name; uint8_t shift, bits; bool sign, complement; } kinds[] = {
		{ "BF16", 7, 8, true, false }, { "F16", 10, 5, true, false }, { "F32", 23, 8, false, false },
		{ "F8_E4M3", 3, 4, true, false }, { "F8_E5M2", 2, 5, true, false }, { "I8", 2, 5, true, true },
	};
	const struct ar_dtype *dtype = dtype_by_code(source->dtype);

	for (unsigned i = 0; dtype && i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i].name, dtype->name)) {
			*view = (struct class_view){ source->words, source->width, kinds[i].shift, kinds[i].bits, kinds[i].sign, kinds[i].complement };
			return true;
		}
	return false;
}

/* Gives the rows of single-precision words whose low bits are all 0, as weights that once were half precision have them, a row class of their own. */
static void set_zero_rows(const struct source *source, struct classes *c)
{
	const uint32_t *words = source->words;
	uint64_t rows[2] = { 0 };
	static const uint8_t zero_bits[2] = { 13, 16 };
	uint8_t *zeros = calloc(c->rows, 1);

	for (size_t r = 0; zeros && r < c->rows; r++) {
		uint32_t any = 0;
		for (size_t i = 0; i < c->row_words; i++)
			any |= words[r * c->row_words + i];
		zeros[r] = any ? (uint8_t)__builtin_ctz(any) : 32;
		rows[0] += zeros[r] >= zero_bits[0], rows[1] += zeros[r] >= zero_bits[1];
	}
	const unsigned which = rows[1] == rows[0];
	if (zeros && rows[which] >= c->rows / 256 + 1 && rows[which] < c->rows && c->kr < 8) {
		c->zero_bits = zero_bits[which];
		for (size_t r = 0; r < c->rows; r++)
			c->row[r] = zeros[r] >= c->zero_bits ? c->kr : c->row[r];
		c->kr++;
	}
	free(zeros);
}

static bool build_classes(const struct synth_plan *plan, const struct class_view *view, uint64_t rows, uint64_t row_words, unsigned most_kr,
			  struct classes *classes)
{
	unsigned kr = plan->kr, kc = plan->kc;

	/* Tables weigh as much as they gain where there are few words for each. */
	while (rows * row_words / (kr * kc) < plan->pair_words && kr > 2)
		kr /= 2;
	while (rows * row_words / (kr * kc) < plan->pair_words && kc > 4)
		kc /= 2;
	return classes_build(classes, view, (size_t)rows, (size_t)row_words, MIN(kr, most_kr), kc, plan->class_budget);
}

/* Classes of the weights of quantised blocks. */
static bool make_record_classes(const struct synth_plan *plan, const struct source *source, struct classes *classes)
{
	const struct record_type *record = source->record;
	uint8_t *weights = record_make_weights(record, source->words, source->nwords);
	/* 16 magnitudes of a weight, or as many as it has. */
	const struct class_view view = { weights, 8, record->bits == 8 ? 2 : 3, record->bits == 8 ? 5 : 4, true, true };
	const bool made = weights && build_classes(plan, &view, source->rows, source->row_words / record->period * record_weights(record), 8, classes);

	free(weights);
	return made;
}

static bool make_classes(const struct synth_plan *plan, const struct source *source, struct classes *classes)
{
	struct class_view view;

	memset(classes, 0, sizeof(*classes));
	if (plan->kr * plan->kc == 1 || source->nwords < CLASS_MIN_WORDS || source->rows < 2 || source->row_words < CLASS_MIN_ROW)
		return false;
	if (source->record)
		return make_record_classes(plan, source, classes);
	if (!scale_view(source, &view))
		return false;
	view.sign |= plan->kc > RANS_MAX_COLS; /* lit.wide codes signs together with exponents */
	if (!build_classes(plan, &view, source->rows, source->row_words, source->width == 32 ? 7 : 8, classes))
		return false;
	if (source->dtype == dtype_by_name("F32", 3)->code)
		set_zero_rows(source, classes);
	return true;
}

/* Bytes that the two class streams will take, about. */
static double class_nbytes(const struct classes *c) { return 40 + (double)c->rows / 4 + (double)c->row_words / 4; }

static bool uses_classes(const struct expr *expr)
{
	for (unsigned i = 0; i < expr->nnodes; i++)
		if (expr->node[i].rows || expr->node[i].cols || expr->node[i].op == OP_GATE)
			return true;
	return false;
}

/* Whether the classes that a program uses save what their streams cost. */
static bool classes_earn(const struct search *search, const struct classes *classes, const struct expr *expr)
{
	double flat = 0, classed = 0;

	if (!uses_classes(expr))
		return true;
	for (unsigned i = 0; i < expr->nnodes; i++) {
		const struct expr_node *node = &expr->node[i];
		if (node->op == OP_GATE)
			return true; /* nothing else does what it does */
		if (!node->rows && !node->cols)
			continue;
		const struct target *t = search->targets->target[node->target];
		double best_flat = 1e300;
		for (unsigned k = 0; k < t->nliterals; k++) {
			const struct literal *l = &t->literal[k];
			const double cost = l->nbytes + search->model.lambda * l->cycles;
			if (!l->node.rows && !l->node.cols && cost < best_flat)
				best_flat = cost;
			if (l->node.choice == node->choice)
				classed += cost;
		}
		flat += best_flat;
	}
	return classed + class_nbytes(classes) < flat;
}

/* Forgets what the literals would cost, to judge them anew. */
static void forget_literals(struct targets *targets)
{
	for (unsigned i = 0; i < targets->count; i++)
		targets->target[i]->judged = false, targets->target[i]->nliterals = 0;
}

/* Searches with the classes and, if they were used, without them: they have to earn what their streams cost. */
static enum brv_status search_both(struct search *search, const struct starts *starts, const struct classes *classes, struct search_result *result,
				   unsigned *expansions)
{
	TRY(search_starts(search, starts, result, expansions));
	if (!classes || classes_earn(search, classes, &result->best))
		return BRV_OK;
	forget_literals(search->targets);
	search->targets->classes = NULL;
	return search_starts(search, starts, result, expansions);
}

static struct words whole(const struct source *source)
{
	return (struct words){ source->words, (size_t)source->nwords, source->width };
}

/* A stream too small to search: one word over and over, or raw. */
static enum brv_status program_tiny(const struct synth_plan *plan, const struct source *source, struct coded_stream *stream)
{
	const struct words all = whole(source);
	struct expr expr;

	expr_init(&expr, source->width, 0);
	if (all.n > 1 && words_constant(all))
		expr_fill(&expr, 0, OP_CONST, get_word(all.ptr, word_nbytes(all.width), 0), 0);
	else
		expr_fill(&expr, 0, OP_LIT_RAW, 0, 0);
	return encode_prepare(stream, &expr, source->words, source->nwords, source->width, chunk_words_for(plan, source), NULL);
}

/* What is known of a stream before its search, and what the search is to tell. */
struct request {
	const struct kin *kin;          /* or NULL */
	struct kin_example *found;      /* or NULL */
	struct prior *learn;            /* or NULL */
	FILE *explain;                  /* or NULL */
};

/* A program of the stream's kind, if it has kin that looks like it. */
static bool follow(struct search *search, const struct request *request, const struct source *source, const struct look *look, struct search_result *result)
{
	const struct kin_example *example = request->kin && !words_constant(whole(source)) ? kin_like(request->kin, look) : NULL;
	const struct classes *classes = search->targets->classes;

	if (!example)
		return false;
	bool good = kin_follow(search, example, look, (double)source->nwords, result);
	if (good && classes && !classes_earn(search, classes, &result->best)) {
		forget_literals(search->targets);
		search->targets->classes = NULL;
		good = kin_follow(search, example, look, (double)source->nwords, result);
		search->targets->classes = classes;
		if (!good)
			forget_literals(search->targets);
	}
	return good;
}

static enum brv_status find_program(const struct synth_plan *plan, const struct source *source, const struct request *request, struct coded_stream *stream,
				    unsigned *expansions)
{
	const uint64_t chunk_words = chunk_words_for(plan, source);
	enum brv_status status = BRV_OK;
	struct targets targets;
	struct classes classes = { 0 };
	struct search_result result;
	struct look look;
	unsigned ignored = 0;

	if (source->nwords * word_nbytes(source->width) <= TINY_NBYTES && !request->explain)
		return stream ? program_tiny(plan, source, stream) : BRV_OK;
	if (!take_sample(plan, source, chunk_words, &targets))
		return BRV_MEMORY;
	struct search search = { .targets = &targets, .prior = plan->prior, .model = plan->model, .limits = plan->limits, .dtype = source->dtype,
				 .size_class = (uint8_t)prior_size_class(source->whole_nwords ? source->whole_nwords : source->nwords),
				 .explain = request->explain };
	struct starts starts = { .count = 0 };
	if (!request->learn) /* a prior is about what the search itself tries */
		starts_find(&starts, source, chunk_words, &targets);
	if (request->found)
		look_at(&look, targets.target[0]->words, targets.target[0]->total, source->width);
	targets_set_rows(&targets, source->rows ? source->row_words : 0, make_classes(plan, source, &classes) ? &classes : NULL);
	/* What has starts of its own neither follows others nor leads them. */
	if (starts.count || !follow(&search, request, source, &look, &result)) {
		status = search_both(&search, &starts, targets.classes, &result, expansions ? expansions : &ignored);
		if (status == BRV_OK && request->found && !starts.count)
			kin_learn(request->found, &look, &result, (double)source->nwords);
		if (status == BRV_OK && request->learn)
			search_learn(&search, &result, request->learn);
	}
	if (status == BRV_OK && stream)
		status = encode_prepare(stream, &result.best, source->words, source->nwords, source->width, chunk_words, &classes);
	targets_free(&targets);
	classes_free(&classes);
	return status;
}

enum brv_status program_for(const struct synth_plan *plan, const struct source *source, struct coded_stream *stream, struct prior *learn,
			    FILE *explain, unsigned *expansions)
{
	return find_program(plan, source, &(struct request){ .learn = learn, .explain = explain }, stream, expansions);
}

enum brv_status program_like(const struct synth_plan *plan, const struct source *source, const struct kin *kin, struct coded_stream *stream,
			     struct kin_example *found, unsigned *expansions)
{
	found->n = 0;
	return find_program(plan, source, &(struct request){ .kin = kin, .found = found }, stream, expansions);
}

enum brv_status program_ref(const struct synth_plan *plan, const struct source *source, uint64_t tensor, struct coded_stream *stream)
{
	struct expr expr;

	expr_init(&expr, source->width, 0);
	expr_fill(&expr, 0, OP_REF, 0, 0);
	TRY(encode_prepare(stream, &expr, source->words, source->nwords, source->width, chunk_words_for(plan, source), NULL));
	stream->ref_tensor = tensor;
	return BRV_OK;
}

/* learn.c: the prior learned from a few tensors of every kind, with a bigger budget than the others get (learn.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/learn.h"

#include <math.h>
#include <stdlib.h>

enum { PRIOR_TENSORS = 2, PRIOR_EXPANSIONS = 4, PRIOR_CLOSINGS = 32 };
#define LEARN_NBYTES (1ull << 19)

/* Tensors that are alike: same type, size class, and matrix or not. */
static unsigned kind_of(const struct tensor *t)
{
	const uint64_t nwords = t->nbytes / (source_of(t, NULL).width / 8);
	return (unsigned)t->dtype->code << 8 | prior_size_class(nwords) << 1 | (t->ndim >= 2);
}

/* A tensor to learn from. */
struct lesson {
	const struct tensor *tensor;
	bool middle;
	struct prior *prior;            /* what it says */
	enum brv_status status;
	struct error err;
};

struct course {
	const struct learner *learner;
	const struct checkpoint *checkpoint;
	struct lesson lesson[LEARN_MAX_KINDS * PRIOR_TENSORS];
	unsigned count;
};

/* Learns from one tensor, or from a part of it in whole rows if it is big: its beginning, where tables keep their special rows, or its middle. */
static enum brv_status learn_from(const struct learner *l, const struct checkpoint *c, struct lesson *lesson)
{
	const struct tensor *t = lesson->tensor;
	struct source source = source_of(t, NULL);
	const uint64_t row_nbytes = source.rows ? source.row_words * (source.width / 8) : source.width / 8;
	uint64_t nbytes = t->nbytes;

	if (nbytes > LEARN_NBYTES && row_nbytes <= LEARN_NBYTES) {
		nbytes = LEARN_NBYTES / row_nbytes * row_nbytes;
		source.rows = source.rows ? nbytes / row_nbytes : 0;
	}
	uint8_t *words = malloc(nbytes + 64);
	lesson->prior = alloc_prior();
	if (!words || !lesson->prior) {
		free(words);
		return fail(&lesson->err, BRV_MEMORY, "no memory to learn from a tensor");
	}
	const uint64_t from = lesson->middle ? (t->nbytes - nbytes) / 2 / row_nbytes * row_nbytes : 0;
	enum brv_status status = checkpoint_read(c, t->offset + from, words, nbytes, &lesson->err);
	source.whole_nwords = source.nwords;
	source.words = words, source.nwords = nbytes / (source.width / 8);
	if (status == BRV_OK)
		source_look(&source), status = program_for(&l->plan, &source, NULL, lesson->prior, NULL, NULL);
	free(words);
	return status;
}

static void take_lesson(void *context, uint64_t i, unsigned worker)
{
	struct course *course = context;
	(void)worker;

	course->lesson[i].status = learn_from(course->learner, course->checkpoint, &course->lesson[i]);
}

enum brv_status learner_start(struct learner *l, const struct synth_plan *plan, struct prior *prior, struct error *err)
{
	struct search_limits *limits = &l->plan.limits;

	*l = (struct learner){ .plan = *plan, .prior = prior, .uniform = alloc_prior() };
	if (!l->uniform)
		return fail(err, BRV_MEMORY, "no memory to learn a prior");
	l->plan.prior = l->uniform;
	limits->expansions = MAX(limits->expansions, PRIOR_EXPANSIONS), limits->closings = MAX(limits->closings, PRIOR_CLOSINGS);
	limits->window = HUGE_VAL;
	l->plan.sample_words = MIN(l->plan.sample_words, 16384), l->plan.class_budget = MIN(l->plan.class_budget, 1u << 17);
	return BRV_OK;
}

/* The tensors of the checkpoint of whose kind not enough have been seen. */
static void choose_lessons(struct learner *l, const struct checkpoint *c, struct course *course)
{
	for (size_t i = 0; i < c->ntensors; i++) {
		const struct tensor *t = &c->tensor[i];
		const unsigned kind = kind_of(t);
		unsigned k = 0;
		while (k < l->nkinds && l->seen[k] != kind)
			k++;
		if (t->nbytes == 0 || (k == l->nkinds && l->nkinds == LEARN_MAX_KINDS))
			continue;
		if (k == l->nkinds)
			l->seen[l->nkinds] = kind, l->count[l->nkinds++] = 0;
		if (l->count[k]++ < PRIOR_TENSORS)
			course->lesson[course->count++] = (struct lesson){ .tensor = t, .middle = l->count[k] > 1 };
	}
}

enum brv_status learner_add(struct learner *l, const struct checkpoint *c, struct pool *pool, struct error *err)
{
	struct course *course = calloc(1, sizeof(*course));
	enum brv_status status = BRV_OK;

	if (!course)
		return fail(err, BRV_MEMORY, "no memory to learn a prior");
	course->learner = l, course->checkpoint = c;
	choose_lessons(l, c, course);
	pool_run(pool, course->count, take_lesson, course);
	for (unsigned i = 0; i < course->count; i++) {
		const struct lesson *lesson = &course->lesson[i];
		if (status == BRV_OK && lesson->status == BRV_OK)
			prior_add(l->prior, lesson->prior);
		else if (status == BRV_OK)
			status = fail(err, lesson->status, "%s", lesson->err.text[0] ? lesson->err.text : status_text(lesson->status));
		free_prior(lesson->prior);
	}
	free(course);
	return status;
}

void learner_end(struct learner *l) { free_prior(l->uniform); }

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

/* Learns from one tensor, or from a part of it in whole rows if it is big: its beginning, where tables keep their special rows, or its middle. */
static enum brv_status learn_from(struct learner *l, const struct checkpoint *c, const struct tensor *t, bool middle, struct error *err)
{
	struct source source = source_of(t, NULL);
	const uint64_t row_nbytes = source.rows ? source.row_words * (source.width / 8) : source.width / 8;
	uint64_t nbytes = t->nbytes;

	if (nbytes > LEARN_NBYTES && row_nbytes <= LEARN_NBYTES) {
		nbytes = LEARN_NBYTES / row_nbytes * row_nbytes;
		source.rows = source.rows ? nbytes / row_nbytes : 0;
	}
	uint8_t *words = malloc(nbytes + 64);
	if (!words)
		return fail(err, BRV_MEMORY, "no memory to learn from a tensor");
	const uint64_t from = middle ? (t->nbytes - nbytes) / 2 / row_nbytes * row_nbytes : 0;
	enum brv_status status = checkpoint_read(c, t->offset + from, words, nbytes, err);
	source.whole_nwords = source.nwords;
	source.words = words, source.nwords = nbytes / (source.width / 8);
	if (status == BRV_OK)
		source_look(&source), status = program_for(&l->plan, &source, NULL, l->prior, NULL, NULL);
	free(words);
	return status;
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

enum brv_status learner_add(struct learner *l, const struct checkpoint *c, struct error *err)
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
			TRY(learn_from(l, c, t, l->count[k] > 1, err));
	}
	return BRV_OK;
}

void learner_end(struct learner *l) { free_prior(l->uniform); }

/* learn.h: the prior learned from a small, deterministic sample of one or several checkpoints' tensors. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_LEARN_H
#define SYNTH_LEARN_H

#include "common/pool.h"
#include "synth/settings.h"
#include "synth/prior.h"

enum { LEARN_MAX_KINDS = 32 };

/* The kinds of tensors met so far: type, size class, matrix or not; a few of each are learned from. */
struct learner {
	struct synth_plan plan;
	struct prior *uniform, *prior;
	unsigned seen[LEARN_MAX_KINDS], count[LEARN_MAX_KINDS], nkinds;
};

/* Observations go to `prior`. BRV_MEMORY. */
enum brv_status learner_start(struct learner *learner, const struct synth_plan *plan, struct prior *prior, struct error *err);

/* Learns from the tensors of a checkpoint of whose kind not enough have been seen: side by side, and the same whatever the number of threads. */
enum brv_status learner_add(struct learner *learner, const struct checkpoint *checkpoint, struct pool *pool, struct error *err);
void learner_end(struct learner *learner);

#endif

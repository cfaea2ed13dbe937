/* synth.h: a checkpoint file turned into an archive: the stages in order.
 *
 *     read -> sample -> prior -> search -> fit -> encode -> emit -> verify
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_SYNTH_H
#define SYNTH_SYNTH_H

#include <stdio.h>

#include "synth/cost.h"
#include "synth/search.h"

/* What is known of a tensor after it was coded. */
struct synth_tensor {
	const char *name, *dtype;
	size_t name_nbytes;
	uint64_t nbytes, payload_nbytes;
	const struct bc_program *program;
	double seconds;
};

struct synth_options {
	enum cost_favor favor;
	enum cost_target target;
	struct search_limits limits;    /* 0 in a field: the default of the favor */
	unsigned threads;
	uint64_t memory_limit;          /* 0: none; else refused (BRV_LIMIT) when the largest tensor would need more */
	bool force;
	const char *prior_in, *prior_out;       /* files, or NULL */
	bool no_prior, no_classes;      /* search with the uniform prior; without row and column classes: to see what these are worth */
	bool learn_only;                /* learn the prior, write it to prior_out, and compress nothing */
	const struct prior *prior;      /* one that is there already, or NULL */
	uint64_t expected_nbytes;       /* size that the input must have; 0: any */
	unsigned shard, shards;         /* of a directory's files only those of job shard of 0..shards - 1; shards 0: all */
	const char *explain;            /* a tensor whose search is written to explain_to; nothing else is done */
	FILE *explain_to;
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
	/* Called for every tensor in order once it is coded; may be NULL. */
	void (*on_tensor)(void *context, const struct synth_tensor *tensor);
	void (*on_warning)(void *context, const char *text);
	void *context;
};

struct synth_report {
	uint64_t in_nbytes, out_nbytes, tensors, expansions;
	bool about_output;              /* a failure has to do with the output, not with the input */
	char about[4096];               /* of a directory: the file that a failure has to do with; empty: input or output as a whole */
	uint64_t archives, kept, other_files;   /* of a directory: files compressed, found done already, carried over */
	double seconds;
};

/* Writes the archive of checkpoint `in` to `out`; nothing appears under that name unless everything went well, which includes decoding the archive
 * again and comparing it with the input. */
enum brv_status synth_file(const char *in, const char *out, const struct synth_options *options, struct synth_report *report, struct error *err);

#endif

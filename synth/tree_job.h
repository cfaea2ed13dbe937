/* tree_job.h: what the stages of synth_tree() share. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_TREE_JOB_H
#define SYNTH_TREE_JOB_H

#include "common/manifest.h"
#include "common/walk.h"
#include "synth/index.h"
#include "synth/learn.h"
#include "synth/tree.h"

/* A file that becomes an archive. */
struct shard {
	const char *path;
	uint64_t nbytes;
	unsigned job;
	bool done;                      /* an earlier run made it */
	bool replaces;                  /* something else has its name */
};

struct tree {
	const char *in, *out;
	const struct synth_options *options;
	struct walk walk;
	struct manifest manifest;
	struct shard_index *index;
	size_t nindexes;
	struct shard *shard;
	size_t nshards;
	struct prior *prior;
	uint64_t done_nbytes, total_nbytes; /* of this job's archives, for the progress */
	struct synth_report *report;
	struct error *err;
};

/* "root/path" + suffix as a new text, which is also what a failure is then about. */
char *tree_place(struct tree *tree, const char *root, const char *path, const char *suffix);
enum brv_status tree_no_memory(struct tree *tree);

/* tree_check.c: nothing is written before these have passed. Fills in walk, index, shard. */
enum brv_status tree_check(struct tree *tree);

/* tree_files.c: the list, written first; the directories; the files that are carried over. */
enum brv_status tree_put_list(struct tree *tree);
enum brv_status tree_make_directories(struct tree *tree);
enum brv_status tree_copy_files(struct tree *tree);

#endif

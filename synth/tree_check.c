/* tree_check.c: what must hold of a checkpoint directory before any work is done on it: names, indexes, headers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/temporary.h"
#include "synth/tree_job.h"

static enum brv_status check_names(struct tree *t)
{
	if (walk_find(&t->walk, MANIFEST_NAME) >= 0)
		return fail(t->err, BRV_INPUT, "holds a " MANIFEST_NAME ": it is compressed already");
	for (size_t i = 0; i < t->walk.count; i++) {
		const struct walk_entry *e = &t->walk.entry[i];
		char *other;
		if (e->directory || !has_suffix(e->path, ORIGINAL_SUFFIX))
			continue;
		if (asprintf(&other, "%s" MANIFEST_SUFFIX, e->path) < 0)
			return tree_no_memory(t);
		const bool taken = walk_find(&t->walk, other) >= 0;
		free(other);
		if (taken)
			return fail(t->err, BRV_INPUT, "holds both %.80s and %.80s" MANIFEST_SUFFIX ", which is what its archive would be called",
				    e->path, e->path);
		t->nshards++;
	}
	return t->nshards ? BRV_OK : fail(t->err, BRV_INPUT, "a directory without a .safetensors file");
}

static enum brv_status check_output(struct tree *t)
{
	const int inside = path_lies_in(t->out, t->in);
	t->report->about_output = inside < 0;
	if (inside < 0)
		return fail_errno(t->err, "cannot look at the output's directory");
	return inside ? fail(t->err, BRV_USAGE, "the output lies inside the input") : BRV_OK;
}

static enum brv_status load_indexes(struct tree *t)
{
	t->index = calloc(t->walk.count + 1, sizeof(*t->index));
	if (!t->index)
		return tree_no_memory(t);
	for (size_t i = 0; i < t->walk.count; i++) {
		const struct walk_entry *e = &t->walk.entry[i];
		if (e->directory || !has_suffix(e->path, INDEX_SUFFIX))
			continue;
		free(tree_place(t, t->in, e->path, ""));
		TRY(index_load(t->in, e->path, &t->index[t->nindexes], t->err));
		TRY(index_check_files(&t->index[t->nindexes++], &t->walk, t->err));
	}
	return BRV_OK;
}

static void warn_stale(struct tree *t, const char *path)
{
	char text[256];
	snprintf(text, sizeof text, "%.150s: the index does not name it; it is compressed all the same", path);
	if (t->options->on_warning)
		t->options->on_warning(t->options->context, text);
}

/* The header of a shard, and what the indexes say of it. */
static enum brv_status check_shard(struct tree *t, struct shard *shard)
{
	struct checkpoint c;
	bool expected = false, named = false;
	char *path = tree_place(t, t->in, shard->path, "");
	if (!path)
		return tree_no_memory(t);
	enum brv_status status = checkpoint_open(path, &c, t->err);
	if (status == BRV_OK) {
		shard->nbytes = c.file_nbytes;
		for (size_t i = 0; status == BRV_OK && i < t->nindexes; i++) {
			bool here;
			status = index_check_shard(&t->index[i], shard->path, &c, &here, t->err);
			named |= here;
			expected |= index_is_beside(&t->index[i], shard->path);
		}
		checkpoint_close(&c);
	}
	free(path);
	if (status == BRV_OK && expected && !named)
		warn_stale(t, shard->path);
	return status;
}

static enum brv_status check_shards(struct tree *t)
{
	size_t n = 0;
	t->shard = calloc(t->nshards, sizeof(*t->shard));
	if (!t->shard)
		return tree_no_memory(t);
	for (size_t i = 0; i < t->walk.count; i++) {
		const struct walk_entry *e = &t->walk.entry[i];
		if (e->directory || !has_suffix(e->path, ORIGINAL_SUFFIX))
			continue;
		t->shard[n].path = e->path;
		TRY(check_shard(t, &t->shard[n++]));
	}
	return BRV_OK;
}

enum brv_status tree_check(struct tree *t)
{
	TRY(walk_directory(t->in, &t->walk, t->err));
	TRY(check_names(t));
	if (!t->options->explain && !t->options->learn_only)
		TRY(check_output(t));
	TRY(load_indexes(t));
	TRY(check_shards(t));
	t->report->about[0] = 0;
	return BRV_OK;
}

/* index.h: model.safetensors.index.json: which shard holds which tensor, checked before hours of work are done. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_INDEX_H
#define SYNTH_INDEX_H

#include "common/walk.h"
#include "synth/checkpoint.h"

#define INDEX_SUFFIX ".safetensors.index.json"

struct shard_index {
	char *path;                     /* in the directory; owned */
	void *json;                     /* owns the rest */
	void *weight_map;               /* tensor -> file, beside the index */
};

/* Parses the text of the index called `path`: an object with an object weight_map of strings that name .safetensors files, each a relative path
 * without "." and "..". BRV_INPUT, BRV_MEMORY; on failure there is nothing to free. */
enum brv_status index_parse(const char *path, const void *text, size_t nbytes, struct shard_index *out, struct error *err);
enum brv_status index_load(const char *directory, const char *path, struct shard_index *out, struct error *err);
void index_free(struct shard_index *index);

/* Every file that the index names is there. BRV_INPUT. */
enum brv_status index_check_files(const struct shard_index *index, const struct walk *files, struct error *err);

/* Every tensor that the index says is in the shard called `path` is in it; *named: the index names this shard at all. BRV_INPUT. */
enum brv_status index_check_shard(const struct shard_index *index, const char *path, const struct checkpoint *shard, bool *named,
				  struct error *err);

/* Whether the shard lies in the directory of the index, which then should name it. */
bool index_is_beside(const struct shard_index *index, const char *path);

#endif

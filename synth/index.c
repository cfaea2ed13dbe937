/* index.c: which shard holds which tensor (index.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/index.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/carry.h"
#include "common/manifest.h"
#include "common/temporary.h"
#include "synth/json_memory.h"

enum { MAX_NBYTES = 256 << 20 };

/* "dir/name" for a name beside the index; malloc'ed. */
static char *beside(const struct shard_index *index, const char *name)
{
	char *path;
	return asprintf(&path, "%.*s%s", directory_length(index->path), index->path, name) < 0 ? NULL : path;
}

static bool is_relative(const char *name)
{
	for (;;) {
		const char *slash = strchrnul(name, '/');
		const size_t n = (size_t)(slash - name);
		if (n == 0 || (n <= 2 && memcmp(name, "..", n) == 0))
			return false;
		if (!*slash)
			return true;
		name = slash + 1;
	}
}

static enum brv_status check_map(const struct shard_index *index, struct error *err)
{
	const char *tensor;
	json_t *file;

	if (!json_is_object((json_t *)index->weight_map))
		return fail(err, BRV_INPUT, "no object \"weight_map\" in it");
	json_object_foreach((json_t *)index->weight_map, tensor, file) {
		const char *name = json_string_value(file);
		if (!name || !has_suffix(name, ORIGINAL_SUFFIX) || !is_relative(name))
			return fail(err, BRV_INPUT, "weight_map, tensor \"%.100s\": expected the name of a .safetensors file", tensor);
	}
	return BRV_OK;
}

enum brv_status index_parse(const char *path, const void *text, size_t nbytes, struct shard_index *out, struct error *err)
{
	json_error_t why;
	json_memory_watch();
	*out = (struct shard_index){ .path = strdup(path), .json = json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &why) };
	out->weight_map = json_object_get(out->json, "weight_map");
	enum brv_status status = BRV_OK;
	if (!out->path)
		status = fail(err, BRV_MEMORY, "no memory for an index");
	else if (!out->json)
		status = json_memory_verdict() == BRV_MEMORY ? fail(err, BRV_MEMORY, "no memory for an index") :
							       fail(err, BRV_INPUT, "not valid JSON: %.120s near byte %d", why.text, why.position);
	if (status == BRV_OK)
		status = check_map(out, err);
	if (status != BRV_OK)
		index_free(out);
	return status;
}

enum brv_status index_load(const char *directory, const char *path, struct shard_index *out, struct error *err)
{
	struct buffer text = { 0 };
	enum brv_status status;
	char *full = path_join(directory, path);
	if (!full)
		return fail(err, BRV_MEMORY, "no memory for a path");
	const int fd = carry_open(full, &status, err);
	free(full);
	if (fd < 0)
		return status;
	status = read_all(fd, MAX_NBYTES, &text, err);
	close(fd);
	if (status == BRV_OK)
		status = index_parse(path, text.data, text.nbytes, out, err);
	buffer_free(&text);
	return status;
}

void index_free(struct shard_index *index)
{
	free(index->path);
	json_decref(index->json);
	*index = (struct shard_index){ 0 };
}

enum brv_status index_check_files(const struct shard_index *index, const struct walk *files, struct error *err)
{
	const char *tensor;
	json_t *file;

	json_object_foreach((json_t *)index->weight_map, tensor, file) {
		char *path = beside(index, json_string_value(file));
		if (!path)
			return fail(err, BRV_MEMORY, "no memory for a path");
		const int64_t at = walk_find(files, path);
		free(path);
		if (at < 0 || files->entry[at].directory)
			return fail(err, BRV_INPUT, "names the shard \"%.100s\" (tensor \"%.60s\"), which is missing", json_string_value(file),
				    tensor);
	}
	return BRV_OK;
}

bool index_is_beside(const struct shard_index *index, const char *path)
{
	const int n = directory_length(index->path);
	return n == directory_length(path) && memcmp(index->path, path, (size_t)n) == 0;
}

enum brv_status index_check_shard(const struct shard_index *index, const char *path, const struct checkpoint *shard, bool *named,
				  struct error *err)
{
	const size_t n = (size_t)directory_length(index->path);
	const char *tensor;
	json_t *file;

	*named = false;
	if (strncmp(path, index->path, n))
		return BRV_OK;
	json_object_foreach((json_t *)index->weight_map, tensor, file) {
		if (strcmp(json_string_value(file), path + n))
			continue;
		*named = true;
		if (!json_object_get(shard->json, tensor))
			return fail(err, BRV_INPUT, "has no tensor \"%.100s\", which %.80s says is in it", tensor, index->path + n);
	}
	return BRV_OK;
}

/* checkpoint.c: reads and checks a .safetensors header.
 *
 * jansson parses it: strict UTF-8, no duplicate keys, exact 64-bit integers, bounded depth. It does not tell where a name stands in the
 * text, so a second, simple walk over the text that is then known to be valid finds the spans of the names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "synth/json_memory.h"

static enum brv_status read_at(const struct checkpoint *c, uint64_t offset, void *dst, uint64_t nbytes, struct error *err)
{
	for (uint8_t *p = dst; nbytes;) {
		ssize_t got = pread(c->fd, p, MIN(nbytes, 1u << 30), (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail(err, BRV_IO, "read: %s", strerror(errno));
		if (got == 0)
			return fail(err, BRV_INPUT, "the file became shorter while it was read: no byte at offset %llu", (unsigned long long)offset);
		p += got, offset += (uint64_t)got, nbytes -= (uint64_t)got;
	}
	return BRV_OK;
}

enum brv_status checkpoint_read(const struct checkpoint *c, uint64_t offset, void *dst, uint64_t nbytes, struct error *err)
{
	return read_at(c, 8 + c->header_nbytes + offset, dst, nbytes, err);
}

static enum brv_status open_and_read_header(struct checkpoint *c, struct error *err)
{
	struct stat st;
	uint8_t length[8];

	c->fd = TEMP_FAILURE_RETRY(open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	if (c->fd < 0)
		return fail(err, BRV_IO, "open: %s", strerror(errno));
	if (fstat(c->fd, &st))
		return fail(err, BRV_IO, "stat: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(err, BRV_INPUT, "not a regular file");
	c->file_nbytes = (uint64_t)st.st_size;
	if (c->file_nbytes < 8)
		return fail(err, BRV_INPUT, "not a safetensors file: %llu bytes, shorter than the 8-byte header length",
			    (unsigned long long)c->file_nbytes);
	TRY(read_at(c, 0, length, 8, err));
	c->header_nbytes = load_u64(length);
	if (c->header_nbytes > c->file_nbytes - 8)
		return fail(err, BRV_INPUT, "not a safetensors file: header length %llu exceeds the file's size %llu",
			    (unsigned long long)c->header_nbytes, (unsigned long long)c->file_nbytes);
	if (c->header_nbytes > AR_MAX_HEADER_NBYTES)
		return fail(err, BRV_INPUT, "header of %llu bytes is too large: at most %d", (unsigned long long)c->header_nbytes,
			    AR_MAX_HEADER_NBYTES);
	c->header = malloc(c->header_nbytes + 1);
	if (!c->header)
		return fail(err, BRV_MEMORY, "no memory for a header of %llu bytes", (unsigned long long)c->header_nbytes);
	c->header[c->header_nbytes] = 0;
	return read_at(c, 8, c->header, c->header_nbytes, err);
}

/* A non-negative integer, or BRV_INPUT. */
static enum brv_status get_uint(const json_t *value, uint64_t *out, const char *what, const char *name, struct error *err)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return fail(err, BRV_INPUT, "tensor \"%.100s\": %s is not a non-negative integer", name, what);
	*out = (uint64_t)json_integer_value(value);
	return BRV_OK;
}

static enum brv_status check_size(const struct tensor *t, struct error *err)
{
	uint64_t count = 1, bits;

	for (size_t i = 0; i < t->ndim; i++)
		if (!mul_u64(count, t->shape[i], &count))
			return fail(err, BRV_INPUT, "tensor \"%.100s\": the product of its shape overflows", t->name);
	if (t->dtype->code == AR_DTYPE_OTHER)
		return BRV_OK;
	if (!mul_u64(count, t->dtype->bits, &bits))
		return fail(err, BRV_INPUT, "tensor \"%.100s\": the size of its shape overflows", t->name);
	if (bits % 8 || bits / 8 != t->nbytes)
		return fail(err, BRV_INPUT, "tensor \"%.100s\": %llu elements of %s take %llu bits, but its data_offsets span %llu bytes", t->name,
			    (unsigned long long)count, t->dtype->name, (unsigned long long)bits, (unsigned long long)t->nbytes);
	return BRV_OK;
}

static enum brv_status read_tensor(const char *name, size_t name_nbytes, const json_t *entry, struct tensor *t, uint64_t **shape,
				   struct error *err)
{
	const json_t *dtype = json_object_get(entry, "dtype"), *dims = json_object_get(entry, "shape");
	const json_t *offsets = json_object_get(entry, "data_offsets");
	uint64_t end = 0;

	if (!json_is_string(dtype) || !json_is_array(dims) || !json_is_array(offsets) || json_array_size(offsets) != 2)
		return fail(err, BRV_INPUT, "tensor \"%.100s\": needs a dtype string, a shape array and two data_offsets", name);
	if (json_array_size(dims) > AR_MAX_NDIM || name_nbytes > AR_MAX_NAME_NBYTES)
		return fail(err, BRV_LIMIT, "tensor \"%.100s\": more than %d dimensions or a name beyond %d bytes", name, AR_MAX_NDIM,
			    AR_MAX_NAME_NBYTES);
	t->name = name, t->name_nbytes = name_nbytes, t->name_offset = -1;
	t->dtype_name = json_string_value(dtype);
	t->dtype = dtype_by_name(t->dtype_name, json_string_length(dtype));
	if (!t->dtype)
		t->dtype = dtype_by_code(AR_DTYPE_OTHER);
	const size_t dtype_nbytes = strlen(t->dtype_name);
	if (t->dtype->code == AR_DTYPE_OTHER && (dtype_nbytes == 0 || dtype_nbytes > 64 || dtype_nbytes != json_string_length(dtype)))
		return fail(err, BRV_INPUT, "tensor \"%.100s\": dtype is empty, longer than 64 bytes or has a NUL", name);
	t->shape = *shape, t->ndim = json_array_size(dims);
	for (size_t i = 0; i < t->ndim; i++)
		TRY(get_uint(json_array_get(dims, i), (*shape)++, "a dimension", name, err));
	TRY(get_uint(json_array_get(offsets, 0), &t->offset, "a data offset", name, err));
	TRY(get_uint(json_array_get(offsets, 1), &end, "a data offset", name, err));
	if (end < t->offset)
		return fail(err, BRV_INPUT, "tensor \"%.100s\": data_offsets end (%llu) before they begin (%llu)", name, (unsigned long long)end,
			    (unsigned long long)t->offset);
	t->nbytes = end - t->offset;
	return check_size(t, err);
}

/* The position after the JSON string that begins at text[at] with a quote. */
static size_t skip_string(const uint8_t *text, size_t at, bool *escaped)
{
	*escaped = false;
	for (at++; text[at] != '"'; at++)
		if (text[at] == '\\')
			*escaped = true, at++;
	return at + 1;
}

/* Fills in name_offset, walking the keys of the outer object; tensors are still in the order of the header. Text is valid JSON. */
static void find_names(struct checkpoint *c)
{
	const uint8_t *text = c->header;
	size_t depth = 0, next = 0, start = 0;
	bool escaped, expect_key = true;

	for (size_t at = 0; at < c->header_nbytes;) {
		uint8_t byte = text[at];

		if (byte == '"') {
			size_t from = at + 1;
			at = skip_string(text, at, &escaped);
			if (depth != 1 || !expect_key)
				continue;
			expect_key = false, start = from;
			if (!escaped && at - 1 - from == 12 && !memcmp(text + from, "__metadata__", 12))
				continue;
			if (next < c->ntensors) {
				struct tensor *t = &c->tensor[next];
				bool same = !escaped && at - 1 - from == t->name_nbytes && !memcmp(text + from, t->name, t->name_nbytes);
				if (same)
					t->name_offset = (int64_t)start;
				if (same || escaped)
					next++;
			}
			continue;
		}
		depth += byte == '{' || byte == '[';
		depth -= byte == '}' || byte == ']';
		expect_key = expect_key || (depth == 1 && byte == ',');
		at++;
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;
	/* An empty tensor stands before the one that begins at its offset; otherwise the header's order, which is the order in memory of `shape`. */
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (!x->nbytes != !y->nbytes)
		return x->nbytes ? 1 : -1;
	return x->shape != y->shape ? (x->shape < y->shape ? -1 : 1) : (x->name < y->name ? -1 : x->name > y->name);
}

/* Sorts the tensors by their data and checks that they cover the data region without a hole or an overlap. */
static enum brv_status check_layout(struct checkpoint *c, struct error *err)
{
	uint64_t data = c->file_nbytes - 8 - c->header_nbytes, at = 0;

	qsort(c->tensor, c->ntensors, sizeof(*c->tensor), by_offset);
	for (size_t i = 0; i < c->ntensors; i++) {
		struct tensor *t = &c->tensor[i];
		if (t->offset != at)
			return fail(err, BRV_INPUT, "tensor \"%.100s\": its data begins at %llu, but the data before it ends at %llu (%s)", t->name,
				    (unsigned long long)t->offset, (unsigned long long)at, t->offset < at ? "an overlap" : "a hole");
		at += t->nbytes;
		if (at > data)
			return fail(err, BRV_INPUT, "tensor \"%.100s\": its data ends at %llu, but the file holds %llu bytes of data", t->name,
				    (unsigned long long)at, (unsigned long long)data);
	}
	if (at != data)
		return fail(err, BRV_INPUT, "%llu bytes follow the last tensor's data", (unsigned long long)(data - at));
	return BRV_OK;
}

/* The number of dimensions of all tensors; entries that are no objects count 0 and are refused later. */
static size_t count_dims(const json_t *root)
{
	size_t count = 0;
	const char *key;
	json_t *entry;

	json_object_foreach((json_t *)root, key, entry)
		count += json_array_size(json_object_get(entry, "shape")) + 1;
	return count;
}

static enum brv_status check_metadata(const json_t *metadata, struct error *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(metadata))
		return fail(err, BRV_INPUT, "__metadata__ is not an object");
	json_object_foreach((json_t *)metadata, key, value)
		if (!json_is_string(value))
			return fail(err, BRV_INPUT, "__metadata__ \"%.100s\" is not a string", key);
	return BRV_OK;
}

static enum brv_status read_header(struct checkpoint *c, struct error *err)
{
	json_error_t why;
	json_t *root, *entry;
	const char *key;
	size_t at = 0;

	json_memory_watch();
	root = json_loadb((const char *)c->header, c->header_nbytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	c->json = root;
	if (!root && json_memory_verdict() == BRV_MEMORY)
		return fail(err, BRV_MEMORY, "no memory for a header of %llu bytes", (unsigned long long)c->header_nbytes);
	if (!root)
		return fail(err, BRV_INPUT, "header is not valid JSON: %.120s near byte %d", why.text, why.position);
	if (!json_is_object(root))
		return fail(err, BRV_INPUT, "header is not a JSON object");
	c->tensor = calloc(json_object_size(root) + 1, sizeof(*c->tensor));
	c->shapes = calloc(count_dims(root) + 1, sizeof(uint64_t));
	if (!c->tensor || !c->shapes)
		return fail(err, BRV_MEMORY, "no memory for %zu tensors", json_object_size(root));
	uint64_t *shape = c->shapes;
	json_object_foreach(root, key, entry) {
		if (!strcmp(key, "__metadata__")) {
			TRY(check_metadata(entry, err));
			continue;
		}
		if (!json_is_object(entry))
			return fail(err, BRV_INPUT, "tensor \"%.100s\": not an object", key);
		TRY(read_tensor(key, strlen(key), entry, &c->tensor[at], &shape, err));
		shape++; /* so that a scalar's shape has a place of its own: by_offset() compares places */
		at++;
	}
	c->ntensors = at;
	find_names(c);
	return check_layout(c, err);
}

enum brv_status checkpoint_open(const char *path, struct checkpoint *out, struct error *err)
{
	memset(out, 0, sizeof(*out));
	out->path = path, out->fd = -1;
	enum brv_status status = open_and_read_header(out, err);
	if (status == BRV_OK)
		status = read_header(out, err);
	if (status != BRV_OK)
		checkpoint_close(out);
	return status;
}

void checkpoint_close(struct checkpoint *c)
{
	if (c->fd >= 0)
		close(c->fd);
	json_decref(c->json);
	free(c->header);
	free(c->tensor);
	free(c->shapes);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

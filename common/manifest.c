/* manifest.c: the list of a compressed checkpoint directory, as text and back (manifest.h). SPDX-License-Identifier: Apache-2.0 */
#include "common/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/carry.h"
#include "common/text.h"
#include "common/walk.h"

static const char first_line[] = "brevis-manifest 1\n";
enum { MAX_NBYTES = 32 << 20 };

struct manifest_entry *manifest_add(struct manifest *m, const char *path, const char *stored, enum manifest_kind kind, uint64_t nbytes)
{
	if (m->count == m->capacity) {
		const size_t capacity = MAX(2 * m->capacity, (size_t)64);
		struct manifest_entry *entry = realloc(m->entry, capacity * sizeof(*entry));
		if (!entry)
			return NULL;
		m->entry = entry, m->capacity = capacity;
	}
	struct manifest_entry *entry = &m->entry[m->count];
	*entry = (struct manifest_entry){ .path = strdup(path), .kind = kind, .nbytes = nbytes };
	if (stored)
		entry->stored = strdup(stored);
	else if (asprintf(&entry->stored, "%s%s", path, kind == MANIFEST_ARCHIVE ? MANIFEST_SUFFIX : "") < 0)
		entry->stored = NULL;
	if (entry->path && entry->stored) {
		m->count++;
		return entry;
	}
	free(entry->path);
	free(entry->stored);
	return NULL;
}

void manifest_free(struct manifest *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->entry[i].path);
		free(m->entry[i].stored);
	}
	free(m->entry);
	*m = (struct manifest){ 0 };
}

/* A path with control characters and % as %XX, so that it ends with its line. */
static void put_path(struct buffer *out, const char *path)
{
	for (; *path; path++) {
		const uint8_t c = (uint8_t)*path;
		char escape[4];
		if (c >= 0x20 && c != 0x7f && c != '%') {
			buffer_put_u8(out, c);
			continue;
		}
		snprintf(escape, sizeof escape, "%%%02x", c);
		buffer_put(out, escape, 3);
	}
	buffer_put_u8(out, '\n');
}

void manifest_print(const struct manifest *m, struct buffer *out)
{
	char text[96];
	buffer_put(out, first_line, sizeof first_line - 1);
	for (size_t i = 0; i < m->count; i++) {
		const struct manifest_entry *e = &m->entry[i];
		if (e->kind == MANIFEST_ARCHIVE)
			snprintf(text, sizeof text, "archive %" PRIu64 " ", e->nbytes);
		else if (e->kind == MANIFEST_FILE)
			snprintf(text, sizeof text, "file %" PRIu64 " %016" PRIx64 " ", e->nbytes, e->sum);
		else
			snprintf(text, sizeof text, "directory ");
		buffer_put(out, text, strlen(text));
		put_path(out, e->path);
	}
	if (!out->failed) {
		snprintf(text, sizeof text, "end %016" PRIx64 "\n", (uint64_t)XXH3_64bits(out->data, out->nbytes));
		buffer_put(out, text, strlen(text));
	}
}

/* The text of a manifest on its way through the parser. */
struct lines {
	const char *at, *end;
	size_t number;
	struct error *err;
};

static enum brv_status bad_line(const struct lines *in, const char *what)
{
	return fail(in->err, BRV_DAMAGED, "line %zu: %s", in->number, what);
}

/* Takes `word` if the line goes on with it. */
static bool take_word(struct lines *in, const char *word)
{
	const size_t n = strlen(word);
	if ((size_t)(in->end - in->at) < n || memcmp(in->at, word, n))
		return false;
	in->at += n;
	return true;
}

/* Decimal digits without a sign or a leading 0, then a space. */
static bool take_size(struct lines *in, uint64_t *out)
{
	char digits[24];
	size_t n = 0;
	while (in->at < in->end && *in->at >= '0' && *in->at <= '9' && n < sizeof digits - 1)
		digits[n++] = *in->at++;
	digits[n] = 0;
	return (n == 1 || digits[0] != '0') && text_number(digits, 0, INT64_MAX, out) && take_word(in, " ");
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* 16 lower case hexadecimal digits. */
static bool take_sum(struct lines *in, uint64_t *out)
{
	*out = 0;
	for (unsigned i = 0; i < 16; i++) {
		const int digit = in->at < in->end ? hex_digit(*in->at++) : -1;
		if (digit < 0)
			return false;
		*out = *out << 4 | (uint64_t)digit;
	}
	return true;
}

/* The rest of the line as a path; its end is taken too. */
static bool take_path(struct lines *in, char *path, size_t size)
{
	size_t n = 0;
	for (; in->at < in->end && *in->at != '\n'; in->at++) {
		uint8_t c = (uint8_t)*in->at;
		if (c < 0x20 || c == 0x7f)
			return false;
		if (c == '%') {
			const int high = in->end - in->at > 2 ? hex_digit(in->at[1]) : -1, low = high < 0 ? -1 : hex_digit(in->at[2]);
			if (low < 0)
				return false;
			c = (uint8_t)(high << 4 | low);
			if ((c >= 0x20 && c != 0x7f && c != '%') || c == 0)
				return false;
			in->at += 2;
		}
		if (n + 1 >= size)
			return false;
		path[n++] = (char)c;
	}
	path[n] = 0;
	return take_word(in, "\n");
}

/* Relative, and every part a name: no path leads out of the directory. */
static bool is_sound(const char *path)
{
	for (;;) {
		const char *slash = strchrnul(path, '/');
		const size_t n = (size_t)(slash - path);
		if (n == 0 || n > 255 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!*slash)
			return true;
		path = slash + 1;
	}
}

/* Whether an earlier entry is the directory that the path is in (or it is in the top one). */
static bool has_parent(const struct manifest *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t low = 0, high = m->count;
	if (!slash)
		return true;
	const size_t n = (size_t)(slash - path);
	while (low < high) {
		const size_t middle = (low + high) / 2;
		const char *there = m->entry[middle].path;
		const int order = strncmp(there, path, n);
		if (order == 0 && there[n] == 0)
			return m->entry[middle].kind == MANIFEST_DIRECTORY;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static enum brv_status parse_line(struct lines *in, struct manifest *out)
{
	char path[4096];
	uint64_t nbytes = 0, sum = 0;
	enum manifest_kind kind = MANIFEST_DIRECTORY;

	if (take_word(in, "archive "))
		kind = MANIFEST_ARCHIVE;
	else if (take_word(in, "file "))
		kind = MANIFEST_FILE;
	else if (!take_word(in, "directory "))
		return bad_line(in, "expected archive, file, directory or end");
	if (kind != MANIFEST_DIRECTORY && !take_size(in, &nbytes))
		return bad_line(in, "expected a size");
	if (kind == MANIFEST_FILE && (!take_sum(in, &sum) || !take_word(in, " ")))
		return bad_line(in, "expected a checksum");
	if (!take_path(in, path, sizeof path) || !is_sound(path))
		return bad_line(in, "expected a relative path without . and ..");
	if (kind == MANIFEST_ARCHIVE && !has_suffix(path, ORIGINAL_SUFFIX))
		return bad_line(in, "an archive of what is no .safetensors file");
	if (out->count && strcmp(out->entry[out->count - 1].path, path) >= 0)
		return bad_line(in, "paths are not in order");
	if (!has_parent(out, path))
		return bad_line(in, "the directory that it is in is missing");
	if (out->count == WALK_MAX_ENTRIES)
		return fail(in->err, BRV_LIMIT, "more than %d files", (int)WALK_MAX_ENTRIES);
	struct manifest_entry *entry = manifest_add(out, path, NULL, kind, nbytes);
	if (!entry)
		return fail(in->err, BRV_MEMORY, "no memory for a list of files");
	entry->sum = sum, entry->has_sum = kind == MANIFEST_FILE;
	return BRV_OK;
}

/* A file may not be called like an archive or like the manifest itself. */
static enum brv_status check_places(const struct manifest *m, struct error *err)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct manifest_entry *e = &m->entry[i];
		char other[4096 + sizeof MANIFEST_SUFFIX];
		if (strcmp(e->path, MANIFEST_NAME) == 0)
			return fail(err, BRV_DAMAGED, "a file called " MANIFEST_NAME " in a checkpoint");
		if (e->kind != MANIFEST_ARCHIVE)
			continue;
		snprintf(other, sizeof other, "%s" MANIFEST_SUFFIX, e->path);
		size_t low = i + 1, high = m->count;
		while (low < high) {
			const size_t middle = (low + high) / 2;
			const int order = strcmp(m->entry[middle].path, other);
			if (order == 0)
				return fail(err, BRV_DAMAGED, "\"%.100s\" stands for a file and for an archive", other);
			if (order < 0)
				low = middle + 1;
			else
				high = middle;
		}
	}
	return BRV_OK;
}

static enum brv_status parse_lines(struct lines *in, const char *text, struct manifest *out)
{
	uint64_t sum;
	if (!take_word(in, first_line))
		return take_word(in, "brevis-manifest ") ? fail(in->err, BRV_VERSION, "a list of a newer version") : bad_line(in, "expected brevis-manifest 1");
	for (in->number = 2;; in->number++) {
		const size_t before = (size_t)(in->at - text);
		if (!take_word(in, "end ")) {
			TRY(parse_line(in, out));
			continue;
		}
		if (!take_sum(in, &sum) || !take_word(in, "\n") || in->at != in->end)
			return bad_line(in, "expected a checksum and nothing behind it");
		return sum == XXH3_64bits(text, before) ? check_places(out, in->err) : bad_line(in, "the checksum differs: the list was changed");
	}
}

enum brv_status manifest_parse(const void *text, size_t nbytes, struct manifest *out, struct error *err)
{
	struct lines in = { .at = text, .end = (const char *)text + nbytes, .number = 1, .err = err };
	*out = (struct manifest){ 0 };
	const enum brv_status status = parse_lines(&in, text, out);
	if (status != BRV_OK)
		manifest_free(out);
	return status;
}

static enum brv_status read_manifest(int fd, struct manifest *out, struct error *err)
{
	struct buffer text = { 0 };
	struct error why = { "" };
	struct stat st;
	if (fstat(fd, &st) != 0)
		return fail(err, BRV_IO, MANIFEST_NAME ": %s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_NBYTES)
		return fail(err, BRV_DAMAGED, MANIFEST_NAME ": no file of at most %d bytes", (int)MAX_NBYTES);
	enum brv_status status = read_all(fd, MAX_NBYTES, &text, &why);
	if (status == BRV_OK)
		status = manifest_parse(text.data, text.nbytes, out, &why);
	buffer_free(&text);
	return status == BRV_OK ? BRV_OK : fail(err, status, MANIFEST_NAME ": %.200s", why.text);
}

char *manifest_original_name(const char *archive)
{
	const size_t n = strlen(archive);
	const size_t stem = n > strlen(MANIFEST_SUFFIX) && has_suffix(archive, MANIFEST_SUFFIX) ? n - strlen(MANIFEST_SUFFIX) : n;
	char *name = malloc(stem + sizeof ORIGINAL_SUFFIX);
	if (!name)
		return NULL;
	memcpy(name, archive, stem);
	name[stem] = 0;
	if (!has_suffix(name, ORIGINAL_SUFFIX))
		memcpy(name + stem, ORIGINAL_SUFFIX, sizeof ORIGINAL_SUFFIX);
	return name;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct manifest_entry *)a)->path, ((const struct manifest_entry *)b)->path);
}

static enum brv_status take_what_is_there(const char *directory, struct manifest *out, struct error *err)
{
	struct walk walk;
	TRY(walk_directory(directory, &walk, err));
	enum brv_status status = BRV_OK;
	for (size_t i = 0; status == BRV_OK && i < walk.count; i++) {
		const struct walk_entry *w = &walk.entry[i];
		const bool archive = !w->directory && has_suffix(w->path, MANIFEST_SUFFIX);
		const enum manifest_kind kind = w->directory ? MANIFEST_DIRECTORY : archive ? MANIFEST_ARCHIVE : MANIFEST_FILE;
		char *name = archive ? manifest_original_name(w->path) : strdup(w->path);
		if (!name || !manifest_add(out, name, w->path, kind, archive ? UINT64_MAX : w->nbytes))
			status = fail(err, BRV_MEMORY, "no memory for a list of files");
		free(name);
	}
	walk_free(&walk);
	if (status == BRV_OK && out->count)
		qsort(out->entry, out->count, sizeof(*out->entry), by_path);
	for (size_t i = 1; status == BRV_OK && i < out->count; i++)
		if (strcmp(out->entry[i - 1].path, out->entry[i].path) == 0)
			status = fail(err, BRV_USAGE, "\"%.100s\" is there twice: as a file or archive called %.60s, and called %.60s", out->entry[i].path,
				      out->entry[i - 1].stored, out->entry[i].stored);
	return status;
}

enum brv_status manifest_of_directory(const char *directory, struct manifest *out, bool *has_manifest, struct error *err)
{
	*out = (struct manifest){ 0 };
	char *path = path_join(directory, MANIFEST_NAME);
	if (!path)
		return fail(err, BRV_MEMORY, "no memory for a path");
	const int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)), number = errno;
	free(path);
	if (has_manifest)
		*has_manifest = fd >= 0;
	enum brv_status status;
	if (fd >= 0) {
		status = read_manifest(fd, out, err);
		close(fd);
	} else if (number == ENOENT) {
		status = take_what_is_there(directory, out, err);
	} else {
		status = fail(err, BRV_IO, "%s: %s", MANIFEST_NAME, strerror(number));
	}
	if (status != BRV_OK)
		manifest_free(out);
	return status;
}

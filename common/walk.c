/* walk.c: everything below a directory (walk.h). A stack of open directories on the heap, and no recursion.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/temporary.h"

struct level {
	DIR *dir;
	size_t prefix_nbytes;           /* of the path: "a/b/" */
	dev_t dev;
	ino_t ino;
};

struct walker {
	const char *root;
	struct level level[WALK_MAX_DEPTH];
	unsigned depth;
	char path[4096];                /* relative, of the directory at hand, with a slash at its end */
	struct walk *out;
	struct error *err;
};

char *path_join(const char *root, const char *path)
{
	char *joined;
	return asprintf(&joined, "%s/%s", root, path) < 0 ? NULL : joined;
}

/* The real path, also of what is not there yet in a directory that is; malloc'ed, NULL and errno. */
static char *real_path(const char *path)
{
	char *real = realpath(path, NULL);
	if (real || errno != ENOENT)
		return real;
	const int n = directory_length(path);
	char *directory = n ? strndup(path, (size_t)n) : strdup("."), *parent = directory ? realpath(directory, NULL) : NULL;
	real = parent ? path_join(parent, path + n) : NULL;
	free(directory);
	free(parent);
	return real;
}

int path_lies_in(const char *path, const char *root)
{
	char *real = real_path(path), *in = real ? realpath(root, NULL) : NULL;
	const size_t n = in ? strlen(in) : 0;
	const int inside = !real ? -1 : in && strncmp(real, in, n) == 0 && (real[n] == '/' || real[n] == 0 || n == 1);
	const int number = errno;
	free(real);
	free(in);
	errno = number;
	return inside;
}

bool has_suffix(const char *text, const char *suffix)
{
	const size_t n = strlen(text), m = strlen(suffix);
	return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

static enum brv_status fail_at(const struct walker *w, enum brv_status status, const char *what)
{
	return fail(w->err, status, "%.160s: %s", w->path[0] ? w->path : ".", what);
}

static enum brv_status add_entry(struct walker *w, bool directory, uint64_t nbytes)
{
	struct walk *out = w->out;
	if (out->count == WALK_MAX_ENTRIES)
		return fail(w->err, BRV_LIMIT, "more than %d files", (int)WALK_MAX_ENTRIES);
	if (out->count == out->capacity) {
		const size_t capacity = MAX(2 * out->capacity, (size_t)64);
		struct walk_entry *entry = realloc(out->entry, capacity * sizeof(*entry));
		if (!entry)
			return fail(w->err, BRV_MEMORY, "no memory for a list of files");
		out->entry = entry, out->capacity = capacity;
	}
	char *path = strdup(w->path);
	if (!path)
		return fail(w->err, BRV_MEMORY, "no memory for a list of files");
	out->entry[out->count++] = (struct walk_entry){ path, directory, nbytes };
	return BRV_OK;
}

/* Opens the directory that w->path names. */
static enum brv_status push(struct walker *w, const struct stat *st)
{
	for (unsigned i = 0; i < w->depth; i++)
		if (w->level[i].dev == st->st_dev && w->level[i].ino == st->st_ino)
			return fail_at(w, BRV_INPUT, "a link that leads back into a directory above it");
	if (w->depth == WALK_MAX_DEPTH)
		return fail_at(w, BRV_LIMIT, "directories nested too deep");
	char *full = w->depth ? path_join(w->root, w->path) : strdup(w->root);
	if (!full)
		return fail(w->err, BRV_MEMORY, "no memory for a path");
	DIR *dir;
	do
		dir = opendir(full);
	while (!dir && errno == EINTR);
	const int number = errno;
	free(full);
	if (!dir)
		return fail_at(w, number == ENOMEM ? BRV_MEMORY : BRV_IO, strerror(number));
	size_t n = strlen(w->path);
	if (n)
		w->path[n++] = '/';     /* room for it was checked when the name was put there */
	w->path[n] = 0;
	w->level[w->depth++] = (struct level){ dir, n, st->st_dev, st->st_ino };
	return BRV_OK;
}

/* One name of the directory at the top of the stack. */
static enum brv_status visit(struct walker *w, const char *name)
{
	const struct level *top = &w->level[w->depth - 1];
	struct stat st;

	w->path[top->prefix_nbytes] = 0;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return BRV_OK;
	if (top->prefix_nbytes + strlen(name) + 2 > sizeof w->path)
		return fail_at(w, BRV_LIMIT, "a path is too long");
	memcpy(w->path + top->prefix_nbytes, name, strlen(name) + 1);
	if (fstatat(dirfd(top->dir), name, &st, 0) != 0)
		return fail_at(w, errno == ELOOP || errno == ENOENT ? BRV_INPUT : BRV_IO,
			       errno == ENOENT ? "a link to nothing" : strerror(errno));
	if (S_ISREG(st.st_mode))
		return add_entry(w, false, (uint64_t)st.st_size);
	if (!S_ISDIR(st.st_mode))
		return fail_at(w, BRV_INPUT, "neither a file nor a directory");
	TRY(add_entry(w, true, 0));
	return push(w, &st);
}

static enum brv_status walk_all(struct walker *w)
{
	struct stat st;
	if (stat(w->root, &st) != 0)
		return fail(w->err, BRV_IO, "cannot look at it: %s", strerror(errno));
	TRY(push(w, &st));
	while (w->depth) {
		struct level *top = &w->level[w->depth - 1];
		w->path[top->prefix_nbytes] = 0;
		errno = 0;
		const struct dirent *entry = readdir(top->dir);
		if (entry) {
			TRY(visit(w, entry->d_name));
			continue;
		}
		if (errno)
			return fail_at(w, BRV_IO, strerror(errno));
		closedir(top->dir);
		w->depth--;
	}
	return BRV_OK;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct walk_entry *)a)->path, ((const struct walk_entry *)b)->path);
}

enum brv_status walk_directory(const char *root, struct walk *out, struct error *err)
{
	*out = (struct walk){ 0 };
	struct walker *w = calloc(1, sizeof(*w));
	if (!w)
		return fail(err, BRV_MEMORY, "no memory to list a directory");
	w->root = root, w->out = out, w->err = err;
	const enum brv_status status = walk_all(w);
	while (w->depth)
		closedir(w->level[--w->depth].dir);
	free(w);
	if (status != BRV_OK)
		walk_free(out);
	else if (out->count)
		qsort(out->entry, out->count, sizeof(*out->entry), by_path);
	return status;
}

void walk_free(struct walk *walk)
{
	for (size_t i = 0; i < walk->count; i++)
		free(walk->entry[i].path);
	free(walk->entry);
	*walk = (struct walk){ 0 };
}

int64_t walk_find(const struct walk *walk, const char *path)
{
	const struct walk_entry key = { .path = (char *)path };
	const struct walk_entry *found =
		walk->count ? bsearch(&key, walk->entry, walk->count, sizeof(*walk->entry), by_path) : NULL;
	return found ? found - walk->entry : -1;
}

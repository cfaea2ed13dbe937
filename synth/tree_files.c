/* tree_files.c: the list of what a compressed directory has to hold, and the files in it that are no archives.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/carry.h"
#include "common/temporary.h"
#include "synth/tree_job.h"

static enum brv_status add_file(struct tree *t, const struct walk_entry *e)
{
	uint64_t nbytes = e->nbytes, sum = 0;
	const bool archive = !e->directory && has_suffix(e->path, ORIGINAL_SUFFIX);
	const enum manifest_kind kind = e->directory ? MANIFEST_DIRECTORY : archive ? MANIFEST_ARCHIVE : MANIFEST_FILE;

	if (kind == MANIFEST_FILE) {
		enum brv_status status;
		bool writing;
		char *path = tree_place(t, t->in, e->path, "");
		const int fd = path ? carry_open(path, &status, t->err) : -1;
		if (fd < 0)
			return path ? free(path), status : tree_no_memory(t);
		free(path);
		status = carry(fd, NULL, &nbytes, &sum, &writing, t->err);
		close(fd);
		TRY(status);
	}
	struct manifest_entry *entry = manifest_add(&t->manifest, e->path, NULL, kind, nbytes);
	if (!entry)
		return tree_no_memory(t);
	entry->sum = sum, entry->has_sum = kind == MANIFEST_FILE;
	return BRV_OK;
}

static enum brv_status make_list(struct tree *t, struct buffer *text)
{
	struct manifest check;
	for (size_t i = 0; i < t->walk.count; i++)
		TRY(add_file(t, &t->walk.entry[i]));
	t->report->about[0] = 0;
	manifest_print(&t->manifest, text);
	if (text->failed)
		return tree_no_memory(t);
	/* Names that the list cannot hold show here, and not when it is read. */
	const enum brv_status status = manifest_parse(text->data, text->nbytes, &check, t->err);
	if (status == BRV_OK)
		manifest_free(&check);
	return status == BRV_DAMAGED ? BRV_INPUT : status;
}

/* Whether the output directory has this very list already, none yet and nothing else either, or other files. */
enum output { OUTPUT_SAME, OUTPUT_EMPTY, OUTPUT_OTHER };

static enum brv_status look_at_output(const char *out, const char *list, const struct buffer *text, enum output *found, struct error *err)
{
	const int fd = TEMP_FAILURE_RETRY(open(list, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	struct walk walk;
	if (fd < 0 && errno != ENOENT)
		return fail_errno(err, "cannot open its " MANIFEST_NAME);
	if (fd < 0) {
		TRY(walk_directory(out, &walk, err));
		bool empty = true; /* but for temporaries of a run that was killed at its very start */
		for (size_t i = 0; i < walk.count; i++)
			empty = empty && walk.entry[i].path[0] == '.' && has_suffix(walk.entry[i].path, ".tmp");
		walk_free(&walk);
		*found = empty ? OUTPUT_EMPTY : OUTPUT_OTHER;
		return BRV_OK;
	}
	uint8_t part[4096];
	size_t at = 0;
	bool same = true;
	ssize_t n = 0;
	while (same && (n = TEMP_FAILURE_RETRY(read(fd, part, sizeof part))) > 0) {
		same = at + (size_t)n <= text->nbytes && memcmp(text->data + at, part, (size_t)n) == 0;
		at += (size_t)n;
	}
	const enum brv_status status = n < 0 ? fail_errno(err, "cannot read its " MANIFEST_NAME) : BRV_OK;
	close(fd);
	*found = same && at == text->nbytes ? OUTPUT_SAME : OUTPUT_OTHER;
	return status;
}

/* Makes the output directory, and the list in it. */
static enum brv_status put_text(struct tree *t, const struct buffer *text)
{
	if (mkdir(t->out, 0777) != 0 && errno != EEXIST)
		return fail_errno(t->err, "cannot create the directory");
	char *list = path_join(t->out, MANIFEST_NAME);
	if (!list)
		return tree_no_memory(t);
	enum output found = OUTPUT_OTHER, now = OUTPUT_OTHER;
	enum brv_status status = look_at_output(t->out, list, text, &found, t->err);
	if (status == BRV_OK && found == OUTPUT_OTHER && !t->options->force)
		status = fail(t->err, BRV_USAGE, "the directory is there already and holds something else; -f writes into it");
	else if (status == BRV_OK && found != OUTPUT_SAME)
		status = outfile_put(list, text->data, text->nbytes, t->options->force, t->err);
	/* Another job may have been quicker, with the same list. */
	if (status == BRV_USAGE && found == OUTPUT_EMPTY && look_at_output(t->out, list, text, &now, NULL) == BRV_OK && now == OUTPUT_SAME)
		status = BRV_OK;
	free(list);
	return status;
}

enum brv_status tree_put_list(struct tree *t)
{
	struct buffer text = { 0 };
	enum brv_status status = make_list(t, &text);
	if (status == BRV_OK) {
		t->report->about_output = true;
		status = put_text(t, &text);
	}
	buffer_free(&text);
	return status;
}

enum brv_status tree_make_directories(struct tree *t)
{
	for (size_t i = 0; i < t->walk.count; i++) {
		if (!t->walk.entry[i].directory)
			continue;
		char *path = tree_place(t, t->out, t->walk.entry[i].path, "");
		if (!path)
			return tree_no_memory(t);
		const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
		free(path);
		if (!made)
			return fail_errno(t->err, "cannot create the directory");
	}
	return BRV_OK;
}

/* Whether the output has the file already: 1; 0: it has none; -1: another one. */
static int is_carried(const char *path, const struct manifest_entry *entry)
{
	uint64_t nbytes, sum;
	enum brv_status status;
	bool writing;
	struct stat st;
	if (stat(path, &st) != 0 && errno == ENOENT)
		return 0;
	const int fd = carry_open(path, &status, NULL);
	if (fd < 0)
		return -1;
	status = carry(fd, NULL, &nbytes, &sum, &writing, NULL);
	close(fd);
	return status == BRV_OK && nbytes == entry->nbytes && sum == entry->sum ? 1 : -1;
}

static enum brv_status copy_to(struct tree *t, const char *from, const char *to, const struct manifest_entry *entry)
{
	uint64_t nbytes, sum;
	enum brv_status status;
	bool writing = false;
	struct outfile out;
	const int fd = carry_open(from, &status, t->err);
	if (fd < 0)
		return status;
	status = outfile_open(&out, to, t->options->force, fd, t->err);
	if (status == BRV_OK)
		status = carry(fd, &out, &nbytes, &sum, &writing, t->err);
	if (status == BRV_OK && (nbytes != entry->nbytes || sum != entry->sum))
		status = fail(t->err, BRV_INPUT, "the file changed while it was copied");
	if (status == BRV_OK)
		status = outfile_commit(&out, nbytes, t->err);
	outfile_abandon(&out);
	close(fd);
	return status;
}

enum brv_status tree_copy_files(struct tree *t)
{
	for (size_t i = 0; i < t->manifest.count; i++) {
		const struct manifest_entry *entry = &t->manifest.entry[i];
		if (entry->kind != MANIFEST_FILE)
			continue;
		char *from = path_join(t->in, entry->path), *to = tree_place(t, t->out, entry->path, "");
		enum brv_status status = BRV_OK;
		const int found = from && to ? is_carried(to, entry) : 0;
		if (!from || !to)
			status = tree_no_memory(t);
		else if (found < 0 && !t->options->force)
			status = fail(t->err, BRV_USAGE, "is there already, with other contents; -f overwrites it");
		else if (found <= 0)
			status = copy_to(t, from, to, entry);
		free(from);
		free(to);
		TRY(status);
		t->report->other_files++;
	}
	return BRV_OK;
}

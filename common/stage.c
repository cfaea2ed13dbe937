/* stage.c: a directory that appears whole or not at all (stage.h). SPDX-License-Identifier: Apache-2.0 */
#include "common/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/walk.h"

enum { MAX_TRIES = 16 };

/* 1: there is nothing in it, 0: there is, -1: errno. */
static int is_empty(const char *path)
{
	DIR *dir = opendir(path);
	int empty = 1;
	if (!dir)
		return -1;
	for (const struct dirent *entry; empty && (entry = readdir(dir));)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	closedir(dir);
	return empty;
}

/* Where the files go: to a temporary, into an empty directory (which may be a mount, or somebody's with rights of its own), among others. */
enum way { APART, EMPTY, AMONG };

static enum brv_status look_at_target(const char *path, bool force, enum way *way, struct error *err)
{
	struct stat st;
	*way = APART;
	if (stat(path, &st) != 0)
		return errno == ENOENT ? BRV_OK : fail_errno(err, "cannot look at the output directory");
	if (!S_ISDIR(st.st_mode))
		return fail(err, BRV_USAGE, "the output is there already and is no directory");
	const int empty = is_empty(path);
	if (empty < 0)
		return fail_errno(err, "cannot look into the output directory");
	if (!empty && !force)
		return fail(err, BRV_USAGE, "the directory is there already and is not empty; -f writes into it");
	*way = empty ? EMPTY : AMONG;
	return BRV_OK;
}

/* 0, or an errno; EAGAIN: try another name. */
static int make_temporary(struct stage *stage)
{
	free(stage->temporary);
	stage->temporary = temporary_name(stage->target);
	if (!stage->temporary)
		return ENOMEM;
	if (mkdir(stage->temporary, 0777) != 0)
		return errno == EEXIST ? EAGAIN : errno;
	stage->made[0] = strdup(stage->temporary);
	stage->used = stage->doomed.count = stage->made[0] != NULL;
	stage->fd = TEMP_FAILURE_RETRY(open(stage->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (stage->doomed.count && stage->fd >= 0 && temporary_lock(stage->fd))
		return 0;
	const int number = !stage->doomed.count ? ENOMEM : stage->fd < 0 ? errno : EAGAIN;
	rmdir(stage->temporary);
	if (stage->fd >= 0)
		close(stage->fd);
	free(stage->made[0]);
	stage->fd = -1, stage->used = stage->doomed.count = 0;
	return number;
}

static enum brv_status open_stage(struct stage *stage, const char *path, bool force, struct error *err)
{
	enum way way;
	int number = EAGAIN;

	TRY(look_at_target(path, force, &way, err));
	stage->removes = way != AMONG;
	if (way != APART)
		return BRV_OK;
	temporary_remove_stale(stage->target);
	for (int i = 0; i < MAX_TRIES && number == EAGAIN; i++)
		number = make_temporary(stage);
	if (number == 0)
		return BRV_OK;
	free(stage->temporary);
	stage->temporary = NULL;
	errno = number;
	return fail_errno(err, "cannot create the output directory");
}

enum brv_status stage_open(struct stage *stage, const char *path, size_t entries, bool force, struct error *err)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	*stage = (struct stage){ .target = strndup(path, n), .fd = -1, .capacity = entries + 1 };
	stage->made = calloc(stage->capacity, sizeof(*stage->made));
	stage->doomed.path = stage->made;
	if (!stage->target || !stage->made) {
		stage_abandon(stage);
		return fail(err, BRV_MEMORY, "no memory for an output directory");
	}
	doom_list(&stage->doomed);
	enum brv_status status = open_stage(stage, path, force, err);
	if (status != BRV_OK)
		stage_abandon(stage);
	return status;
}

static char *remember(struct stage *stage, char *path)
{
	if (!path || stage->used == stage->capacity) {
		free(path);
		return NULL;
	}
	stage->made[stage->used++] = path;
	if (stage->removes)
		stage->doomed.count = stage->used;
	return path;
}

const char *stage_file(struct stage *stage, const char *relative)
{
	return remember(stage, path_join(stage->temporary ? stage->temporary : stage->target, relative));
}

enum brv_status stage_directory(struct stage *stage, const char *relative, struct error *err)
{
	const char *path = stage_file(stage, relative);
	struct stat st;
	if (!path)
		return fail(err, BRV_MEMORY, "no memory for a path");
	if (mkdir(path, 0777) == 0 || (errno == EEXIST && !stage->temporary && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return BRV_OK;
	return fail_errno(err, "cannot create a directory");
}

enum brv_status stage_commit(struct stage *stage, struct error *err)
{
	enum brv_status status = BRV_OK;
	if (!stage->temporary) {
		stage->doomed.count = 0;
	} else {
		(void)!TEMP_FAILURE_RETRY(fsync(stage->fd)); /* not every file system can, of a directory */
		if (rename(stage->temporary, stage->target) == 0) {
			stage->doomed.count = 0;
			sync_directory_of(stage->target);
		} else if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
			status = fail(err, BRV_USAGE, "the directory appeared meanwhile; -f writes into it");
		} else {
			status = fail_errno(err, "cannot rename the output directory");
		}
	}
	stage_abandon(stage);
	return status;
}

void stage_abandon(struct stage *stage)
{
	for (size_t i = stage->doomed.count; i-- > 0;)
		(void)!remove(stage->made[i]);
	doom_list(NULL);
	for (size_t i = 0; stage->made && i < stage->used; i++)
		free(stage->made[i]);
	if (stage->fd >= 0)
		close(stage->fd);
	free(stage->made);
	free(stage->temporary);
	free(stage->target);
	*stage = (struct stage){ .fd = -1 };
}

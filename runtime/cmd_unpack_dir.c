/* cmd_unpack_dir.c: `brevis unpack DIR`: a checkpoint directory back, file by file, whole or not at all. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/stage.h"
#include "common/text.h"
#include "common/walk.h"
#include "runtime/cli_dir.h"
#include "runtime/cmd_unpack.h"

struct totals {
	uint64_t archives, files, archive_nbytes, file_nbytes;
};

static enum brv_status copy_file(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry, const char *path, bool force)
{
	struct outfile out;
	uint64_t nbytes;
	cli->about = cli->target = path;
	TRY(outfile_open(&out, path, force, -1, &cli->err));
	out.drop_cache = cli->drop_cache;
	enum brv_status status = cli_dir_carry(cli, dir, entry, &out, &nbytes);
	if (status == BRV_OK) {
		cli->about = path;
		status = outfile_commit(&out, nbytes, &cli->err);
	}
	outfile_abandon(&out);
	return status;
}

static enum brv_status unpack_entry(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry, struct stage *stage,
				    struct totals *totals)
{
	if (entry->kind == MANIFEST_DIRECTORY) {
		cli->about = cli->target = stage->target;
		return stage_directory(stage, entry->path, &cli->err);
	}
	if (entry->kind == MANIFEST_ARCHIVE)
		TRY(cli_dir_open_archive(cli, dir, entry));
	const char *path = stage_file(stage, entry->path);
	if (!path)
		return fail(&cli->err, BRV_MEMORY, "no memory for a path");
	if (entry->kind == MANIFEST_FILE) {
		totals->files++;
		return copy_file(cli, dir, entry, path, cli->force);
	}
	brv_info info;
	brv_get_info(cli->archive, &info);
	totals->archives++, totals->archive_nbytes += info.archive_nbytes, totals->file_nbytes += info.file_nbytes;
	return unpack_archive(cli, path, cli->force);
}

static void report(const struct cli *cli, const struct cli_dir *dir, const char *output, const struct totals *totals)
{
	if (cli->json) {
		printf("{\"archive\": ");
		text_put_json(stdout, dir->path, strlen(dir->path));
		printf(", \"output\": ");
		text_put_json(stdout, output, strlen(output));
		printf(", \"archives\": %llu, \"other_files\": %llu, \"archive_nbytes\": %llu, \"file_nbytes\": %llu}\n",
		       (unsigned long long)totals->archives, (unsigned long long)totals->files, (unsigned long long)totals->archive_nbytes,
		       (unsigned long long)totals->file_nbytes);
	} else if (cli->verbose) {
		fprintf(stderr, "%s: %llu archives, %llu other files -> %s: %llu bytes from %llu\n", dir->path,
			(unsigned long long)totals->archives, (unsigned long long)totals->files, output,
			(unsigned long long)totals->file_nbytes, (unsigned long long)totals->archive_nbytes);
	}
}

static enum brv_status unpack_entries(struct cli *cli, const struct cli_dir *dir, const char *output)
{
	struct totals totals = { 0 };
	struct stage stage;
	const bool json = cli->json, verbose = cli->verbose;
	enum brv_status status = BRV_OK;

	cli->about = cli->target = output;
	struct stat in, there;
	if (stat(dir->path, &in) == 0 && stat(output, &there) == 0 && in.st_dev == there.st_dev && in.st_ino == there.st_ino)
		return fail(&cli->err, BRV_USAGE, "input and output are the same directory");
	TRY(stage_open(&stage, output, dir->manifest.count, cli->force, &cli->err));
	cli->no_progress |= json;
	cli->json = cli->verbose = false; /* of single archives nothing is said */
	for (size_t i = 0; status == BRV_OK && i < dir->manifest.count; i++)
		status = unpack_entry(cli, dir, &dir->manifest.entry[i], &stage, &totals);
	cli->json = json, cli->verbose = verbose;
	if (status != BRV_OK) {
		/* The stage's paths go with it, and an unfinished directory is nobody's to look at. */
		if (cli->about == cli->target && stage.temporary) {
			cli->about = output;
		} else if (cli->about == cli->target) {
			free(cli->entry_path);
			cli->about = cli->entry_path = strdup(cli->target);
		}
		stage_abandon(&stage);
		return status;
	}
	cli->about = output;
	TRY(stage_commit(&stage, &cli->err));
	report(cli, dir, output, &totals);
	return BRV_OK;
}

/* "model.brv" -> "model"; slashes at the end do not count. NULL: it has no such name; malloc'ed. */
static char *default_output(const char *path)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	char *name = strndup(path, n);
	if (name && has_suffix(name, MANIFEST_SUFFIX) && n > strlen(MANIFEST_SUFFIX) && name[n - strlen(MANIFEST_SUFFIX) - 1] != '/') {
		name[n - strlen(MANIFEST_SUFFIX)] = 0;
		return name;
	}
	free(name);
	return NULL;
}

enum brv_status unpack_directory(struct cli *cli, const char *path)
{
	struct cli_dir dir;
	cli->about = path;
	if (cli->output && strcmp(cli->output, "-") == 0)
		return fail(&cli->err, BRV_USAGE, "a directory cannot go to stdout: use -o DIRECTORY");
	cli->owned = cli->output ? strdup(cli->output) : default_output(path);
	if (!cli->owned)
		return cli->output ? fail(&cli->err, BRV_MEMORY, "out of memory") : fail(&cli->err, BRV_USAGE, "its name does not end in .brv: use -o DIRECTORY");
	TRY(cli_dir_open(cli, path, &dir));
	const enum brv_status status = unpack_entries(cli, &dir, cli->owned);
	cli_dir_close(&dir);
	return status;
}

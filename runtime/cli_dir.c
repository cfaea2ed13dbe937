/* cli_dir.c: a compressed checkpoint directory, as the commands see it (cli_dir.h). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/carry.h"
#include "common/walk.h"

bool is_directory(const char *path)
{
	struct stat st;
	return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

enum brv_status cli_dir_open(struct cli *cli, const char *path, struct cli_dir *out)
{
	*out = (struct cli_dir){ .path = path };
	cli->about = path;
	const enum brv_status status = manifest_of_directory(path, &out->manifest, &out->has_manifest, &cli->err);
	if (status != BRV_OK) /* what brevis-synth would call bad input is a bad argument here */
		return status == BRV_INPUT ? BRV_USAGE : status;
	for (size_t i = 0; i < out->manifest.count; i++)
		out->narchives += out->manifest.entry[i].kind == MANIFEST_ARCHIVE;
	if (out->narchives || out->has_manifest)
		return BRV_OK;
	cli_dir_close(out);
	return fail(&cli->err, BRV_USAGE, "a directory that holds no archive (.brv)");
}

void cli_dir_close(struct cli_dir *dir) { manifest_free(&dir->manifest); }

/* The place of an entry as cli->entry_path, and what messages are about. */
static enum brv_status locate_entry(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry)
{
	struct stat st;
	free(cli->entry_path);
	cli->entry_path = path_join(dir->path, entry->stored);
	if (!cli->entry_path)
		return fail(&cli->err, BRV_MEMORY, "no memory for a path");
	cli->about = cli->entry_path;
	if (stat(cli->entry_path, &st) != 0 && errno == ENOENT)
		return fail(&cli->err, BRV_DAMAGED, "is missing: the directory is not complete");
	if (stat(cli->entry_path, &st) == 0 && !S_ISREG(st.st_mode))
		return fail(&cli->err, BRV_DAMAGED, "is no file");
	return BRV_OK;
}

enum brv_status cli_dir_open_archive(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry)
{
	brv_info info;
	cli_close_archive(cli);
	TRY(locate_entry(cli, dir, entry));
	TRY(cli_open(cli, cli->entry_path));
	brv_get_info(cli->archive, &info);
	if (entry->nbytes != UINT64_MAX && info.file_nbytes != entry->nbytes)
		return fail(&cli->err, BRV_DAMAGED, "stands for a file of %llu bytes, but " MANIFEST_NAME " says %llu",
			    (unsigned long long)info.file_nbytes, (unsigned long long)entry->nbytes);
	return BRV_OK;
}

enum brv_status cli_dir_carry(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry, struct outfile *out,
			      uint64_t *nbytes)
{
	uint64_t sum;
	enum brv_status status;
	bool writing;

	TRY(locate_entry(cli, dir, entry));
	const int fd = carry_open(cli->entry_path, &status, &cli->err);
	if (fd < 0)
		return status;
	status = carry(fd, out, nbytes, &sum, &writing, &cli->err);
	close(fd);
	if (status != BRV_OK && writing)
		cli->about = cli->target;
	if (status == BRV_OK && entry->has_sum && (*nbytes != entry->nbytes || sum != entry->sum))
		return fail(&cli->err, BRV_DAMAGED, "is not the file that " MANIFEST_NAME " lists: %s",
			    *nbytes != entry->nbytes ? "its size differs" : "its checksum differs");
	return status;
}

/* The argument as a name; if no tensor has it, as a name and rows. *bracket: where the rows begin or NULL. */
static enum brv_status find_tensor(struct cli *cli, char *argument, uint64_t *index, const char **bracket)
{
	char *open = bracket ? strrchr(argument, '[') : NULL;
	if (bracket)
		*bracket = NULL;
	enum brv_status status = cli_find(cli, argument, index);
	if (status != BRV_NOTFOUND || !open)
		return status;
	*open = 0;
	status = cli_find(cli, argument, index);
	*open = '[';
	*bracket = open;
	return status;
}

static enum brv_status find_in_directory(struct cli *cli, const struct cli_dir *dir, char *argument, uint64_t *index,
					  const char **bracket)
{
	for (size_t i = 0; i < dir->manifest.count; i++) {
		const struct manifest_entry *entry = &dir->manifest.entry[i];
		if (entry->kind != MANIFEST_ARCHIVE)
			continue;
		TRY(cli_dir_open_archive(cli, dir, entry));
		const enum brv_status status = find_tensor(cli, argument, index, bracket);
		if (status != BRV_NOTFOUND)
			return status;
	}
	cli->about = dir->path;
	return fail(&cli->err, BRV_NOTFOUND, "none of its %zu archives has a tensor \"%.150s\"", dir->narchives, argument);
}

enum brv_status cli_open_tensor(struct cli *cli, const char *file, char *argument, uint64_t *index, const char **bracket)
{
	struct cli_dir dir;
	if (!is_directory(file)) {
		TRY(cli_open(cli, file));
		return find_tensor(cli, argument, index, bracket);
	}
	TRY(cli_dir_open(cli, file, &dir));
	const enum brv_status status = find_in_directory(cli, &dir, argument, index, bracket);
	cli_dir_close(&dir);
	return status;
}

/* cmd_unpack.c: `brevis unpack`: the checkpoint back as a file. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/text.h"
#include "runtime/cli_dir.h"
#include "runtime/cmd_unpack.h"

static enum brv_status write_header(struct cli *cli, struct outfile *out, const brv_info *info)
{
	uint8_t size[8];
	store_u64(size, info->header_nbytes);
	TRY(outfile_reserve(out, info->file_nbytes, &cli->err));
	TRY(outfile_write(out, size, sizeof size, 0, &cli->err));
	return outfile_write(out, brv_header(cli->archive), info->header_nbytes, 8, &cli->err);
}

/* Header, data, commit; cli->about is the file that a failure is about. */
static enum brv_status write_file(struct cli *cli, struct outfile *out, const brv_info *info)
{
	cli->about = cli->target;
	TRY(write_header(cli, out, info));
	cli->about = cli->file;
	TRY(cli_copy(cli, out, 0, info->data_nbytes, 8 + info->header_nbytes));
	cli->about = cli->target;
	return outfile_commit(out, info->file_nbytes, &cli->err);
}

static void report_unpacked(const struct cli *cli, const brv_info *info)
{
	if (cli->json && strcmp(cli->target, "stdout") != 0) {
		printf("{\"archive\": ");
		text_put_json(stdout, cli->file, strlen(cli->file));
		printf(", \"output\": ");
		text_put_json(stdout, cli->target, strlen(cli->target));
		printf(", \"archive_nbytes\": %llu, \"file_nbytes\": %llu}\n", (unsigned long long)info->archive_nbytes,
		       (unsigned long long)info->file_nbytes);
	} else if (cli->verbose) {
		fprintf(stderr, "%s: %llu bytes, %llu tensors -> %s: %llu bytes\n", cli->file, (unsigned long long)info->archive_nbytes,
			(unsigned long long)info->tensor_count, cli->target, (unsigned long long)info->file_nbytes);
	}
}

enum brv_status unpack_archive(struct cli *cli, const char *path, bool force)
{
	struct outfile out;
	brv_info info;
	bool to_stdout = strcmp(path, "-") == 0;
	cli->about = cli->target = to_stdout ? "stdout" : path;
	if (to_stdout && isatty(STDOUT_FILENO))
		return fail(&cli->err, BRV_USAGE, "will not write a checkpoint to a terminal: use -o FILE");
	TRY(outfile_open(&out, path, force, cli->fd, &cli->err));
	out.drop_cache = cli->drop_cache;
	brv_get_info(cli->archive, &info);
	progress_start(&cli->progress, cli->file, cli_shows_progress(cli));
	enum brv_status status = write_file(cli, &out, &info);
	outfile_abandon(&out);
	progress_end(&cli->progress);
	if (status == BRV_OK)
		report_unpacked(cli, &info);
	return status;
}

enum brv_status cmd_unpack(struct cli *cli, int nargs, char **args)
{
	(void)nargs;
	if (is_directory(args[0]))
		return unpack_directory(cli, args[0]);
	TRY(cli_open(cli, args[0]));
	cli->owned = cli->output ? strdup(cli->output) : cli_original_name(args[0]);
	return cli->owned ? unpack_archive(cli, cli->owned, cli->force) : fail(&cli->err, BRV_MEMORY, "out of memory");
}

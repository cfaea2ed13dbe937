/* cli.c: what the commands of `brevis` share (cli.h). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/manifest.h"
#include "common/text.h"
#include "runtime/salvage.h"

/* The library's status and text as the command's. */
static enum brv_status take(struct cli *cli, brv_status_code status, const brv_error *error)
{
	if (status != BRV_SUCCESS)
		memcpy(cli->err.text, error->text, sizeof cli->err.text);
	return (enum brv_status)status;
}

static enum brv_status start_pool(struct cli *cli)
{
	const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = cli->threads, .numa = cli->numa };
	brv_error error;
	char text[256];
	TRY(take(cli, brv_pool_create_with(&options, &cli->pool, &error), &error));
	if (cli->verbose) {
		brv_pool_describe(cli->pool, text, sizeof text);
		fprintf(stderr, "%s\n", text);
	}
	return BRV_OK;
}

enum brv_status cli_open(struct cli *cli, const char *file)
{
	const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = cli->memory_limit,
				      .drop_cache = cli->drop_cache };
	brv_error error;
	bool is_stdin = strcmp(file, "-") == 0;
	cli->file = cli->about = is_stdin ? "stdin" : file;
	cli->fd = is_stdin ? STDIN_FILENO : TEMP_FAILURE_RETRY(open(file, O_RDONLY | O_CLOEXEC));
	if (cli->fd < 0)
		return fail(&cli->err, BRV_IO, "cannot open it: %s", strerror(errno));
	TRY(take(cli, brv_open_fd(cli->fd, &options, &cli->archive, &error), &error));
	return cli->pool ? BRV_OK : start_pool(cli);
}

void cli_close_archive(struct cli *cli)
{
	progress_end(&cli->progress);
	brv_close(cli->archive);
	if (cli->fd > STDIN_FILENO)
		close(cli->fd);
	cli->archive = NULL;
	cli->fd = -1;
}

void cli_close(struct cli *cli)
{
	cli_close_archive(cli);
	brv_pool_free(cli->pool);
	free(cli->entry_path);
	cli->pool = NULL;
	cli->entry_path = NULL;
}

bool cli_shows_progress(const struct cli *cli) { return !cli->quiet && !cli->no_progress && !cli->json; }

void cli_complain(const char *about, const char *text) { text_complain("brevis", about, text); }

enum brv_status cli_find(struct cli *cli, const char *name, uint64_t *index)
{
	brv_error error;
	return take(cli, brv_find_tensor(cli->archive, name, strlen(name), index, &error), &error);
}

char *cli_original_name(const char *archive)
{
	return strcmp(archive, "-") == 0 ? strdup(archive) : manifest_original_name(archive);
}

struct copy {
	struct outfile *out;
	uint64_t from, to;              /* what byte `from` of the data region becomes in the file */
	atomic_bool failed;             /* writing, and not decoding */
};

/* decode_sink_fn: each thread writes what it has decoded while it is still in its cache. */
static enum brv_status write_part(void *context, const void *bytes, size_t nbytes, uint64_t offset, struct error *err)
{
	struct copy *copy = context;
	const enum brv_status status = outfile_write(copy->out, bytes, nbytes, copy->to + (offset - copy->from), err);
	if (status != BRV_OK)
		atomic_store(&copy->failed, true);
	return status;
}

enum brv_status cli_copy(struct cli *cli, struct outfile *out, uint64_t offset, uint64_t nbytes, uint64_t out_offset)
{
	if (cli->keep_going)
		return salvage_copy(cli, out, offset, nbytes, out_offset);
	struct copy copy = { .out = out, .from = offset, .to = out_offset };
	const struct decode_range range = { .offset = offset, .nbytes = nbytes };
	const struct decode_call call = {
		.range = &range, .nranges = 1, .sink = write_part, .sink_context = &copy, .ordered = out->sequential, .pool = cli->pool,
		.progress = progress_update, .progress_context = &cli->progress,
	};
	const enum brv_status status = decode_data(cli->archive, &call, &cli->err);
	if (atomic_load(&copy.failed))
		cli->about = cli->target;
	return status;
}

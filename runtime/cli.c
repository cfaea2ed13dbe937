/* cli.c: what the commands of `brevis` share (cli.h). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/place.h"

enum { WINDOW_NBYTES = 32 << 20, MIN_WINDOW_NBYTES = 1 << 20 };

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
	cli->fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
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

enum brv_status cli_find(struct cli *cli, const char *name, uint64_t *index)
{
	brv_error error;
	return take(cli, brv_find_tensor(cli->archive, name, strlen(name), index, &error), &error);
}

brv_call cli_call(struct cli *cli)
{
	return (brv_call){
		.struct_nbytes = sizeof(brv_call), .pool = cli->pool, .progress = progress_update, .progress_context = &cli->progress
	};
}

/* Two windows of output: one is written while the next is decoded, if there is more than one thread. */
struct copy {
	struct outfile *out;
	uint8_t *window[2];
	size_t window_nbytes;
	pthread_t writer;
	bool writing;
	const uint8_t *bytes;           /* what the writer writes */
	size_t nbytes;
	uint64_t offset;
	enum brv_status status;
	struct error err;
};

static void *write_window(void *context)
{
	struct copy *copy = context;
	copy->status = outfile_write(copy->out, copy->bytes, copy->nbytes, copy->offset, &copy->err);
	return NULL;
}

static enum brv_status finish_write(struct cli *cli, struct copy *copy)
{
	if (copy->writing)
		pthread_join(copy->writer, NULL);
	copy->writing = false;
	if (copy->status != BRV_OK) {
		cli->err = copy->err;
		cli->about = cli->target;
	}
	return copy->status;
}

static enum brv_status start_write(struct cli *cli, struct copy *copy, const uint8_t *bytes, size_t nbytes, uint64_t offset)
{
	TRY(finish_write(cli, copy));
	copy->bytes = bytes;
	copy->nbytes = nbytes;
	copy->offset = offset;
	if (copy->window[1] && pthread_create(&copy->writer, NULL, write_window, copy) == 0) {
		copy->writing = true;
		return BRV_OK;
	}
	write_window(copy);
	return finish_write(cli, copy);
}

static enum brv_status copy_windows(struct cli *cli, struct copy *copy, uint64_t offset, uint64_t nbytes, uint64_t out_offset)
{
	brv_call call = cli_call(cli);
	brv_error error;
	call.progress = NULL; /* a call sees a window only */
	for (uint64_t done = 0, turn = 0; done < nbytes; turn++) {
		size_t part = MIN(nbytes - done, (uint64_t)copy->window_nbytes);
		uint8_t *window = copy->window[1] ? copy->window[turn % 2] : copy->window[0];
		TRY(take(cli, brv_decode_data(cli->archive, offset + done, window, part, &call, &error), &error));
		TRY(start_write(cli, copy, window, part, out_offset + done));
		done += part;
		progress_update(&cli->progress, done, nbytes);
	}
	return finish_write(cli, copy);
}

enum brv_status cli_copy(struct cli *cli, struct outfile *out, uint64_t offset, uint64_t nbytes, uint64_t out_offset)
{
	uint64_t limit = cli->memory_limit ? MAX(cli->memory_limit / 8, (uint64_t)MIN_WINDOW_NBYTES) : WINDOW_NBYTES;
	struct copy copy = { .out = out, .window_nbytes = MIN(MAX(nbytes, (uint64_t)1), MIN(limit, (uint64_t)WINDOW_NBYTES)) };
	bool overlap = brv_pool_threads(cli->pool) > 1 && nbytes > copy.window_nbytes;
	copy.window[0] = alloc_big(copy.window_nbytes);
	copy.window[1] = overlap ? alloc_big(copy.window_nbytes) : NULL;
	enum brv_status status = copy.window[0] ? copy_windows(cli, &copy, offset, nbytes, out_offset) :
						  fail(&cli->err, BRV_MEMORY, "no memory for a window of output");
	if (copy.writing)
		pthread_join(copy.writer, NULL);
	free(copy.window[0]);
	free(copy.window[1]);
	return status;
}

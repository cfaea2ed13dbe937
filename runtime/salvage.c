/* salvage.c: `--keep-going`: what is left of a damaged archive.
 *
 * A window is decoded as always; only if that finds damage, its chunks are decoded one by one, and those that fail become zeros. Chunks have
 * checksums of their own, so what is not reported is right. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/salvage.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"
#include "runtime/object.h"

enum { MIN_WINDOW_NBYTES = 1 << 20 };

/* A pipe cannot be read twice: what is left of it is kept in a file. */
enum brv_status salvage_begin(struct cli *cli)
{
	struct source *source = &cli->archive->source;
	return source->sequential ? source_spool(source, cli->archive->view.prelude.archive_nbytes, &cli->err) : BRV_OK;
}

/* "brevis: FILE: tensor "NAME": bytes LOW to HIGH of SIZE: why". low and high are the tensor's. */
static void report(struct cli *cli, uint64_t index, uint64_t low, uint64_t high, const char *why)
{
	brv_tensor tensor;
	brv_get_tensor(cli->archive, index, &tensor, NULL);
	progress_end(&cli->progress);
	fputs("brevis: ", stderr);
	text_put_safe(stderr, cli->file, strlen(cli->file));
	fputs(": tensor \"", stderr);
	text_put_safe(stderr, tensor.name, tensor.name_nbytes);
	fprintf(stderr, "\": bytes %llu to %llu of %llu are lost: ", (unsigned long long)low, (unsigned long long)(high - 1),
		(unsigned long long)tensor.data_nbytes);
	text_put_safe(stderr, why, strlen(why));
	putc('\n', stderr);
	cli->lost_nbytes += high - low;
}

static enum brv_status decode_part(struct cli *cli, uint64_t offset, uint8_t *dst, uint64_t nbytes, bool team, struct error *err)
{
	const struct decode_range range = { .offset = offset, .nbytes = nbytes, .dst = dst };
	const struct decode_call call = { .range = &range, .nranges = 1, .pool = team ? cli->pool : NULL };
	return decode_data(cli->archive, &call, err);
}

/* Chunk by chunk; status other than damage ends it. */
static enum brv_status salvage_chunks(struct cli *cli, uint64_t offset, uint8_t *dst, uint64_t nbytes)
{
	for (uint64_t at = offset, end = offset + nbytes, next; at < end; at = next) {
		uint64_t index = tensor_at(cli->archive, at);
		const struct stream *stream = tensor_stream(cli->archive, index);
		uint64_t chunk_nbytes = stream->chunk_words * word_nbytes(stream->width), in_tensor = at - stream->data_offset;
		next = MIN(stream->data_offset + MIN((in_tensor / chunk_nbytes + 1) * chunk_nbytes, stream->data_nbytes), end);
		uint8_t *part = dst ? dst + (at - offset) : NULL;
		struct error err;
		enum brv_status status = decode_part(cli, at, part, next - at, false, &err);
		if (status == BRV_DAMAGED) {
			report(cli, index, in_tensor, next - stream->data_offset, err.text);
			if (part)
				memset(part, 0, next - at);
		} else if (status != BRV_OK) {
			cli->err = err;
			return status;
		}
	}
	return BRV_OK;
}

enum brv_status salvage_window(struct cli *cli, uint64_t offset, uint8_t *dst, uint64_t nbytes)
{
	enum brv_status status = decode_part(cli, offset, dst, nbytes, true, &cli->err);
	return status == BRV_DAMAGED ? salvage_chunks(cli, offset, dst, nbytes) : status;
}

enum brv_status salvage_copy(struct cli *cli, struct outfile *out, uint64_t offset, uint64_t nbytes, uint64_t out_offset)
{
	uint64_t most = cli->memory_limit ? MAX(cli->memory_limit / 8, (uint64_t)MIN_WINDOW_NBYTES) : SALVAGE_NBYTES;
	uint64_t window_nbytes = MIN(MAX(nbytes, (uint64_t)1), MIN(most, (uint64_t)SALVAGE_NBYTES));
	uint8_t *window = malloc(window_nbytes);
	enum brv_status status = window ? BRV_OK : fail(&cli->err, BRV_MEMORY, "no memory for a window of output");
	for (uint64_t done = 0, part; status == BRV_OK && done < nbytes; done += part) {
		part = MIN(nbytes - done, window_nbytes);
		status = salvage_window(cli, offset + done, window, part);
		if (status != BRV_OK)
			break;
		status = outfile_write(out, window, part, out_offset + done, &cli->err);
		if (status != BRV_OK)
			cli->about = cli->target;
		progress_update(&cli->progress, done + part, nbytes);
	}
	free(window);
	return status;
}

enum brv_status salvage_end(struct cli *cli, uint64_t nbytes)
{
	if (cli->lost_nbytes == 0)
		return BRV_OK;
	cli->about = cli->file;
	return fail(&cli->err, BRV_DAMAGED, "%llu of %llu bytes are lost", (unsigned long long)cli->lost_nbytes, (unsigned long long)nbytes);
}

/* load_checkpoint.c: a whole checkpoint from an archive into one piece of memory: all CPUs, a progress line, Ctrl-C stops it.
 *
 *     cc load_checkpoint.c $(pkg-config --cflags --libs brevis) -o load_checkpoint
 *     ./load_checkpoint model.brv
 *
 * Each tensor begins on a 64-byte boundary, as vector loads like it. All are asked for in one call: many small tensors then
 * keep the threads as busy as a few large ones do. SPDX-License-Identifier: Apache-2.0 */
#include <brevis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "adler32.h"

enum { ALIGN = 64 };

static volatile int interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* The library calls this from its threads, but never from two at once. */
static int show_progress(void *context, uint64_t done_nbytes, uint64_t total_nbytes)
{
	(void)context;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r%3.0f %%%s", 100.0 * (double)done_nbytes / (double)total_nbytes, done_nbytes == total_nbytes ? "\n" : "");
	return 0; /* anything else would cancel */
}

static uint64_t padded(uint64_t nbytes) { return (nbytes + ALIGN - 1) / ALIGN * ALIGN; }

/* One allocation for all tensors, and requests that say which bytes go where in it. NULL: no memory. */
static void *place_tensors(const brv_archive *archive, brv_request *request, uint64_t count)
{
	brv_tensor tensor;
	uint64_t total = ALIGN, at = 0;
	for (uint64_t i = 0; i < count; i++) {
		brv_get_tensor(archive, i, &tensor, NULL);
		total += padded(tensor.data_nbytes);
	}
	char *memory = aligned_alloc(ALIGN, total);
	for (uint64_t i = 0; memory && i < count; i++) {
		brv_get_tensor(archive, i, &tensor, NULL);
		request[i] = (brv_request){ .tensor = i, .offset = 0, .nbytes = tensor.data_nbytes, .dst = memory + at };
		at += padded(tensor.data_nbytes);
	}
	return memory;
}

static void print_tensors(const brv_archive *archive, const brv_request *request, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		brv_tensor tensor;
		brv_get_tensor(archive, i, &tensor, NULL);
		printf("%08" PRIx32 " %12" PRIu64 " bytes  %s [", adler32(request[i].dst, request[i].nbytes), tensor.data_nbytes, tensor.dtype);
		for (size_t k = 0; k < tensor.ndim; k++)
			printf("%s%" PRIu64, k ? "," : "", tensor.shape[k]);
		printf("]  %.*s\n", (int)tensor.name_nbytes, tensor.name);
	}
}

/* Decodes all tensors and prints them. */
static brv_status_code load(const brv_archive *archive, brv_pool *pool, brv_error *error)
{
	const brv_call call = { .struct_nbytes = sizeof call, .pool = pool, .progress = show_progress, .cancel = &interrupted };
	brv_status_code status = BRV_E_MEMORY;
	brv_info info;
	brv_get_info(archive, &info);
	brv_request *request = calloc(info.tensor_count + 1, sizeof *request);
	void *memory = request ? place_tensors(archive, request, info.tensor_count) : NULL;
	if (memory)
		status = brv_decode_list(archive, request, info.tensor_count, &call, error);
	else
		snprintf(error->text, sizeof error->text, "no memory for %" PRIu64 " bytes of tensors", info.data_nbytes);
	if (status == BRV_SUCCESS)
		print_tensors(archive, request, info.tensor_count);
	free(memory);
	free(request);
	return status;
}

int main(int argc, char **argv)
{
	/* A second Ctrl-C ends the program at once. */
	const struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
	brv_archive *archive = NULL;
	brv_pool *pool = NULL;
	brv_error error;
	if (argc != 2) {
		fprintf(stderr, "usage: load_checkpoint ARCHIVE.brv\n");
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	brv_status_code status = brv_open_path(argv[1], NULL, &archive, &error);
	if (status == BRV_SUCCESS)
		status = brv_pool_create(0, &pool, &error);
	if (status == BRV_SUCCESS)
		status = load(archive, pool, &error);
	if (status != BRV_SUCCESS)
		fprintf(stderr, "load_checkpoint: %s: %s\n", argv[1], error.text);
	brv_pool_free(pool);
	brv_close(archive);
	return status == BRV_SUCCESS ? 0 : 1;
}

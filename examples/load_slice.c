/* load_slice.c: what one of several ranks needs of a checkpoint: its share of the rows of each matrix, everything else whole.
 *
 *     cc load_slice.c $(pkg-config --cflags --libs brevis) -o load_slice
 *     ./load_slice model.brv 0 4          # rank 0 of 4; the others are 1, 2 and 3
 *
 * Only the chunks that hold these rows are read and decoded, so four ranks together read the archive about once.
 * SPDX-License-Identifier: Apache-2.0 */
#include <brevis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "adler32.h"

/* Rows first .. first + count - 1, of row_nbytes bytes each. */
struct rows {
	uint64_t first, count, row_nbytes;
};

/* Splits a matrix among the ranks as evenly as it goes. False: it is to be whole everywhere, since it is no matrix, or one whose
 * rows do not fill whole bytes. */
static int share_of(const brv_tensor *tensor, uint64_t rank, uint64_t ranks, struct rows *out)
{
	uint64_t all = tensor->ndim >= 2 ? tensor->shape[0] : 0;
	if (all == 0 || tensor->data_nbytes % all != 0)
		return 0;
	uint64_t each = all / ranks, rest = all % ranks; /* the first `rest` ranks take one more */
	out->first = each * rank + (rank < rest ? rank : rest);
	out->count = each + (rank < rest);
	out->row_nbytes = tensor->data_nbytes / all;
	return 1;
}

/* Decodes a tensor, or this rank's rows of it, and prints its checksum. */
static brv_status_code load(const brv_archive *archive, uint64_t index, uint64_t rank, uint64_t ranks, const brv_call *call,
			    brv_error *error)
{
	struct rows rows;
	brv_tensor tensor;
	brv_status_code status = brv_get_tensor(archive, index, &tensor, error);
	if (status != BRV_SUCCESS)
		return status;
	int split = share_of(&tensor, rank, ranks, &rows);
	uint64_t nbytes = split ? rows.count * rows.row_nbytes : tensor.data_nbytes;
	void *buffer = malloc(nbytes + 1); /* a real loader would have it in the accelerator's pinned memory */
	if (!buffer) {
		snprintf(error->text, sizeof error->text, "no memory for %" PRIu64 " bytes", nbytes);
		return BRV_E_MEMORY;
	}
	if (split)
		status = brv_decode_rows(archive, index, rows.first, rows.count, buffer, nbytes, call, error);
	else
		status = brv_decode_tensor(archive, index, buffer, nbytes, call, error);
	if (status == BRV_SUCCESS)
		printf("%08" PRIx32 " %12" PRIu64 " bytes  %.*s\n", adler32(buffer, nbytes), nbytes, (int)tensor.name_nbytes, tensor.name);
	free(buffer);
	return status;
}

static brv_status_code load_all(const brv_archive *archive, uint64_t rank, uint64_t ranks, brv_error *error)
{
	brv_call call = { .struct_nbytes = sizeof call };
	brv_info info;
	brv_get_info(archive, &info);
	brv_status_code status = brv_pool_create(0, &call.pool, error);
	for (uint64_t i = 0; status == BRV_SUCCESS && i < info.tensor_count; i++)
		status = load(archive, i, rank, ranks, &call, error);
	brv_pool_free(call.pool);
	return status;
}

int main(int argc, char **argv)
{
	brv_archive *archive;
	brv_error error;
	uint64_t rank = argc == 4 ? strtoull(argv[2], NULL, 10) : 0, ranks = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	if (rank >= ranks) {
		fprintf(stderr, "usage: load_slice ARCHIVE.brv RANK RANKS\n");
		return 2;
	}
	brv_status_code status = brv_open_path(argv[1], NULL, &archive, &error);
	if (status == BRV_SUCCESS)
		status = load_all(archive, rank, ranks, &error);
	if (status != BRV_SUCCESS)
		fprintf(stderr, "load_slice: %s: %s\n", argv[1], error.text);
	brv_close(archive);
	return status == BRV_SUCCESS ? 0 : 1;
}

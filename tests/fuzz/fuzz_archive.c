/* fuzz_archive.c: any bytes as an archive: opened, described, decoded whole and in parts, within a limit of memory.
 *
 * The two checksums of the prelude are made right first, and those of chunks are not looked at: both would keep the fuzzer outside.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/brevis.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/handmade.h"

enum { MEMORY_LIMIT = 64 << 20, MAX_DATA_NBYTES = 1 << 20, MAX_TENSORS = 16 };

static void describe(const brv_archive *archive, uint64_t tensor)
{
	char text[300];

	FUZZ_CHECK(brv_describe(archive, tensor, text, sizeof(text)) > 0 && memchr(text, 0, sizeof(text)), "tensor without a description");
	const size_t size = brv_show(archive, tensor, text, sizeof(text));
	if (size > MAX_DATA_NBYTES)
		return;
	char *all = malloc(size + 1);
	FUZZ_CHECK(brv_show(archive, tensor, all, size + 1) == size && strlen(all) == size, "brv_show gives another text");
	free(all);
}

/* The tensor whole, then its second half: the same bytes. */
static void decode_tensor(const brv_archive *archive, uint64_t index)
{
	brv_tensor tensor;
	brv_error error = { "" };

	FUZZ_CHECK(brv_get_tensor(archive, index, &tensor, &error) == BRV_SUCCESS, "%s", error.text);
	if (tensor.data_nbytes > MAX_DATA_NBYTES)
		return;
	const size_t nbytes = tensor.data_nbytes, from = nbytes / 2;
	uint8_t *whole = malloc(nbytes + 1), *half = malloc(nbytes - from + 1);
	uint64_t found = UINT64_MAX;
	const bool good = brv_decode_tensor(archive, index, whole, nbytes, NULL, &error) == BRV_SUCCESS;
	FUZZ_CHECK(good || error.text[0], "a failure without a reason");
	if (brv_decode_range(archive, index, from, half, nbytes - from, NULL, NULL) == BRV_SUCCESS && good)
		FUZZ_CHECK(memcmp(whole + from, half, nbytes - from) == 0, "a part differs from the whole");
	FUZZ_CHECK(brv_find_tensor(archive, tensor.name, tensor.name_nbytes, &found, NULL) == BRV_SUCCESS && found == index,
		   "found elsewhere");
	free(whole);
	free(half);
}

static void decode(const brv_archive *archive)
{
	brv_info info;

	brv_get_info(archive, &info);
	for (uint64_t i = 0; i < MIN(info.tensor_count, (uint64_t)MAX_TENSORS); i++) {
		describe(archive, i);
		decode_tensor(archive, i);
	}
	if (info.data_nbytes > MAX_DATA_NBYTES)
		return;
	uint8_t *data = malloc(info.data_nbytes + 1);
	brv_decode_data(archive, 0, data, info.data_nbytes, NULL, NULL);
	free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	const brv_options options = { .struct_nbytes = sizeof(options), .memory_limit = MEMORY_LIMIT, .no_checksums = 1 };
	uint8_t *copy = malloc(nbytes + !nbytes); /* of just its size: a read beyond it is the sanitizer's */
	brv_archive *archive;
	brv_error error = { "" };

	memcpy(copy, data, nbytes);
	if (nbytes >= AR_PRELUDE_NBYTES)
		hm_fix_sums(copy, nbytes);
	if (brv_open_memory(copy, nbytes, &options, &archive, &error) == BRV_SUCCESS)
		decode(archive);
	else
		FUZZ_CHECK(!archive && error.text[0], "a failure without a reason");
	brv_close(archive);
	free(copy);
	return 0;
}

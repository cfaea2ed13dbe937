/* fuzz_header.c: any bytes as a checkpoint's header: refused with a reason, or its tensors cover the data and can be read.
 *
 * First byte odd: the rest is the whole file. Even: then u16 size of the data, and the rest is the JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/checkpoint.h"
#include "tests/fuzz/fuzz_input.h"

static void check_tensors(const struct checkpoint *c)
{
	uint64_t at = 0;
	struct error err;

	FUZZ_CHECK(c->header_nbytes + 8 <= c->file_nbytes, "header of %llu", (unsigned long long)c->header_nbytes);
	for (size_t i = 0; i < c->ntensors; i++) {
		const struct tensor *t = &c->tensor[i];
		uint8_t *data = malloc(t->nbytes + 1);
		FUZZ_CHECK(t->offset == at, "tensor %zu is at %llu, expected %llu", i, (unsigned long long)t->offset,
			   (unsigned long long)at);
		FUZZ_CHECK(checkpoint_read(c, t->offset, data, t->nbytes, &err) == BRV_OK, "%s", err.text);
		FUZZ_CHECK(t->name_offset < 0 || memcmp(c->header + t->name_offset, t->name, t->name_nbytes) == 0, "name of tensor %zu", i);
		FUZZ_CHECK(t->dtype->code != AR_DTYPE_OTHER ? strcmp(t->dtype->name, t->dtype_name) == 0 : t->dtype_name[0] != 0,
			   "type of tensor %zu", i);
		at += t->nbytes;
		free(data);
	}
	FUZZ_CHECK(at == c->file_nbytes - c->header_nbytes - 8, "data ends at %llu", (unsigned long long)at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct fuzz_input in = { data, data + nbytes };
	struct buffer file = { 0 };
	struct checkpoint checkpoint;
	struct error err = { "" };
	char path[64];
	const bool whole = fuzz_u8(&in) & 1;
	const unsigned data_nbytes = whole ? 0 : fuzz_u16(&in);

	if (!whole)
		buffer_put_u64(&file, (uint64_t)(in.end - in.at));
	buffer_put(&file, in.at, (size_t)(in.end - in.at));
	for (unsigned i = 0; i < data_nbytes; i++)
		buffer_put_u8(&file, (uint8_t)i);
	const int fd = fuzz_file(file.data, file.nbytes, path);
	if (checkpoint_open(path, &checkpoint, &err) == BRV_OK) {
		check_tensors(&checkpoint);
		checkpoint_close(&checkpoint);
	} else {
		FUZZ_CHECK(err.text[0] && !strchr(err.text, '\n'), "no reason, or more than a line: %s", err.text);
	}
	close(fd);
	buffer_free(&file);
	return 0;
}

/* fuzz_roundtrip.c: bytes dressed as a checkpoint of a few tensors, compressed and unpacked: the same file again.
 *
 * The first bytes decide types, shapes, options and how the rest is spread over the tensors: as it is, repeated, or as steps of a
 * running sum, so that a short input makes streams that are worth a program. SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "common/archive.h"
#include "runtime/brevis.h"
#include "synth/synth.h"
#include "tests/fuzz/fuzz_input.h"

enum { MAX_TENSORS = 3, MAX_ROWS = 64, MAX_COLUMNS = 300 };

static const char *const types[] = {
	"BF16",	   "F16",     "F32",	 "F8_E4M3", "I8",	   "U8",	  "I64", "I32", "F64", "BOOL", "F4",
	"F6_E2M3", "F6_E3M2", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "U32", "C64",  "U64",
};

enum filling { AS_IS, REPEATED, STEPS, WITH_ZERO_ROWS, FILLINGS };

struct shape {
	const char *type;
	unsigned bits, rows, columns;
	enum filling filling;
	size_t nbytes;
};

static struct shape draw_shape(struct fuzz_input *in)
{
	struct shape s = { .type = types[fuzz_below(in, ARRAY_LEN(types))] };

	s.bits = dtype_by_name(s.type, strlen(s.type))->bits;
	s.rows = fuzz_below(in, MAX_ROWS + 1), s.columns = fuzz_below(in, MAX_COLUMNS + 1);
	s.filling = (enum filling)fuzz_below(in, FILLINGS);
	if (s.bits < 8)
		s.columns &= ~3u;
	s.nbytes = (size_t)s.rows * s.columns * s.bits / 8;
	return s;
}

static void fill(const struct shape *s, struct fuzz_input in, uint8_t *out)
{
	const size_t have = (size_t)(in.end - in.at), period = s->filling == REPEATED ? MIN(have, 12u) : have;
	const unsigned size = MAX(s->bits / 8, 1u);
	uint64_t sum = 0;

	for (size_t i = 0; i < s->nbytes; i++)
		out[i] = period ? in.at[i % period] : 0;
	for (size_t i = 0; s->filling == STEPS && i + size <= s->nbytes; i += size) {
		sum += period ? in.at[i / size % period] : 1;
		memcpy(out + i, &sum, size);
	}
	for (size_t r = 0; s->filling == WITH_ZERO_ROWS && r < s->rows; r++)
		if (period ? in.at[r % period] & 1 : 1)
			memset(out + r * s->nbytes / s->rows, 0, s->nbytes / s->rows);
}

static void make_checkpoint(struct fuzz_input *in, struct buffer *file)
{
	struct shape shape[MAX_TENSORS];
	const unsigned ntensors = fuzz_below(in, MAX_TENSORS + 1);
	char json[1024] = "{";
	size_t at = 0, length = 1;

	for (unsigned i = 0; i < ntensors; i++) {
		shape[i] = draw_shape(in);
		length += (size_t)snprintf(json + length, sizeof(json) - length,
					   "%s\"t%u\":{\"dtype\":\"%s\",\"shape\":[%u,%u],\"data_offsets\":[%zu,%zu]}", i ? "," : "", i,
					   shape[i].type, shape[i].rows, shape[i].columns, at, at + shape[i].nbytes);
		at += shape[i].nbytes;
	}
	length += (size_t)snprintf(json + length, sizeof(json) - length, "}");
	buffer_put_u64(file, length);
	buffer_put(file, json, length);
	for (unsigned i = 0; i < ntensors; i++)
		if (shape[i].nbytes)
			fill(&shape[i], *in, buffer_grow(file, shape[i].nbytes));
}

static void check_archive(const char *path, const struct buffer *file)
{
	brv_archive *archive;
	brv_info info;
	brv_error error = { "" };
	struct stat st;

	FUZZ_CHECK(brv_open_path(path, NULL, &archive, &error) == BRV_SUCCESS, "%s", error.text);
	brv_get_info(archive, &info);
	FUZZ_CHECK(info.file_nbytes == file->nbytes && memcmp(brv_header(archive), file->data + 8, info.header_nbytes) == 0,
		   "another header");
	uint8_t *data = malloc(info.data_nbytes + 1);
	FUZZ_CHECK(brv_decode_data(archive, 0, data, info.data_nbytes, NULL, &error) == BRV_SUCCESS, "%s", error.text);
	FUZZ_CHECK(memcmp(data, file->data + 8 + info.header_nbytes, info.data_nbytes) == 0, "another file came back");
	FUZZ_CHECK(stat(path, &st) == 0 && (size_t)st.st_size <= file->nbytes + file->nbytes / 200 + 1024, "%lld bytes of %zu",
		   (long long)st.st_size, file->nbytes);
	free(data);
	brv_close(archive);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct fuzz_input in = { data, data + nbytes };
	struct buffer file = { 0 };
	struct synth_report report;
	struct error err = { "" };
	char from[64], to[64];
	const struct synth_options options = { .favor = (enum cost_favor)fuzz_below(&in, 3),
					       .target = (enum cost_target)fuzz_below(&in, 3),
					       .threads = 1,
					       .force = true,
					       .limits = { .expansions = 1 + fuzz_below(&in, 8) } };

	make_checkpoint(&in, &file);
	const int fd = fuzz_file(file.data, file.nbytes, from);
	snprintf(to, sizeof(to), "/dev/shm/brevis-fuzz-%d.brv", getpid());
	FUZZ_CHECK(synth_file(from, to, &options, &report, &err) == BRV_OK, "%s", err.text);
	check_archive(to, &file);
	unlink(to);
	close(fd);
	buffer_free(&file);
	return 0;
}

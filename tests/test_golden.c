/* test_golden.c: archives of tests/golden, made once and kept: every kernel set decodes every one of them, whole and in parts.
 *
 * NAME.safetensors beside NAME.brv is what has to come out. tests/check_reference.py does the same with the second decoder.
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/archive.h"
#include "runtime/object.h"

#define DIRECTORY "tests/golden"

static struct buffer read_file(const char *path)
{
	struct buffer bytes = { 0 };
	FILE *file = fopen(path, "rb");
	uint8_t part[4096];

	cr_assert(file, "%s cannot be opened: the tests run in the root of the tree", path);
	for (size_t n; (n = fread(part, 1, sizeof(part), file)) > 0;)
		buffer_put(&bytes, part, n);
	fclose(file);
	return bytes;
}

struct golden {
	char name[256];
	struct buffer archive, expected;
};

static void check_whole(const struct golden *g, const brv_archive *archive, const char *set)
{
	brv_info info;
	brv_error error = { "" };

	brv_get_info(archive, &info);
	cr_assert_eq(info.file_nbytes, g->expected.nbytes, "%s: stands for %llu bytes, not %zu", g->name,
		     (unsigned long long)info.file_nbytes, g->expected.nbytes);
	cr_assert_eq(load_u64(g->expected.data), info.header_nbytes, "%s", g->name);
	cr_assert_eq(memcmp(brv_header(archive), g->expected.data + 8, info.header_nbytes), 0, "%s: another header", g->name);
	uint8_t *data = malloc(info.data_nbytes + 1);
	cr_assert_eq(brv_decode_data(archive, 0, data, info.data_nbytes, NULL, &error), BRV_SUCCESS, "%s, %s: %s", g->name, set,
		     error.text);
	cr_assert_eq(memcmp(data, g->expected.data + 8 + info.header_nbytes, info.data_nbytes), 0, "%s, %s: other bytes", g->name, set);
	free(data);
}

/* Ranges of each tensor that begin and end anywhere. */
static void check_parts(const struct golden *g, const brv_archive *archive, const char *set)
{
	brv_info info;
	brv_tensor tensor;
	brv_error error = { "" };

	brv_get_info(archive, &info);
	for (uint64_t i = 0; i < info.tensor_count; i++) {
		cr_assert_eq(brv_get_tensor(archive, i, &tensor, &error), BRV_SUCCESS, "%s: %s", g->name, error.text);
		const uint8_t *expected = g->expected.data + 8 + info.header_nbytes + tensor.data_offset;
		for (uint64_t from = 0, n = 1; from + n <= tensor.data_nbytes; from += 1 + n / 3, n = n * 2 + 1) {
			uint8_t *data = malloc(n);
			cr_assert_eq(brv_decode_range(archive, i, from, data, n, NULL, &error), BRV_SUCCESS, "%s, %s: %s", g->name, set,
				     error.text);
			cr_assert_eq(memcmp(data, expected + from, n), 0, "%s, %s: tensor %llu: other bytes at %llu", g->name, set,
				     (unsigned long long)i, (unsigned long long)from);
			free(data);
		}
	}
}

static void check_set(const struct golden *g, const struct kn_set *set)
{
	brv_archive *archive;
	brv_error error = { "" };

	cr_assert_eq(brv_open_memory(g->archive.data, g->archive.nbytes, NULL, &archive, &error), BRV_SUCCESS, "%s: %s", g->name,
		     error.text);
	archive->kernels = set;
	check_whole(g, archive, set->name);
	check_parts(g, archive, set->name);
	brv_close(archive);
}

/* The next archive of the directory; false after the last. */
static bool next_golden(DIR *directory, struct golden *g)
{
	for (const struct dirent *entry; (entry = readdir(directory));) {
		const size_t length = strlen(entry->d_name);
		char path[512];
		if (length < 4 || strcmp(entry->d_name + length - 4, ".brv") != 0)
			continue;
		snprintf(g->name, sizeof(g->name), "%.*s", (int)length - 4, entry->d_name);
		snprintf(path, sizeof(path), DIRECTORY "/%s.brv", g->name);
		g->archive = read_file(path);
		snprintf(path, sizeof(path), DIRECTORY "/%s.safetensors", g->name);
		g->expected = read_file(path);
		return true;
	}
	return false;
}

static DIR *open_directory(void)
{
	DIR *directory = opendir(DIRECTORY);

	cr_assert(directory, DIRECTORY " is not there: the tests run in the root of the tree");
	return directory;
}

static void free_golden(struct golden *g)
{
	buffer_free(&g->archive);
	buffer_free(&g->expected);
}

Test(golden, every_set_decodes_every_archive)
{
	DIR *directory = open_directory();
	struct golden g;
	unsigned found = 0;

	for (; next_golden(directory, &g); found++) {
		for (unsigned s = 0; kn_sets[s]; s++)
			if (kn_sets[s]->supported())
				check_set(&g, kn_sets[s]);
		free_golden(&g);
	}
	closedir(directory);
	cr_assert(found >= 50, "only %u archives", found);
}

/* brv_show() of each tensor names each op that its chunks use, and the tables by number. */
static void check_shown(const struct golden *g, const brv_archive *archive, uint64_t index, char *text, size_t size)
{
	const struct stream *stream = tensor_stream(archive, index);
	const size_t length = brv_show(archive, index, text, size);

	cr_assert(length > 0 && length < size, "%s", g->name);
	for (uint64_t k = 0; k < stream->nchunks; k++) {
		const struct chunk *chunk = &archive->view.chunk[stream->chunk_at + k];
		const struct bc_program *program = chunk_program(&archive->view, stream, chunk);
		for (unsigned i = 0, table = 0; i < program->ninstr; i++) {
			const struct bc_opinfo *op = bc_opinfo(program->instr[i].op);
			char line[48];
			cr_assert(strstr(text, op->name), "%s: no %s in %s", g->name, op->name, text);
			if (op->table == TABLE_NONE)
				continue;
			const int n = snprintf(line, sizeof(line), "\n  table %llu, ", (unsigned long long)archive->view.operand[chunk->operands_at + table++]);
			for (unsigned c = 0; c < 4; c++) /* lit.huff has HUFF */
				line[(unsigned)n + c] = (char)toupper(op->name[4 + c]);
			line[n + 4] = 0;
			cr_assert(strstr(text, line), "%s: no %s in %s", g->name, line, text);
		}
	}
}

Test(golden, every_tensor_can_be_shown)
{
	enum { SIZE = 1 << 20 };
	DIR *directory = open_directory();
	char *text = malloc(SIZE);
	struct golden g;

	while (next_golden(directory, &g)) {
		brv_archive *archive;
		brv_info info;
		cr_assert_eq(brv_open_memory(g.archive.data, g.archive.nbytes, NULL, &archive, NULL), BRV_SUCCESS, "%s", g.name);
		brv_get_info(archive, &info);
		for (uint64_t i = 0; i < info.tensor_count; i++)
			check_shown(&g, archive, i, text, SIZE);
		brv_close(archive);
		free_golden(&g);
	}
	closedir(directory);
	free(text);
}

/* Ops, by code, that some program of the archive has, if a chunk uses the program. */
static void mark_ops(const struct golden *g, bool met[256])
{
	brv_archive *archive;

	cr_assert_eq(brv_open_memory(g->archive.data, g->archive.nbytes, NULL, &archive, NULL), BRV_SUCCESS, "%s", g->name);
	for (uint32_t s = 0; s < archive->view.nstreams; s++) {
		const struct stream *stream = &archive->view.stream[s];
		for (uint64_t k = 0; k < stream->nchunks; k++) {
			const struct bc_program *program =
				chunk_program(&archive->view, stream, &archive->view.chunk[stream->chunk_at + k]);
			for (unsigned i = 0; i < program->ninstr; i++)
				met[program->instr[i].op] = true;
		}
	}
	brv_close(archive);
}

Test(golden, every_op_has_an_archive)
{
	DIR *directory = open_directory();
	bool met[256] = { false };

	for (struct golden g; next_golden(directory, &g); free_golden(&g))
		mark_ops(&g, met);
	closedir(directory);
	for (unsigned code = 0; code < 256; code++) {
		const struct bc_opinfo *op = bc_opinfo((uint8_t)code);
		cr_assert(!op || met[code], "%s: no golden archive has it; add a case to tests/golden/golden_writer.c", op ? op->name : "");
	}
}

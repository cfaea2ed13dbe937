/* test_runtime.c: libbrevis as its callers see it: sources, ranges, threads, limits, errors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/brevis.h"
#include "tests/many.h"
#include "tests/sample.h"

/* The sample as bytes and as an archive opened from them. */
struct opened {
	struct sample sample;
	struct buffer bytes;
	brv_archive *archive;
};

static void open_sample(struct opened *o)
{
	brv_error error;
	sample_make(&o->sample);
	hm_write(o->sample.hm, &o->bytes);
	cr_assert_eq(brv_open_memory(o->bytes.data, o->bytes.nbytes, NULL, &o->archive, &error), BRV_SUCCESS, "%s", error.text);
}

static void close_sample(struct opened *o)
{
	brv_close(o->archive);
	sample_free(&o->sample);
	buffer_free(&o->bytes);
}

Test(runtime, describes)
{
	struct opened o;
	brv_info info;
	brv_tensor tensor;
	uint64_t index;
	open_sample(&o);
	brv_get_info(o.archive, &info);
	cr_expect_eq(info.archive_nbytes, o.bytes.nbytes);
	cr_expect_eq(info.tensor_count, S_COUNT - S_CLASSED);
	cr_expect_eq(info.file_nbytes, 8 + o.sample.header.nbytes + o.sample.data.nbytes);
	cr_expect(memcmp(brv_header(o.archive), o.sample.header.data, info.header_nbytes) == 0);
	uint64_t data = 0;
	for (uint64_t i = 0; i < info.tensor_count; i++) {
		cr_assert_eq(brv_get_tensor(o.archive, i, &tensor, NULL), BRV_SUCCESS);
		cr_expect_eq(tensor.data_offset, data);
		data += tensor.data_nbytes;
		cr_expect_eq(brv_find_tensor(o.archive, tensor.name, tensor.name_nbytes, &index, NULL), BRV_SUCCESS);
		cr_expect_eq(index, i);
	}
	cr_expect_eq(data, info.data_nbytes);
	cr_assert_eq(brv_find_tensor(o.archive, "quo\"ted\n", 8, &index, NULL), BRV_SUCCESS);
	cr_assert_eq(brv_find_tensor(o.archive, "odd", 3, &index, NULL), BRV_SUCCESS);
	brv_get_tensor(o.archive, index, &tensor, NULL);
	cr_expect_str_eq(tensor.dtype, "X3");
	cr_expect(tensor.ndim == 1 && tensor.shape[0] == 24 && tensor.data_nbytes == 12);
	cr_expect_eq(brv_find_tensor(o.archive, "absent", 6, &index, NULL), BRV_E_NOTFOUND);
	cr_expect_eq(brv_find_tensor(o.archive, "", 0, &index, NULL), BRV_E_NOTFOUND);
	cr_expect_eq(brv_get_tensor(o.archive, info.tensor_count, &tensor, NULL), BRV_E_NOTFOUND);
	close_sample(&o);
}

/* The costs that brv_show prints add up to brv_tensor.archive_nbytes, and those of all tensors are no more than the archive. */
Test(runtime, shows_costs)
{
	struct opened o;
	brv_info info;
	brv_tensor tensor;
	uint64_t total = 0;
	open_sample(&o);
	brv_get_info(o.archive, &info);
	for (uint64_t i = 0; i < info.tensor_count; i++) {
		char text[8192], cut[50], line[256];
		size_t length = brv_show(o.archive, i, text, sizeof text);
		unsigned long long sum = 0, parts = 0, value;
		bool in_tree = false;
		cr_assert_lt(length, sizeof text);
		cr_expect_eq(brv_show(o.archive, i, cut, sizeof cut), length);
		cr_expect(memcmp(cut, text, sizeof cut - 1) == 0 && cut[sizeof cut - 1] == 0);
		for (const char *at = text; sscanf(at, "%255[^\n]", line) >= 0 && !strstr(line, "not counted"); at = strchr(at, '\n') + 1) {
			if (*at == '\n')
				continue;
			in_tree = strstr(line, "payload bytes:") || in_tree;
			const char *last = strrchr(line, ' ');
			bool cost = last && last - line > 60 && sscanf(last, "%llu", &value) == 1;
			if (cost && strncmp(line, "sum", 3) == 0)
				sum = value;
			else if (cost && strncmp(line, "payload", 7) != 0)
				parts += value;
		}
		brv_get_tensor(o.archive, i, &tensor, NULL);
		cr_expect_eq(sum, tensor.archive_nbytes, "%s", text);
		cr_expect_eq(parts, tensor.archive_nbytes, "%llu: %s", parts, text);
		total += tensor.archive_nbytes;
		cr_expect(brv_describe(o.archive, i, text, sizeof text) > 0);
	}
	cr_expect_lt(total, info.archive_nbytes);
	close_sample(&o);
}

Test(runtime, every_range_of_the_sample)
{
	struct opened o;
	brv_info info;
	brv_error error;
	open_sample(&o);
	brv_get_info(o.archive, &info);
	uint8_t *got = malloc(info.data_nbytes + 1);
	for (uint64_t from = 0; from <= info.data_nbytes; from += 1 + from % 7)
		for (uint64_t n = 0; from + n <= info.data_nbytes; n += 1 + (from + n) % 61) {
			got[n] = 0xa5;
			cr_assert_eq(brv_decode_data(o.archive, from, got, n, NULL, &error), BRV_SUCCESS, "%s", error.text);
			cr_assert(memcmp(got, o.sample.data.data + from, n) == 0, "%lu bytes at %lu", (unsigned long)n, (unsigned long)from);
			cr_assert_eq(got[n], 0xa5);
		}
	cr_expect_eq(brv_decode_data(o.archive, 1, got, info.data_nbytes, NULL, &error), BRV_E_NOTFOUND);
	cr_expect_eq(brv_decode_data(o.archive, UINT64_MAX, got, 2, NULL, &error), BRV_E_NOTFOUND);
	cr_expect_eq(brv_decode_range(o.archive, 0, 500, got, 13, NULL, &error), BRV_E_NOTFOUND);
	cr_expect_eq(brv_decode_range(o.archive, 0, 512, got, 0, NULL, &error), BRV_SUCCESS);
	cr_expect_eq(brv_decode_tensor(o.archive, 0, got, 511, NULL, &error), BRV_E_USAGE);
	cr_expect_eq(brv_decode_tensor(o.archive, 99, got, 511, NULL, &error), BRV_E_NOTFOUND);
	free(got);
	close_sample(&o);
}

Test(runtime, many_tensors_any_threads)
{
	struct buffer bytes;
	brv_archive *archive;
	brv_error error;
	brv_info info;
	many_write(1500, many_mixed_size, &bytes);
	cr_assert_eq(brv_open_memory(bytes.data, bytes.nbytes, NULL, &archive, &error), BRV_SUCCESS, "%s", error.text);
	brv_get_info(archive, &info);
	uint8_t *got = malloc(info.data_nbytes);
	setenv("HWLOC_SYNTHETIC", "node:3 core:2 pu:1", 1); /* so that the groups of `local` are seen here, whatever this machine is */
	for (unsigned turn = 0; turn < 20; turn++) {
		unsigned threads = 1 + turn / 4 * 2;
		brv_pool *pool;
		const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = threads, .numa = (brv_numa)(turn % 4) };
		cr_assert_eq(brv_pool_create_with(&options, &pool, &error), BRV_SUCCESS, "%s", error.text);
		const brv_call call = { .struct_nbytes = sizeof call, .pool = pool };
		memset(got, 0, info.data_nbytes);
		cr_assert_eq(brv_decode_data(archive, 0, got, info.data_nbytes, &call, &error), BRV_SUCCESS, "%s", error.text);
		cr_assert(many_is_data(got, 0, info.data_nbytes), "%u threads", threads);
		for (uint64_t from = 1; from < info.data_nbytes; from = from * 3 + 1) {
			uint64_t n = (info.data_nbytes - from) / 2 + 1;
			cr_assert_eq(brv_decode_data(archive, from, got, n, &call, &error), BRV_SUCCESS, "%s", error.text);
			cr_assert(many_is_data(got, from, n));
		}
		brv_pool_free(pool);
	}
	free(got);
	brv_close(archive);
	buffer_free(&bytes);
}

struct caller {
	brv_archive *archive;
	uint64_t from, nbytes;
	bool ok;
};

static void *call_often(void *context)
{
	struct caller *caller = context;
	uint8_t *got = malloc(caller->nbytes);
	caller->ok = true;
	for (unsigned i = 0; i < 20; i++)
		caller->ok = caller->ok && brv_decode_data(caller->archive, caller->from, got, caller->nbytes, NULL, NULL) == BRV_SUCCESS &&
			     many_is_data(got, caller->from, caller->nbytes);
	free(got);
	return NULL;
}

Test(runtime, several_callers_at_once)
{
	struct buffer bytes;
	brv_archive *archive;
	struct caller caller[4];
	pthread_t thread[4];
	many_write(200, many_mixed_size, &bytes);
	cr_assert_eq(brv_open_memory(bytes.data, bytes.nbytes, NULL, &archive, NULL), BRV_SUCCESS);
	for (unsigned i = 0; i < 4; i++) {
		caller[i] = (struct caller){ archive, 1000 * i, 100000, false };
		pthread_create(&thread[i], NULL, call_often, &caller[i]);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		cr_expect(caller[i].ok);
	}
	brv_close(archive);
	buffer_free(&bytes);
}

struct counted {
	const struct buffer *bytes;
	uint64_t limit;
};

static int read_counted(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct counted *source = context;
	if (offset + nbytes > source->limit)
		return EIO;
	memcpy(buffer, source->bytes->data + offset, nbytes);
	return 0;
}

Test(runtime, reader_callback)
{
	struct opened o;
	brv_archive *archive;
	brv_error error;
	open_sample(&o);
	struct counted source = { &o.bytes, o.bytes.nbytes };
	const brv_reader reader = { read_counted, &source, o.bytes.nbytes };
	uint8_t *got = malloc(o.sample.data.nbytes);
	cr_assert_eq(brv_open_reader(&reader, NULL, &archive, &error), BRV_SUCCESS, "%s", error.text);
	cr_assert_eq(brv_decode_data(archive, 0, got, o.sample.data.nbytes, NULL, &error), BRV_SUCCESS, "%s", error.text);
	cr_expect(memcmp(got, o.sample.data.data, o.sample.data.nbytes) == 0);
	source.limit -= 1;
	cr_expect_eq(brv_decode_data(archive, 0, got, o.sample.data.nbytes, NULL, &error), BRV_E_IO);
	cr_expect(strstr(error.text, strerror(EIO)), "%s", error.text);
	brv_close(archive);
	source.limit = 1000;
	cr_expect_eq(brv_open_reader(&reader, NULL, &archive, &error), BRV_E_IO);
	cr_expect_null(archive);
	free(got);
	close_sample(&o);
}

/* Writes the bytes into a pipe from a child, in pieces that fall anywhere; returns the end to read. */
static int pipe_of(const struct buffer *bytes, size_t nbytes, pid_t *child)
{
	int ends[2];
	cr_assert_eq(pipe(ends), 0);
	*child = fork();
	if (*child == 0) {
		close(ends[0]);
		for (size_t at = 0, n; at < nbytes; at += n) {
			n = MIN(nbytes - at, 1 + at % 3000);
			if (write(ends[1], bytes->data + at, n) != (ssize_t)n)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

static void decode_pipe(const struct buffer *bytes, size_t nbytes, unsigned threads, brv_status_code expected, const uint8_t *data)
{
	pid_t child;
	brv_archive *archive;
	brv_error error = { "" };
	brv_info info;
	brv_pool *pool;
	int fd = pipe_of(bytes, nbytes, &child);
	brv_status_code status = brv_open_fd(fd, NULL, &archive, &error);
	if (status == BRV_SUCCESS) {
		cr_assert_eq(brv_pool_create(threads, &pool, &error), BRV_SUCCESS);
		const brv_call call = { .struct_nbytes = sizeof call, .pool = pool };
		brv_get_info(archive, &info);
		uint8_t *got = malloc(info.data_nbytes);
		status = brv_decode_data(archive, 0, got, info.data_nbytes, &call, &error);
		if (status == BRV_SUCCESS)
			cr_expect(data ? memcmp(got, data, info.data_nbytes) == 0 : many_is_data(got, 0, info.data_nbytes));
		free(got);
		brv_pool_free(pool);
	}
	brv_close(archive);
	close(fd);
	waitpid(child, NULL, 0);
	cr_expect_eq(status, expected, "%zu of %zu bytes: %s", nbytes, bytes->nbytes, error.text);
}

Test(runtime, pipes)
{
	struct opened o;
	struct buffer bytes;
	open_sample(&o);
	decode_pipe(&o.bytes, o.bytes.nbytes, 1, BRV_SUCCESS, o.sample.data.data);
	decode_pipe(&o.bytes, o.bytes.nbytes, 3, BRV_SUCCESS, o.sample.data.data);
	decode_pipe(&o.bytes, 100, 1, BRV_E_DAMAGED, NULL);
	decode_pipe(&o.bytes, o.bytes.nbytes - 1, 1, BRV_E_DAMAGED, NULL);
	buffer_put_u8(&o.bytes, 0);
	decode_pipe(&o.bytes, o.bytes.nbytes - 1, 1, BRV_SUCCESS, o.sample.data.data);
	many_write(1500, many_mixed_size, &bytes);
	decode_pipe(&bytes, bytes.nbytes, 1, BRV_SUCCESS, NULL);
	decode_pipe(&bytes, bytes.nbytes, 4, BRV_SUCCESS, NULL);
	decode_pipe(&bytes, bytes.nbytes - 1, 4, BRV_E_DAMAGED, NULL);
	buffer_put_u8(&bytes, 0);
	decode_pipe(&bytes, bytes.nbytes, 4, BRV_E_DAMAGED, NULL);
	buffer_free(&bytes);
	close_sample(&o);
}

/* A file that is cut while it is open gives an error. */
Test(runtime, file_that_shrinks)
{
	struct opened o;
	brv_archive *archive;
	brv_error error;
	char path[] = "/tmp/brevis-test-XXXXXX";
	open_sample(&o);
	int fd = mkstemp(path);
	cr_assert(fd >= 0 && write(fd, o.bytes.data, o.bytes.nbytes) == (ssize_t)o.bytes.nbytes);
	cr_assert_eq(brv_open_path(path, NULL, &archive, &error), BRV_SUCCESS, "%s", error.text);
	uint8_t *got = malloc(o.sample.data.nbytes);
	cr_expect_eq(brv_decode_data(archive, 0, got, o.sample.data.nbytes, NULL, &error), BRV_SUCCESS, "%s", error.text);
	cr_assert_eq(ftruncate(fd, (off_t)o.bytes.nbytes - 10), 0);
	cr_expect_eq(brv_decode_data(archive, 0, got, o.sample.data.nbytes, NULL, &error), BRV_E_DAMAGED);
	brv_close(archive);
	cr_expect_eq(brv_open_path(path, NULL, &archive, &error), BRV_E_DAMAGED);
	unlink(path);
	cr_expect_eq(brv_open_path(path, NULL, &archive, &error), BRV_E_IO);
	cr_expect_eq(brv_open_path("/tmp", NULL, &archive, &error), BRV_E_IO);
	free(got);
	close(fd);
	close_sample(&o);
}

/* With any limit a call either works or says BRV_E_LIMIT, and enough is enough. */
Test(runtime, memory_limits)
{
	struct opened o;
	open_sample(&o);
	uint8_t *got = malloc(o.sample.data.nbytes);
	bool worked = false;
	for (uint64_t limit = 1; limit < 16 << 20; limit += limit / 8 + 1) {
		brv_archive *archive;
		brv_error error;
		const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = limit };
		brv_status_code status = brv_open_memory(o.bytes.data, o.bytes.nbytes, &options, &archive, &error);
		if (status == BRV_SUCCESS)
			status = brv_decode_data(archive, 0, got, o.sample.data.nbytes, NULL, &error);
		cr_expect(status == BRV_E_LIMIT || (status == BRV_SUCCESS && memcmp(got, o.sample.data.data, o.sample.data.nbytes) == 0),
			  "%s", error.text);
		cr_expect(!worked || status == BRV_SUCCESS, "limit %lu: %s", (unsigned long)limit, error.text);
		worked = status == BRV_SUCCESS;
		brv_close(archive);
	}
	cr_expect(worked);
	free(got);
	close_sample(&o);
}

/* All of the sample's tensors, two and a half times, in an order that is not theirs. */
static brv_status_code decode_in_turns(brv_archive *archive, const struct opened *o, uint8_t *got, brv_error *error)
{
	const uint64_t count = S_COUNT - S_CLASSED;
	brv_status_code status = BRV_SUCCESS;

	for (unsigned i = 0; i < 30 && status == BRV_SUCCESS; i++) {
		const uint64_t tensor = i * 7 % count, *at = o->sample.data_offset + S_CLASSED + tensor, nbytes = at[1] - at[0];
		status = brv_decode_tensor(archive, tensor, got, nbytes, NULL, error);
		cr_expect(status != BRV_SUCCESS || memcmp(got, o->sample.data.data + at[0], nbytes) == 0);
	}
	return status;
}

/* Tables that are dropped for lack of memory come back. */
Test(runtime, tables_come_and_go)
{
	struct opened o;
	brv_archive *archive;
	brv_error error;
	uint64_t limit = 0;
	open_sample(&o);
	uint8_t *got = malloc(o.sample.data.nbytes);
	/* The least that works leaves no room for all tables at once. */
	for (uint64_t step = 1 << 20; step; step /= 2) {
		const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = limit + step };
		brv_status_code status = brv_open_memory(o.bytes.data, o.bytes.nbytes, &options, &archive, &error);
		if (status == BRV_SUCCESS)
			status = decode_in_turns(archive, &o, got, &error);
		if (status != BRV_SUCCESS)
			limit += step;
		brv_close(archive);
	}
	const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = limit + 1 };
	cr_assert_eq(brv_open_memory(o.bytes.data, o.bytes.nbytes, &options, &archive, &error), BRV_SUCCESS, "%s", error.text);
	cr_assert_eq(decode_in_turns(archive, &o, got, &error), BRV_SUCCESS, "%s", error.text);
	brv_close(archive);
	free(got);
	close_sample(&o);
}

struct told {
	uint64_t last, calls, stop_at;
};

static int tell(void *context, uint64_t done, uint64_t total)
{
	struct told *told = context;
	cr_expect(done > told->last && done <= total);
	told->last = done;
	return ++told->calls == told->stop_at;
}

Test(runtime, progress_and_cancel)
{
	struct buffer bytes;
	brv_archive *archive;
	brv_error error;
	brv_info info;
	brv_pool *pool;
	struct told told = { 0 };
	many_write(1500, many_mixed_size, &bytes);
	cr_assert_eq(brv_open_memory(bytes.data, bytes.nbytes, NULL, &archive, &error), BRV_SUCCESS);
	cr_assert_eq(brv_pool_create(3, &pool, &error), BRV_SUCCESS);
	brv_get_info(archive, &info);
	uint8_t *got = malloc(info.data_nbytes);
	const brv_call call = { .struct_nbytes = sizeof call, .pool = pool, .progress = tell, .progress_context = &told };
	cr_expect_eq(brv_decode_data(archive, 0, got, info.data_nbytes, &call, &error), BRV_SUCCESS);
	cr_expect_eq(told.last, info.data_nbytes);
	cr_expect_gt(told.calls, 3);
	told = (struct told){ .stop_at = 2 };
	cr_expect_eq(brv_decode_data(archive, 0, got, info.data_nbytes, &call, &error), BRV_E_CANCELLED);
	cr_expect_lt(told.last, info.data_nbytes);
	free(got);
	brv_pool_free(pool);
	brv_close(archive);
	buffer_free(&bytes);
}

/* Damage stays local: other tensors, and other chunks of the same, still decode. */
Test(runtime, damage_stays_local)
{
	struct buffer bytes;
	brv_archive *archive;
	brv_error error;
	uint8_t got[9000];
	many_write(100, many_mixed_size, &bytes);
	bytes.data[bytes.nbytes - 1] ^= 1;
	cr_assert_eq(brv_open_memory(bytes.data, bytes.nbytes, NULL, &archive, &error), BRV_SUCCESS);
	cr_expect_eq(brv_decode_tensor(archive, 99, got, sizeof got, NULL, &error), BRV_E_DAMAGED);
	cr_expect(strstr(error.text, "t99") && strstr(error.text, "checksum"), "%s", error.text);
	cr_expect_eq(brv_decode_tensor(archive, 97, got, sizeof got, NULL, &error), BRV_SUCCESS);
	brv_close(archive);
	const brv_options options = { .struct_nbytes = sizeof options, .no_checksums = 1 };
	cr_assert_eq(brv_open_memory(bytes.data, bytes.nbytes, &options, &archive, &error), BRV_SUCCESS);
	cr_expect_eq(brv_decode_tensor(archive, 99, got, sizeof got, NULL, &error), BRV_SUCCESS);
	brv_close(archive);
	buffer_free(&bytes);
}

Test(runtime, wrong_use)
{
	brv_archive *archive = (brv_archive *)1;
	brv_error error;
	brv_pool *pool;
	cr_expect_eq(brv_open_path(NULL, NULL, &archive, &error), BRV_E_USAGE);
	cr_expect_eq(brv_open_memory(NULL, 0, NULL, &archive, &error), BRV_E_USAGE);
	cr_expect_eq(brv_open_memory("", 0, NULL, &archive, &error), BRV_E_DAMAGED);
	cr_expect_null(archive);
	cr_expect_eq(brv_open_reader(NULL, NULL, &archive, &error), BRV_E_USAGE);
	cr_expect_eq(brv_pool_create(1 << 20, &pool, &error), BRV_E_USAGE);
	cr_expect_str_eq(brv_status_text(BRV_E_DAMAGED), status_text(BRV_DAMAGED));
	brv_close(NULL);
	brv_pool_free(NULL);
	char text[4096];
	cr_expect(brv_cpu_report(text, sizeof text) > 0);
	cr_expect(strstr(text, brv_isa()) != NULL);
}

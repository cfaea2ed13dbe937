/* threads.c: everything that threads share, used by many at once: for ThreadSanitizer, which cannot start criterion, and for valgrind.
 *
 *     threads FILE.safetensors DIRECTORY
 *
 * Prints the Test Anything Protocol. SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/pool.h"
#include "runtime/brevis.h"
#include "synth/synth.h"

enum { READERS = 6, ROUNDS = 60, ITEMS = 500, TEAM = 4 };
static bool failed;

static void result(bool ok, const char *name, const char *why)
{
	printf("%s - %s\n", ok ? "ok" : "not ok", name);
	if (!ok)
		printf("  %s\n", why);
	failed |= !ok;
}

/* --- The pool: every item once, and what workers wrote is seen after pool_run(). --- */

static void count_item(void *context, uint64_t item, unsigned worker)
{
	unsigned char *seen = context;
	(void)worker;
	seen[item]++;
}

static void test_pool(void)
{
	struct pool *pool;
	bool ok = alloc_pool(TEAM, &pool, NULL) == BRV_OK;
	for (unsigned round = 0; ok && round < ROUNDS; round++) {
		unsigned char seen[ITEMS] = { 0 };
		const uint64_t nitems = round % 3 ? ITEMS : round % 2;
		pool_run(pool, nitems, count_item, seen);
		for (uint64_t i = 0; i < ITEMS; i++)
			ok &= seen[i] == (i < nitems);
	}
	free_pool(pool);
	result(ok, "a pool does every item once", "an item was left out or done twice");
}

/* --- One archive, many readers: tables, classes and decoders are made when they are first needed, by whoever comes first. --- */

struct readers {
	const brv_archive *archive;
	const uint8_t *expected;
	brv_info info;
	atomic_uint nwrong;
};

static bool read_some(const struct readers *readers, uint64_t turn, const brv_call *call, uint8_t *bytes)
{
	brv_tensor tensor;
	char text[512];
	const uint64_t index = turn * 7919 % readers->info.tensor_count;
	if (brv_get_tensor(readers->archive, index, &tensor, NULL) != BRV_SUCCESS)
		return false;
	const uint64_t from = tensor.data_nbytes * (turn % 4) / 5, n = tensor.data_nbytes - from;
	brv_describe(readers->archive, index, text, sizeof text);
	return brv_decode_range(readers->archive, index, from, bytes, n, call, NULL) == BRV_SUCCESS &&
	       !memcmp(bytes, readers->expected + tensor.data_offset + from, n);
}

static void *reader_main(void *context)
{
	struct readers *readers = context;
	static atomic_uint next;
	const unsigned number = atomic_fetch_add(&next, 1);
	brv_pool *pool = NULL;
	if (number % 2)
		brv_pool_create(2, &pool, NULL);
	const brv_call call = { .struct_nbytes = sizeof call, .pool = pool };
	uint8_t *bytes = malloc(readers->info.data_nbytes + 1);
	for (uint64_t turn = 0; turn < ROUNDS; turn++)
		atomic_fetch_add(&readers->nwrong, !read_some(readers, turn + number, &call, bytes));
	free(bytes);
	brv_pool_free(pool);
	return NULL;
}

static void test_readers(const char *path)
{
	struct readers readers = { 0 };
	brv_archive *archive, *other;
	brv_error error = { "" };
	pthread_t thread[READERS];
	unsigned started = 0;
	if (brv_open_path(path, NULL, &archive, &error) != BRV_SUCCESS || brv_open_path(path, NULL, &other, &error) != BRV_SUCCESS) {
		result(false, "readers", error.text);
		return;
	}
	brv_get_info(archive, &readers.info);
	uint8_t *expected = malloc(readers.info.data_nbytes + 1);
	/* By another object, so that the readers find nothing made yet. */
	bool ok = brv_decode_data(other, 0, expected, readers.info.data_nbytes, NULL, &error) == BRV_SUCCESS;
	brv_close(other);
	readers.archive = archive, readers.expected = expected;
	for (; started < READERS && pthread_create(&thread[started], NULL, reader_main, &readers) == 0; started++)
		;
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	result(ok && started == READERS && atomic_load(&readers.nwrong) == 0, "one archive, many readers, with and without pools", "other bytes");
	brv_close(archive);
	free(expected);
}

/* --- Synthesis: the same archive from one thread and from several. --- */

static bool same_files(const char *a, const char *b)
{
	FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
	bool same = x && y;
	for (int byte = 0; same && byte != EOF;)
		byte = getc(x), same = byte == getc(y);
	if (x)
		fclose(x);
	if (y)
		fclose(y);
	return same;
}

static int look(void *context, uint64_t done, uint64_t total)
{
	(void)context, (void)done, (void)total;
	return 0;
}

static void test_synth(const char *in, const char *one, const char *many)
{
	struct synth_report report;
	struct error err = { "" };
	struct synth_options options = { .favor = COST_BALANCED, .target = COST_AVX512, .threads = 1, .force = true, .progress = look };
	bool ok = synth_file(in, one, &options, &report, &err) == BRV_OK;
	options.threads = TEAM;
	ok = ok && synth_file(in, many, &options, &report, &err) == BRV_OK;
	result(ok && same_files(one, many), "the same archive from one thread and from four", err.text[0] ? err.text : "they differ");
}

int main(int argc, char **argv)
{
	char one[4096], many[4096];
	if (argc != 3) {
		fprintf(stderr, "usage: threads FILE.safetensors DIRECTORY\n");
		return 2;
	}
	snprintf(one, sizeof one, "%s/one.brv", argv[2]);
	snprintf(many, sizeof many, "%s/many.brv", argv[2]);
	test_pool();
	test_synth(argv[1], one, many);
	test_readers(one);
	return failed;
}

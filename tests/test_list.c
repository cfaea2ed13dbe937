/* test_list.c: several ranges in one call, rows, and stopping from outside. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/brevis.h"
#include "tests/many.h"
#include "tests/sample.h"

enum { TENSORS = 1500 };

static brv_archive *open_many(struct buffer *bytes)
{
	brv_archive *archive;
	brv_error error;
	many_write(TENSORS, many_mixed_size, bytes);
	cr_assert_eq(brv_open_memory(bytes->data, bytes->nbytes, NULL, &archive, &error), BRV_SUCCESS, "%s", error.text);
	return archive;
}

/* Every third tensor, backwards, from a byte in its first half on, each to a place of its own. */
static size_t make_requests(const brv_archive *archive, brv_request *request, uint64_t *offset, uint8_t *data, uint64_t *used)
{
	size_t n = 0;
	*used = 0;
	for (uint64_t i = TENSORS; i-- > 0;) {
		brv_tensor tensor;
		brv_get_tensor(archive, i, &tensor, NULL);
		if (i % 3 == 1)
			continue;
		const uint64_t from = tensor.data_nbytes ? i % (tensor.data_nbytes / 2 + 1) : 0;
		offset[n] = tensor.data_offset + from;
		request[n++] = (brv_request){ i, from, tensor.data_nbytes - from, data + *used };
		*used += tensor.data_nbytes - from + 1;
	}
	return n;
}

Test(list, many_ranges_any_threads)
{
	struct buffer bytes;
	brv_archive *archive = open_many(&bytes);
	brv_error error;
	brv_info info;
	uint64_t used, offset[TENSORS];
	brv_request request[TENSORS];

	brv_get_info(archive, &info);
	uint8_t *data = malloc(info.data_nbytes + TENSORS);
	const size_t n = make_requests(archive, request, offset, data, &used);
	for (unsigned threads = 0; threads < 6; threads++) {
		brv_pool *pool = NULL;
		if (threads)
			cr_assert_eq(brv_pool_create(threads, &pool, &error), BRV_SUCCESS);
		const brv_call call = { .struct_nbytes = sizeof call, .pool = pool };
		memset(data, 0xa5, used);
		cr_assert_eq(brv_decode_list(archive, request, n, &call, &error), BRV_SUCCESS, "%s", error.text);
		for (size_t i = 0; i < n; i++) {
			const uint8_t *dst = request[i].dst;
			cr_assert(many_is_data(dst, offset[i], request[i].nbytes), "request %zu, %u threads", i, threads);
			cr_assert_eq(dst[request[i].nbytes], 0xa5, "request %zu wrote behind its end", i);
		}
		brv_pool_free(pool);
	}
	cr_expect_eq(brv_decode_list(archive, NULL, 0, NULL, &error), BRV_SUCCESS);
	free(data);
	brv_close(archive);
	buffer_free(&bytes);
}

Test(list, requests_that_make_no_sense)
{
	struct buffer bytes;
	brv_archive *archive = open_many(&bytes);
	uint8_t data[64] = { 0xa5 };
	brv_tensor tensor;
	brv_error error;

	brv_get_tensor(archive, 1, &tensor, &error);
	const struct {
		brv_request request;
		brv_status_code status;
	} rows[] = {
		{ { TENSORS, 0, 0, data }, BRV_E_NOTFOUND },
		{ { 1, tensor.data_nbytes + 1, 0, data }, BRV_E_NOTFOUND },
		{ { 1, tensor.data_nbytes - 1, 2, data }, BRV_E_NOTFOUND },
		{ { 1, UINT64_MAX, 2, data }, BRV_E_NOTFOUND },
		{ { 1, 0, 1, NULL }, BRV_E_USAGE },
		{ { 1, tensor.data_nbytes, 0, NULL }, BRV_SUCCESS },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const brv_request both[2] = { { 1, 0, 8, data }, rows[i].request };
		data[0] = 0xa5;
		cr_expect_eq(brv_decode_list(archive, both, 2, NULL, &error), rows[i].status, "row %zu", i);
		cr_expect(rows[i].status == BRV_SUCCESS || data[0] == 0xa5, "row %zu: something was decoded", i);
	}
	cr_expect_eq(brv_decode_list(archive, NULL, 1, NULL, &error), BRV_E_USAGE);
	cr_expect_eq(brv_decode_list(NULL, NULL, 0, NULL, &error), BRV_E_USAGE);
	brv_close(archive);
	buffer_free(&bytes);
}

Test(list, rows_of_every_tensor)
{
	struct sample sample;
	struct buffer bytes = { 0 };
	brv_archive *archive;
	brv_error error;
	brv_info info;

	sample_make(&sample);
	hm_write(sample.hm, &bytes);
	cr_assert_eq(brv_open_memory(bytes.data, bytes.nbytes, NULL, &archive, &error), BRV_SUCCESS, "%s", error.text);
	brv_get_info(archive, &info);
	for (uint64_t i = 0; i < info.tensor_count; i++) {
		brv_tensor t;
		uint8_t data[4096];
		brv_get_tensor(archive, i, &t, NULL);
		const uint64_t rows = t.ndim ? t.shape[0] : 0, row_nbytes = rows ? t.data_nbytes / rows : 0;
		if (rows && t.data_nbytes % rows) { /* of an unknown type */
			cr_expect_eq(brv_decode_rows(archive, i, 0, 1, data, sizeof data, NULL, &error), BRV_E_NOTFOUND);
			continue;
		}
		for (uint64_t first = 0; first <= rows; first++)
			for (uint64_t n = 0; first + n <= rows; n += 1 + n / 2) {
				cr_assert_eq(brv_decode_rows(archive, i, first, n, data, n * row_nbytes, NULL, &error), BRV_SUCCESS, "%s", error.text);
				cr_assert_eq(memcmp(data, sample.data.data + t.data_offset + first * row_nbytes, n * row_nbytes), 0, "tensor %llu",
					     (unsigned long long)i);
				if (n && row_nbytes)
					cr_assert_eq(brv_decode_rows(archive, i, first, n, data, n * row_nbytes - 1, NULL, &error), BRV_E_USAGE);
			}
		cr_expect_eq(brv_decode_rows(archive, i, rows, 1, data, sizeof data, NULL, &error), BRV_E_NOTFOUND);
		cr_expect_eq(brv_decode_rows(archive, i, 1, UINT64_MAX, data, sizeof data, NULL, &error), BRV_E_NOTFOUND);
	}
	brv_close(archive);
	sample_free(&sample);
	buffer_free(&bytes);
}

/* Stores the flag once some output is there. */
static int stop_later(void *context, uint64_t done, uint64_t total)
{
	(void)total;
	if (done > 100000)
		*(volatile int *)context = 1;
	return 0;
}

Test(list, cancelled_from_outside)
{
	struct buffer bytes;
	brv_archive *archive = open_many(&bytes);
	volatile int cancel = 1;
	brv_pool *pool;
	brv_error error;
	brv_info info;

	brv_get_info(archive, &info);
	cr_assert_eq(brv_pool_create(2, &pool, &error), BRV_SUCCESS);
	uint8_t *data = calloc(1, info.data_nbytes);
	brv_call call = { .struct_nbytes = sizeof call, .pool = pool, .cancel = &cancel };
	cr_expect_eq(brv_decode_data(archive, 0, data, info.data_nbytes, &call, &error), BRV_E_CANCELLED);
	cr_expect_eq(data[1], 0, "something was decoded");
	cancel = 0, call.progress = stop_later, call.progress_context = (void *)&cancel;
	cr_expect_eq(brv_decode_data(archive, 0, data, info.data_nbytes, &call, &error), BRV_E_CANCELLED);
	cancel = 0, call.progress = NULL;
	cr_expect_eq(brv_decode_data(archive, 0, data, info.data_nbytes, &call, &error), BRV_SUCCESS);
	cr_expect(many_is_data(data, 0, info.data_nbytes));
	free(data);
	brv_pool_free(pool);
	brv_close(archive);
	buffer_free(&bytes);
}

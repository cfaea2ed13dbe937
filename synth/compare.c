/* compare.c: an archive decoded through the public library and compared with the checkpoint that it was made from, window by window.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/compare.h"

#include <stdlib.h>

#include "runtime/brevis.h"

#define WINDOW_NBYTES (16ull << 20)

enum brv_status compare_archive(int fd, const struct checkpoint *c, unsigned threads, struct error *err)
{
	const uint64_t data = c->file_nbytes - 8 - c->header_nbytes;
	const struct brv_options options = { .struct_nbytes = sizeof(options), .memory_limit = 1ull << 40 };
	brv_archive *archive = NULL;
	brv_pool *pool = NULL;
	brv_error why = { "" };
	brv_info info;
	enum brv_status status = BRV_OK;
	uint8_t *a = malloc(WINDOW_NBYTES), *b = malloc(WINDOW_NBYTES);

	brv_status_code code = brv_open_fd(fd, &options, &archive, &why);
	if (code == BRV_SUCCESS)
		code = brv_pool_create(threads, &pool, &why);
	if (code == BRV_SUCCESS)
		brv_get_info(archive, &info);
	if (!a || !b)
		status = fail(err, BRV_MEMORY, "no memory to verify");
	else if (code == BRV_SUCCESS && (info.header_nbytes != c->header_nbytes || info.data_nbytes != data ||
					 memcmp(brv_header(archive), c->header, c->header_nbytes)))
		status = fail(err, BRV_OTHER, "verification failed: the header does not come back; please report this");
	const brv_call call = { .struct_nbytes = sizeof(call), .pool = pool };
	for (uint64_t at = 0; status == BRV_OK && code == BRV_SUCCESS && at < data;) {
		const uint64_t n = MIN(data - at, WINDOW_NBYTES);
		code = brv_decode_data(archive, at, a, n, &call, &why);
		if (code == BRV_SUCCESS)
			status = checkpoint_read(c, at, b, n, err);
		if (code == BRV_SUCCESS && status == BRV_OK && memcmp(a, b, n))
			status = fail(err, BRV_OTHER, "verification failed near data byte %llu: the input changed, or please report this",
				      (unsigned long long)at);
		at += n;
	}
	/* That memory or the disk failed says nothing about the archive. */
	if (status == BRV_OK && (code == BRV_E_MEMORY || code == BRV_E_IO))
		status = fail(err, (enum brv_status)code, "while verifying: %.200s", why.text);
	if (status == BRV_OK && code != BRV_SUCCESS)
		status = fail(err, BRV_OTHER, "verification failed: %.200s; please report this", why.text);
	brv_pool_free(pool);
	brv_close(archive);
	free(a);
	free(b);
	return status;
}

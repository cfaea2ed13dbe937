/* decode.h: from ranges of the data region to chunks, and chunks to threads. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_DECODE_H
#define RUNTIME_DECODE_H

#include "runtime/decoder.h"

/* Receives a part of the output: nbytes from byte `offset` of the data region. Called from several threads, at once and in any order, or (ordered)
 * one after the other, in ascending order and without gaps. */
typedef enum brv_status decode_sink_fn(void *context, const void *bytes, size_t nbytes, uint64_t offset, struct error *err);

/* nbytes bytes of the data region from `offset` go to dst; NULL: to the call's sink or, without one, nowhere but through the checksums. */
struct decode_range {
	uint64_t offset, nbytes;
	uint8_t *dst;
};

/* Ranges in any order; those of a pipe must ascend. */
struct decode_call {
	const struct decode_range *range;
	size_t nranges;
	decode_sink_fn *sink;
	void *sink_context;
	bool ordered;                   /* one range only */
	brv_pool *pool;                 /* NULL: this thread alone */
	brv_progress_fn progress;
	void *progress_context;
	const volatile int *cancel;     /* may be NULL; not 0: stop */
};
enum brv_status decode_data(struct brv_archive *archive, const struct decode_call *call, struct error *err);

#endif

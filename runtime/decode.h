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

/* The tensor that byte `offset` of the data region lies in: the last that begins there or before it. */
uint64_t tensor_at(const struct brv_archive *archive, uint64_t offset);

/* For caches: the data region falls into pieces of about 1 MiB that are whole chunks, so that no chunk is decoded for two of them. The piece
 * that byte `offset` of the data region lies in is bytes *low .. *high - 1. */
void decode_piece(const struct brv_archive *archive, uint64_t offset, uint64_t *low, uint64_t *high);

/* No piece of the archive has more bytes. */
uint64_t decode_piece_limit(const struct brv_archive *archive);

#endif

/* packed_header.h: the JSON header of a checkpoint out of its packed form (docs/FORMAT.md, 4.1): copies resolved, then entries written out of the index.
 *
 * Both halves use it: a reader to have the header, a writer to know that it will be had. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_PACKED_HEADER_H
#define COMMON_PACKED_HEADER_H

#include "common/archive.h"

/* Bytes of the packed form that are no literals, and marks in what it unpacks to. */
enum {
	PACKED_LITERAL = 0,             /* the next byte is a literal */
	PACKED_NAME = 1,                /* mark: a name begins */
	PACKED_REST = 2,                /* mark: the last name ends */
	PACKED_AGAIN = 3,               /* ..15: copies from the same distance as before */
	PACKED_COPY = 16,               /* ..31: copies that say their distance */
	PACKED_COPY_END = 32,
	PACKED_AGAIN_MIN = 2, PACKED_COPY_MIN = 3, /* shortest copies of either kind */
};

/* The size that the packed bytes say they unpack to, at most AR_MAX_HEADER_NBYTES; *at begins to read behind it. BRV_DAMAGED, BRV_LIMIT. */
enum brv_status packed_size(struct span packed, struct cursor *at, uint64_t *nbytes, struct error *err);

/* Unpacks exactly nbytes, using up what *at reads. BRV_DAMAGED. */
enum brv_status packed_unpack(struct cursor *at, uint8_t *out, uint64_t nbytes, struct error *err);

/* What an entry of the header says of a tensor. */
struct header_entry {
	const char *dtype;              /* NUL-terminated */
	const uint64_t *shape;
	size_t ndim;
	uint64_t begin, end;            /* data offsets */
};

/* The tensors whose entries are marked, in order; told where each name came to lie in the header. */
struct header_entries {
	uint64_t count;
	void *context;
	struct header_entry (*get)(void *context, uint64_t i);
	void (*name)(void *context, uint64_t i, uint64_t at, uint64_t nbytes);
};

/* Writes the header that marked text stands for to `out`, or, if that is NULL, only measures it: *nbytes, at most AR_MAX_HEADER_NBYTES. BRV_DAMAGED if
 * the marks are not those of all entries, BRV_LIMIT. */
enum brv_status header_expand(struct span marked, const struct header_entries *entries, uint8_t *out, uint64_t *nbytes, struct error *err);

#endif

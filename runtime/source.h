/* source.h: where an archive's bytes come from: a file, a pipe, memory, a callback. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SOURCE_H
#define RUNTIME_SOURCE_H

#include <stdatomic.h>

#include "common/base.h"
#include "common/status.h"
#include "runtime/brevis.h"

struct source {
	brv_reader reader;              /* if there is neither memory nor a descriptor */
	const uint8_t *memory;          /* or NULL */
	uint64_t nbytes;                /* UINT64_MAX: not known, a pipe */
	int fd;                         /* -1: none */
	bool owns_fd;
	bool sequential;                /* a pipe: reads must ascend, one at a time */
	bool drop_cache;                /* a file: what was read leaves the page cache again */
	atomic_bool waits;              /* a file: the last read had to wait for the disk */
	uint64_t at;                    /* of a pipe: next byte */
	int spool_fd;                   /* of a pipe: what was kept of it, from offset spool_at; -1: nothing */
	uint64_t spool_at;
};

/* A descriptor that cannot seek becomes a sequential source. On failure nothing is kept, and an owned fd is closed. */
enum brv_status source_from_fd(struct source *source, int fd, bool owns_fd, struct error *err);
enum brv_status source_from_path(struct source *source, const char *path, struct error *err);
void source_from_memory(struct source *source, const void *bytes, size_t nbytes);
void source_from_reader(struct source *source, const brv_reader *reader);
void source_free(struct source *source);

/* Exactly nbytes from offset into buffer. Thread-safe unless sequential; then reads must ascend. BRV_DAMAGED if the source ends
 * before, BRV_IO. */
enum brv_status source_read(struct source *source, uint64_t offset, void *buffer, size_t nbytes, struct error *err);

/* Starts reading ahead from a file, if reads have to wait for it; returns at once. */
void source_ahead(const struct source *source, uint64_t offset, uint64_t nbytes);

/* For a pipe: moves what is left of it, up to byte `end`, into an unlinked file in TMPDIR, after which reads go anywhere in it. */
enum brv_status source_spool(struct source *source, uint64_t end, struct error *err);

/* For a pipe that has been read to `end`: BRV_DAMAGED if there is more. */
enum brv_status source_expect_end(struct source *source, uint64_t end, struct error *err);

#endif

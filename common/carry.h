/* carry.h: files that are read to their end: into memory, or copied as they are while their checksum is taken. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_CARRY_H
#define COMMON_CARRY_H

#include "common/archive.h"
#include "common/outfile.h"

/* A file opened for reading, regular files only; -1: err is filled in, *status is BRV_IO or BRV_INPUT. */
int carry_open(const char *path, enum brv_status *status, struct error *err);

/* The rest of the file, at the end of *out. BRV_IO, BRV_MEMORY; BRV_LIMIT if it makes *out longer than `most` bytes. */
enum brv_status read_all(int fd, size_t most, struct buffer *out, struct error *err);

/* Reads fd from where it is to its end; writes the bytes to `out` from offset 0 unless it is NULL. Size and XXH3-64 of the bytes come back. *writing: a failure
 * is about the output. BRV_IO, BRV_MEMORY. */
enum brv_status carry(int fd, struct outfile *out, uint64_t *nbytes, uint64_t *sum, bool *writing, struct error *err);

#endif

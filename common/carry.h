/* carry.h: a file that is carried over as it is: copied, and its checksum taken on the way. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_CARRY_H
#define COMMON_CARRY_H

#include "common/outfile.h"

/* A file opened for reading, regular files only; -1: err is filled in, *status is BRV_IO or BRV_INPUT. */
int carry_open(const char *path, enum brv_status *status, struct error *err);

/* Reads fd from where it is to its end; writes the bytes to `out` from offset 0 unless it is NULL. Size and XXH3-64 of the bytes come back. *writing: a failure
 * is about the output. BRV_IO, BRV_MEMORY. */
enum brv_status carry(int fd, struct outfile *out, uint64_t *nbytes, uint64_t *sum, bool *writing, struct error *err);

#endif

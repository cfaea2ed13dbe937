/* many.h: an archive of many small tensors, written byte by byte. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MANY_H
#define TESTS_MANY_H

#include "common/archive.h"

/* An archive of many U8 tensors "t0", "t1", ... of size(i) bytes, chunks of 4096; byte k of the data region is the same in all of them. */
void many_write(unsigned count, uint64_t (*size)(unsigned), struct buffer *out);

/* A size for it: mostly small, many empty, one of 5 MiB. */
uint64_t many_mixed_size(unsigned i);

/* Whether these are the bytes of the data region from `offset`. */
bool many_is_data(const uint8_t *bytes, uint64_t offset, uint64_t nbytes);

#endif

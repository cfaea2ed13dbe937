/* sum.h: the checksum of a chunk: XXH3 by the widest vectors that the CPU has, where libxxhash can choose at run time.
 *
 * With checksums on by default this is a fifth of the time of the fastest programs. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SUM_H
#define RUNTIME_SUM_H

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h> /* redefines XXH3_64bits() */
#endif

static inline uint64_t chunk_checksum(const void *bytes, size_t nbytes) { return XXH3_64bits(bytes, nbytes); }

/* The same, block by block. */
static inline void sum_start(XXH3_state_t *sum) { XXH3_64bits_reset(sum); }
static inline void sum_add(XXH3_state_t *sum, const void *bytes, size_t nbytes) { XXH3_64bits_update(sum, bytes, nbytes); }
static inline uint64_t sum_of(const XXH3_state_t *sum) { return XXH3_64bits_digest(sum); }

#endif

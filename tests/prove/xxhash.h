/* xxhash.h: a checksum that may be any number, for proofs. SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVE_XXHASH_H
#define PROVE_XXHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t XXH3_64bits(const void *bytes, size_t nbytes);
uint64_t XXH3_64bits_withSeed(const void *bytes, size_t nbytes, uint64_t seed);

#endif

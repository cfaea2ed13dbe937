/* pack.h: words into a string of bits (docs/FORMAT.md, 1: packed words). SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_PACK_H
#define SYNTH_PACK_H

#include "common/base.h"

enum { PACK_PAD = 16 };

/* Writes n words of `width` bits, `base` subtracted from each mod 2^bits, as packed words of `bits` <= 64 bits: packed_nbytes(n, bits) bytes, and up
 * to PACK_PAD more may be overwritten. */
void pack_words(uint8_t *out, const void *words, size_t n, unsigned width, uint64_t base, unsigned bits);

#endif

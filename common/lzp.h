/* lzp.h: bytes that repeat in part, each bit coded with a probability that is learned on the way (docs/FORMAT.md, 2.1).
 *
 * A byte is first said to be, or not to be, the one that followed where the same three bytes came last (Bloom, "LZP: a new data compression
 * algorithm", 1996); if it is not, its bits follow, each in the context of those before it and of the byte before. Small and for small things: some 100 ns a byte that is not expected.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_LZP_H
#define COMMON_LZP_H

#include "common/archive.h"

/* Appends nbytes, at least 1, coded. False: no memory. */
bool lzp_encode(const uint8_t *bytes, size_t nbytes, struct buffer *out);

/* Decodes exactly nbytes, using `coded` up. BRV_DAMAGED if that is not possible, BRV_MEMORY. */
enum brv_status lzp_decode(struct span coded, uint8_t *out, size_t nbytes, struct error *err);

#endif

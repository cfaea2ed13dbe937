/* pack_header.h: the JSON header of a checkpoint, packed (docs/FORMAT.md, 4.1). SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_PACK_HEADER_H
#define SYNTH_PACK_HEADER_H

#include "synth/checkpoint.h"

/* Appends the words of stream 0 to `out`: the header without names and entries where they can be written out again byte by byte, and packed where that is
 * shorter. *flags: the prelude's. BRV_MEMORY. */
enum brv_status pack_header(const struct checkpoint *checkpoint, struct buffer *out, uint16_t *flags);

/* Appends nbytes of text packed. Deterministic. False: no memory. */
bool pack_text(const uint8_t *text, size_t nbytes, struct buffer *out);

#endif

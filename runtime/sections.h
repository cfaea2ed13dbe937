/* sections.h: the prelude and the four sections of an archive, read and decoded into memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SECTIONS_H
#define RUNTIME_SECTIONS_H

#include "runtime/parse.h"

/* Fills view->prelude, payload_offset, section[] and section_bytes (also on failure, to be freed); compares the checksum of the
 * sections. */
enum brv_status sections_read(struct view *view, struct source *source, uint64_t limit, struct error *err);

#endif

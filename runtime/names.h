/* names.h: names of tensors: where they stand, and which tensor has one. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_NAMES_H
#define RUNTIME_NAMES_H

#include "runtime/parse.h"

/* An open hash table of tensor streams. */
struct names {
	const struct view *view;
	const uint8_t *header;
	uint32_t *slot;                 /* stream index, 0: empty (stream 0 is no tensor) */
	uint64_t mask, seed;
};

/* Turns the distances of names in the decoded header into offsets, checks that names are inside it, UTF-8 and all different, and builds the
 * table. names_nbytes() is what it takes. BRV_DAMAGED, BRV_MEMORY. */
enum brv_status names_resolve(struct names *names, struct view *view, const uint8_t *header, uint64_t header_nbytes, struct error *err);
uint64_t names_nbytes(const struct view *view);
void names_free(struct names *names);

/* Index of the stream, 0 if no tensor has the name. */
uint32_t names_find(const struct names *names, const void *name, size_t nbytes);

struct span stream_name(const struct view *view, const uint8_t *header, const struct stream *stream);

#endif

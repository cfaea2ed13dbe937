/* verify.h: proves every operand, number and size of a parsed archive; afterwards nobody checks. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_VERIFY_H
#define RUNTIME_VERIFY_H

#include "runtime/parse.h"

/* Checks the meaning of all that the index says (docs/FORMAT.md, 4 to 8), but for names (names.h), the bodies of tables
 * (table_expand(), when they are first used) and what depends on payload. Sets data_offset of tensors. BRV_DAMAGED, BRV_VERSION,
 * BRV_LIMIT, BRV_MEMORY. */
enum brv_status verify(struct view *view, struct error *err);

/* Checks the refs of a chunk given the words that each of its registers has to produce. verify() has done so already unless the
 * program has a gate, whose argument's words depend on classes, which are payload. */
enum brv_status verify_refs(const struct view *view, const struct stream *stream, const struct chunk *chunk, const uint64_t *nwords,
			    struct error *err);

#endif

/* header.h: the JSON header of the checkpoint that an archive stands for. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_HEADER_H
#define RUNTIME_HEADER_H

#include "runtime/object.h"

/* Decodes stream 0, and unpacks it where it is packed, into archive->header, a NUL behind it; where it marks names, tells the tensors' streams where
 * theirs is. Streams are verified, programs planned. BRV_DAMAGED, BRV_LIMIT, BRV_MEMORY, BRV_IO. */
enum brv_status header_load(struct brv_archive *archive, struct error *err);

#endif

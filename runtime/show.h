/* show.h: a tensor's program as text, with the reason if there is none. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SHOW_H
#define RUNTIME_SHOW_H

#include "runtime/object.h"

/* brv_show() with a status; *length: of the whole text without its end, which may not have fitted. */
enum brv_status show_tensor(struct brv_archive *archive, uint64_t index, char *text, size_t size, size_t *length, struct error *err);

#endif

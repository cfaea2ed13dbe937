/* json_memory.h: whether jansson ran out of memory, which it reports as a fault of the text. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_JSON_MEMORY_H
#define SYNTH_JSON_MEMORY_H

#include "common/status.h"

/* Before a text is parsed: forgets what this thread failed to allocate. */
void json_memory_watch(void);

/* After parsing has failed: BRV_MEMORY if an allocation of this thread failed since, else BRV_INPUT. */
enum brv_status json_memory_verdict(void);

#endif

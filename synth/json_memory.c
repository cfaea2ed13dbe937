/* json_memory.c: jansson's allocations, watched (json_memory.h).
 *
 * When it cannot grow a string or an object, jansson says that the text is wrong there. A user would look for damage in a file that has
 * none. SPDX-License-Identifier: Apache-2.0 */
#include "synth/json_memory.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local bool failed;

static void *watched_malloc(size_t nbytes)
{
	void *block = malloc(nbytes);
	failed |= !block;
	return block;
}

void json_memory_watch(void)
{
	json_set_alloc_funcs(watched_malloc, free);
	failed = false;
}

enum brv_status json_memory_verdict(void) { return failed ? BRV_MEMORY : BRV_INPUT; }

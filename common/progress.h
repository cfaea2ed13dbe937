/* progress.h: one line on stderr that says how far a command is; nothing unless stderr is a terminal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include "common/base.h"

struct progress {
	bool on, shown;
	const char *label;              /* the caller's, for as long as the progress lives */
	uint64_t start_ns, last_ns;
};

/* wanted: false for -q, --no-progress and --json. */
void progress_start(struct progress *progress, const char *label, bool wanted);

/* Shows done of total (bytes, say), at most ten times a second. The signature is brv_progress_fn's; always returns 0. Not
 * thread-safe by itself. */
int progress_update(void *progress, uint64_t done, uint64_t total);

/* Removes the line; call before anything else is printed. */
void progress_end(struct progress *progress);

#endif

/* stage.h: a directory that appears whole or not at all: filled under a temporary name beside its target, then renamed.
 *
 * A directory that is there already stays the same one, and files go into it one by one, each whole or not at all: into an empty one, from which they are
 * removed again on failure, or, forced, among others, which stay. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_STAGE_H
#define COMMON_STAGE_H

#include "common/temporary.h"

struct stage {
	char *target;                   /* owned */
	char *temporary;                /* owned; NULL: written in place */
	bool removes;                   /* what was made goes if the stage is abandoned */
	int fd;                         /* of the temporary, locked */
	char **made;                    /* paths in it, in the order in which they were made; owned */
	size_t used, capacity;
	struct doomed doomed;           /* the same list, for signals; empty if nothing is removed */
};

/* Starts the directory `path` for at most `entries` files and directories. BRV_USAGE if it is there, is not empty, and not `force`, or is no directory. BRV_IO, BRV_MEMORY. On
 * failure there is nothing to abandon. */
enum brv_status stage_open(struct stage *stage, const char *path, size_t entries, bool force, struct error *err);

/* Where a file is to be written; the stage's. NULL: no memory, or more entries than were asked for. */
const char *stage_file(struct stage *stage, const char *relative);

/* Makes a directory in it; parents come first. */
enum brv_status stage_directory(struct stage *stage, const char *relative, struct error *err);

/* Gives the directory its name. Whatever happens, the stage is finished afterwards. */
enum brv_status stage_commit(struct stage *stage, struct error *err);

/* Removes what was made, unless it was written among other files. Harmless after stage_commit(). */
void stage_abandon(struct stage *stage);

#endif

/* walk.h: everything below a directory, in one sorted list.
 *
 * Links are followed: what is listed is what a reader of the paths would find. A link that leads back into a directory above it, and
 * what is neither file nor directory (a device, a socket, a pipe), is an error and never read. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_WALK_H
#define COMMON_WALK_H

#include "common/base.h"
#include "common/status.h"

enum { WALK_MAX_DEPTH = 64, WALK_MAX_ENTRIES = 1 << 17 };

struct walk_entry {
	char *path;                     /* relative to the root, no leading or doubled slash; owned */
	bool directory;
	uint64_t nbytes;                /* of a file */
};

struct walk {
	struct walk_entry *entry;       /* by the bytes of their paths */
	size_t count, capacity;
};

/* Lists what is below `root`, not root itself. BRV_IO, BRV_INPUT (links that loop, special files), BRV_LIMIT, BRV_MEMORY; on failure there is
 * nothing to free. */
enum brv_status walk_directory(const char *root, struct walk *out, struct error *err);
void walk_free(struct walk *walk);

/* The index of the entry, or -1. */
int64_t walk_find(const struct walk *walk, const char *path);

/* "root/path", malloc'ed; NULL if there is no memory. */
char *path_join(const char *root, const char *path);

/* Whether a file or directory is `root` or below it, links followed: 1, 0, or -1 and errno. It need not be there yet if its directory is. */
int path_lies_in(const char *path, const char *root);

bool has_suffix(const char *text, const char *suffix);

#endif

/* mount_archives.h: the archives of a mount, opened when they are needed and closed again when others are.
 *
 * An open archive keeps its index, a descriptor and the memory of each thread that decoded from it; a checkpoint may have hundreds of
 * archives, of which a loader reads a few at a time. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_MOUNT_ARCHIVES_H
#define RUNTIME_MOUNT_ARCHIVES_H

#include <pthread.h>

#include "runtime/brevis.h"
#include "runtime/mount_tree.h"

struct mount_open;

struct mount_archives {
	struct mount_tree *tree;
	pthread_mutex_t lock;
	struct mount_open *open;        /* by node */
	unsigned nopen;
	uint64_t clock;                 /* counts uses */
};

/* Opens every archive once, and writes the sizes of what they stand for into the tree. *piece_limit: the most bytes that a piece of any
 * of them has (decode_piece()). On failure *about may be the source that the error is about, and free_mount_archives() is due. */
enum brv_status mount_archives_make(struct mount_archives *archives, struct mount_tree *tree, uint64_t *piece_limit, const char **about,
				    struct error *err);
void free_mount_archives(struct mount_archives *archives);

/* The archive of a node; it stays open until as many calls of mount_archives_put(). Thread-safe. BRV_IO if the file has changed. */
enum brv_status mount_archives_get(struct mount_archives *archives, uint32_t node, brv_archive **out, struct error *err);
void mount_archives_share(struct mount_archives *archives, uint32_t node); /* once more for one that the caller has */
void mount_archives_put(struct mount_archives *archives, uint32_t node);

#endif

/* mount_tree.h: the files and directories that a mount shows: found and checked before mounting, immutable from then on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_MOUNT_TREE_H
#define RUNTIME_MOUNT_TREE_H

#include <sys/stat.h>

#include "common/manifest.h"

struct mount_node {
	const char *path, *name;        /* as shown, below the root, and the last part of it; "" for the root */
	const char *source;             /* the file below root_fd that its bytes come from */
	enum manifest_kind kind;
	uint32_t parent;
	uint32_t first, count;          /* of a directory: its children are nodes first .. first + count - 1, ascending by name */
	uint64_t nbytes;                /* as shown; UINT64_MAX until it is known */
	struct stat from;               /* of the source */
};

/* Node 0 is the root; which number a node has depends on the shown paths only. */
struct mount_tree {
	int root_fd;                    /* the directory that sources are below; -1: not open */
	struct manifest manifest;       /* owns the texts */
	struct mount_node *node;
	uint32_t nnodes;
};

/* The tree of a compressed directory, or of one archive, whose file is then called the last part of `shown`. On failure *about, unless NULL, is
 * the source that the error is about, and free_mount_tree() is due all the same. */
enum brv_status mount_tree_make(struct mount_tree *tree, const char *path, const char *shown, const char **about, struct error *err);
void free_mount_tree(struct mount_tree *tree);

/* The child of that name, or NULL. */
const struct mount_node *mount_tree_find(const struct mount_tree *tree, const struct mount_node *directory, const char *name);

/* Opens the source of a node for reading. BRV_IO if it cannot be, or is no longer the file that it was when the tree was made. */
enum brv_status mount_tree_open(const struct mount_tree *tree, const struct mount_node *node, int *fd, struct error *err);

#endif

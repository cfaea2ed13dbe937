/* mount_tree.c: the nodes of a mount, made from the list of a compressed directory (mount_tree.h).
 *
 * Sorted by depth, then by path, the children of a directory stand side by side and in the order of their names: a node is an entry
 * of the list, and nothing has to be searched but by bisection. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mount_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned depth_of(const char *path, size_t n)
{
	unsigned depth = n > 0;
	for (size_t i = 0; i < n; i++)
		depth += path[i] == '/';
	return depth;
}

static int by_level(const void *left, const void *right)
{
	const char *a = ((const struct mount_node *)left)->path, *b = ((const struct mount_node *)right)->path;
	unsigned x = depth_of(a, strlen(a)), y = depth_of(b, strlen(b));
	return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

/* The node whose path is the first n bytes of `path`; there is one (manifest.h). */
static uint32_t find_directory(const struct mount_tree *tree, const char *path, size_t n)
{
	uint32_t low = 0, high = tree->nnodes;
	unsigned depth = depth_of(path, n);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		const char *there = tree->node[middle].path;
		size_t there_n = strlen(there);
		unsigned there_depth = depth_of(there, there_n);
		int order = there_depth != depth ? (there_depth > depth) - (there_depth < depth) : memcmp(there, path, MIN(there_n, n));
		if (order == 0)
			order = (there_n > n) - (there_n < n);
		if (order <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static enum brv_status make_nodes(struct mount_tree *tree, struct error *err)
{
	const struct manifest *manifest = &tree->manifest;
	tree->node = calloc(manifest->count + 1, sizeof *tree->node);
	if (!tree->node)
		return fail(err, BRV_MEMORY, "no memory for %zu files", manifest->count);
	tree->nnodes = (uint32_t)manifest->count + 1;
	tree->node[0] = (struct mount_node){ .path = "", .name = "", .source = ".", .kind = MANIFEST_DIRECTORY };
	for (size_t i = 0; i < manifest->count; i++) {
		const struct manifest_entry *entry = &manifest->entry[i];
		const char *slash = strrchr(entry->path, '/');
		tree->node[i + 1] = (struct mount_node){
			.path = entry->path, .name = slash ? slash + 1 : entry->path, .source = entry->stored, .kind = entry->kind,
			.nbytes = entry->kind == MANIFEST_DIRECTORY ? 0 : entry->nbytes,
		};
	}
	qsort(tree->node + 1, manifest->count, sizeof *tree->node, by_level);
	for (uint32_t i = 1; i < tree->nnodes; i++) {
		struct mount_node *node = &tree->node[i];
		size_t n = (size_t)(node->name - node->path);
		node->parent = find_directory(tree, node->path, n ? n - 1 : 0);
		struct mount_node *parent = &tree->node[node->parent];
		if (parent->count++ == 0)
			parent->first = i;
	}
	return BRV_OK;
}

/* Whether the sources are there; their times, and the sizes of those that are shown as they are. */
static enum brv_status stat_nodes(struct mount_tree *tree, const char **about, struct error *err)
{
	for (uint32_t i = 0; i < tree->nnodes; i++) {
		struct mount_node *node = &tree->node[i];
		*about = i ? node->source : NULL;
		if (fstatat(tree->root_fd, node->source, &node->from, 0) != 0)
			return fail(err, BRV_IO, "cannot open it: %s", strerror(errno));
		if (node->kind != MANIFEST_DIRECTORY && !S_ISREG(node->from.st_mode))
			return fail(err, BRV_DAMAGED, "expected a regular file");
		if (node->kind != MANIFEST_FILE)
			continue;
		if (node->nbytes != UINT64_MAX && node->nbytes != (uint64_t)node->from.st_size)
			return fail(err, BRV_DAMAGED, "expected %llu bytes, as " MANIFEST_NAME " says, found %llu",
				    (unsigned long long)node->nbytes, (unsigned long long)node->from.st_size);
		node->nbytes = (uint64_t)node->from.st_size;
	}
	*about = NULL;
	return BRV_OK;
}

/* One archive is a directory with one entry. Open is the directory that it is in, so that it is found from any working directory. */
static enum brv_status list_archive(struct mount_tree *tree, const char *path, const char *shown, struct error *err)
{
	const char *slash = strrchr(path, '/'), *shown_slash = strrchr(shown, '/');
	char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!directory)
		return fail(err, BRV_MEMORY, "out of memory");
	tree->root_fd = TEMP_FAILURE_RETRY(open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC));
	free(directory);
	if (tree->root_fd < 0)
		return fail(err, BRV_IO, "cannot open it: %s", strerror(errno));
	if (!manifest_add(&tree->manifest, shown_slash ? shown_slash + 1 : shown, slash ? slash + 1 : path, MANIFEST_ARCHIVE, UINT64_MAX))
		return fail(err, BRV_MEMORY, "out of memory");
	return BRV_OK;
}

enum brv_status mount_tree_make(struct mount_tree *tree, const char *path, const char *shown, const char **about, struct error *err)
{
	struct stat found;
	*about = NULL;
	*tree = (struct mount_tree){ .root_fd = -1 };
	if (stat(path, &found) != 0)
		return fail(err, BRV_IO, "cannot open it: %s", strerror(errno));
	if (S_ISDIR(found.st_mode)) {
		tree->root_fd = TEMP_FAILURE_RETRY(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
		if (tree->root_fd < 0)
			return fail(err, BRV_IO, "cannot open it: %s", strerror(errno));
		TRY(manifest_of_directory(path, &tree->manifest, NULL, err));
	} else {
		TRY(list_archive(tree, path, shown, err));
	}
	TRY(make_nodes(tree, err));
	return stat_nodes(tree, about, err);
}

void free_mount_tree(struct mount_tree *tree)
{
	manifest_free(&tree->manifest);
	free(tree->node);
	if (tree->root_fd >= 0)
		close(tree->root_fd);
	*tree = (struct mount_tree){ .root_fd = -1 };
}

const struct mount_node *mount_tree_find(const struct mount_tree *tree, const struct mount_node *directory, const char *name)
{
	for (uint32_t low = directory->first, high = low + directory->count; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(name, tree->node[middle].name);
		if (order == 0)
			return &tree->node[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

enum brv_status mount_tree_open(const struct mount_tree *tree, const struct mount_node *node, int *fd, struct error *err)
{
	struct stat now;
	*fd = TEMP_FAILURE_RETRY(openat(tree->root_fd, node->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	if (*fd < 0)
		return fail(err, BRV_IO, "cannot open it: %s", strerror(errno));
	if (fstat(*fd, &now) == 0 && same_file(&now, &node->from))
		return BRV_OK;
	close(*fd);
	*fd = -1;
	return fail(err, BRV_IO, "changed since it was mounted");
}

/* mount_archives.c: which archives of a mount are open (mount_archives.h). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mount_archives.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/decode.h"

enum { MAX_IDLE = 8 };                  /* archives that stay open though nobody uses them */

struct mount_open {
	brv_archive *archive;           /* NULL: closed */
	int fd;
	unsigned users;
	uint64_t used;                  /* the clock when it was got last */
};

/* The lock is held while an archive is opened: it takes milliseconds and happens seldom. */
static enum brv_status open_archive(struct mount_archives *archives, uint32_t node, struct error *err)
{
	struct mount_open *open = &archives->open[node];
	brv_error error;
	TRY(mount_tree_open(archives->tree, &archives->tree->node[node], &open->fd, err));
	brv_status_code status = brv_open_fd(open->fd, NULL, &open->archive, &error);
	if (status != BRV_SUCCESS) {
		close(open->fd);
		return fail(err, (enum brv_status)status, "%s", error.text);
	}
	archives->nopen++;
	return BRV_OK;
}

static void close_archive(struct mount_archives *archives, struct mount_open *open)
{
	brv_close(open->archive);
	close(open->fd);
	open->archive = NULL;
	archives->nopen--;
}

/* Closes what has been idle longest. */
static void close_idle(struct mount_archives *archives)
{
	struct mount_open *oldest = NULL;
	for (uint32_t i = 0; i < archives->tree->nnodes; i++) {
		struct mount_open *open = &archives->open[i];
		if (open->archive && !open->users && (!oldest || open->used < oldest->used))
			oldest = open;
	}
	if (oldest)
		close_archive(archives, oldest);
}

enum brv_status mount_archives_get(struct mount_archives *archives, uint32_t node, brv_archive **out, struct error *err)
{
	struct mount_open *open = &archives->open[node];
	enum brv_status status = BRV_OK;
	pthread_mutex_lock(&archives->lock);
	if (!open->archive) {
		if (archives->nopen >= MAX_IDLE)
			close_idle(archives);
		status = open_archive(archives, node, err);
	}
	if (status == BRV_OK) {
		open->users++;
		open->used = ++archives->clock;
	}
	*out = open->archive;
	pthread_mutex_unlock(&archives->lock);
	return status;
}

void mount_archives_share(struct mount_archives *archives, uint32_t node)
{
	pthread_mutex_lock(&archives->lock);
	archives->open[node].users++;
	pthread_mutex_unlock(&archives->lock);
}

void mount_archives_put(struct mount_archives *archives, uint32_t node)
{
	pthread_mutex_lock(&archives->lock);
	archives->open[node].users--;
	if (archives->nopen > MAX_IDLE)
		close_idle(archives);
	pthread_mutex_unlock(&archives->lock);
}

static enum brv_status check_archive(struct mount_archives *archives, uint32_t number, uint64_t *piece_limit, struct error *err)
{
	struct mount_node *node = &archives->tree->node[number];
	brv_archive *archive;
	brv_info info;
	TRY(mount_archives_get(archives, number, &archive, err));
	brv_get_info(archive, &info);
	*piece_limit = MAX(*piece_limit, decode_piece_limit(archive));
	mount_archives_put(archives, number);
	if (node->nbytes != UINT64_MAX && node->nbytes != info.file_nbytes)
		return fail(err, BRV_DAMAGED, "expected an archive of %llu bytes, as " MANIFEST_NAME " says, found one of %llu",
			    (unsigned long long)node->nbytes, (unsigned long long)info.file_nbytes);
	node->nbytes = info.file_nbytes;
	return BRV_OK;
}

enum brv_status mount_archives_make(struct mount_archives *archives, struct mount_tree *tree, uint64_t *piece_limit, const char **about,
				    struct error *err)
{
	*piece_limit = 0;
	*archives = (struct mount_archives){ .tree = tree, .open = calloc(tree->nnodes, sizeof *archives->open) };
	pthread_mutex_init(&archives->lock, NULL);
	if (!archives->open)
		return fail(err, BRV_MEMORY, "no memory for %u archives", tree->nnodes);
	for (uint32_t i = 0; i < tree->nnodes; i++) {
		*about = tree->node[i].source;
		if (tree->node[i].kind == MANIFEST_ARCHIVE)
			TRY(check_archive(archives, i, piece_limit, err));
	}
	*about = NULL;
	return BRV_OK;
}

void free_mount_archives(struct mount_archives *archives)
{
	for (uint32_t i = 0; archives->open && i < archives->tree->nnodes; i++)
		if (archives->open[i].archive)
			close_archive(archives, &archives->open[i]);
	free(archives->open);
	if (archives->tree)
		pthread_mutex_destroy(&archives->lock);
	*archives = (struct mount_archives){ 0 };
}

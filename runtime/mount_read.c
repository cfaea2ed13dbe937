/* mount_read.c: a part of an original file: the 8 bytes of the header's size, the header, tensors (mount_read.h).
 *
 * Nothing is copied: the reply points into the archive and the cache, which keep still until it has been sent. Only what lies in a damaged
 * piece, or finds no room, is decoded anew, exactly those bytes: so damage hurts no more than the chunks it is in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mount_read.h"

#include <stdlib.h>

static void add_part(struct mount_reply *reply, const void *bytes, size_t nbytes)
{
	assert(reply->nparts < MOUNT_MAX_PARTS);
	reply->part[reply->nparts++] = (struct iovec){ .iov_base = (void *)bytes, .iov_len = nbytes };
}

/* Adds the bytes of a region of the file that lie in the range, and moves the range's beginning behind them. */
static void add_region(struct mount_reply *reply, const void *bytes, uint64_t region_offset, uint64_t region_nbytes, uint64_t *offset,
		       uint64_t end)
{
	uint64_t stop = MIN(end, region_offset + region_nbytes);
	if (*offset >= stop)
		return;
	add_part(reply, (const uint8_t *)bytes + (*offset - region_offset), stop - *offset);
	*offset = stop;
}

/* The rest of the range, decoded for this read alone. */
static enum brv_status add_own(struct mount_reply *reply, const brv_archive *archive, uint64_t offset, size_t nbytes, struct error *err)
{
	brv_error error;
	reply->own = malloc(nbytes);
	if (!reply->own)
		return fail(err, BRV_MEMORY, "no memory for a read");
	brv_status_code status = brv_decode_data(archive, offset, reply->own, nbytes, NULL, &error);
	if (status != BRV_SUCCESS)
		return fail(err, (enum brv_status)status, "%s", error.text);
	add_part(reply, reply->own, nbytes);
	return BRV_OK;
}

/* Bytes offset .. end - 1 of the data region. */
static enum brv_status add_data(struct mount_cache *cache, uint32_t node, brv_archive *archive, uint64_t offset, uint64_t end,
				struct mount_reply *reply, struct error *err)
{
	while (offset < end) {
		struct mount_piece piece;
		if (!mount_cache_get(cache, node, archive, offset, reply->npieces == 0, &piece))
			return add_own(reply, archive, offset, end - offset, err);
		size_t nbytes = MIN(end, piece.offset + piece.nbytes) - offset;
		assert(reply->npieces < MOUNT_MAX_PIECES);
		reply->held[reply->npieces].piece = piece;
		reply->held[reply->npieces++].nbytes = nbytes;
		if (!piece.bytes)
			return add_own(reply, archive, offset, end - offset, err);
		add_part(reply, piece.bytes + (offset - piece.offset), nbytes);
		offset += nbytes;
	}
	return BRV_OK;
}

/* How many pieces to ask for ahead. The kernel sends the requests of one reader from several threads, so they come in about the order of their
 * offsets; a reader that goes on gets twice as many each time. */
static unsigned note_read(struct mount_reader *reader, uint64_t offset, uint64_t end, unsigned limit)
{
	enum { SLACK = 4 * MOUNT_READ_NBYTES };
	pthread_mutex_lock(&reader->lock);
	bool goes_on = reader->next != UINT64_MAX && offset <= reader->next + SLACK && end + SLACK >= reader->next;
	reader->next = goes_on ? MAX(reader->next, end) : end;
	reader->depth = goes_on ? MIN(2 * reader->depth + 1, limit) : 0;
	unsigned depth = reader->depth;
	pthread_mutex_unlock(&reader->lock);
	return depth;
}

enum brv_status mount_read(struct mount_cache *cache, struct mount_archives *archives, struct mount_reader *reader, uint64_t offset,
			   size_t nbytes, struct mount_reply *reply, struct error *err)
{
	const struct mount_node *node = &archives->tree->node[reader->node];
	uint64_t end = offset < node->nbytes ? offset + MIN((uint64_t)nbytes, node->nbytes - offset) : offset;
	brv_info info;
	reply->nparts = reply->npieces = 0;
	reply->own = NULL;
	reply->node = reader->node;
	TRY(mount_archives_get(archives, reader->node, &reply->archive, err));
	brv_get_info(reply->archive, &info);
	store_u64(reply->header_size, info.header_nbytes);
	uint64_t data_at = sizeof reply->header_size + info.header_nbytes, at = offset;
	add_region(reply, reply->header_size, 0, sizeof reply->header_size, &at, end);
	add_region(reply, brv_header(reply->archive), sizeof reply->header_size, info.header_nbytes, &at, end);
	unsigned depth = note_read(reader, offset, end, mount_cache_depth(cache));
	if (depth && end > data_at)
		mount_cache_ahead(cache, reader->node, reply->archive, MAX(at, data_at) - data_at, depth);
	return at < end ? add_data(cache, reader->node, reply->archive, at - data_at, end - data_at, reply, err) : BRV_OK;
}

void mount_read_end(struct mount_cache *cache, struct mount_archives *archives, struct mount_reply *reply)
{
	for (unsigned i = 0; i < reply->npieces; i++)
		mount_cache_put(cache, &reply->held[i].piece, reply->held[i].nbytes);
	free(reply->own);
	if (reply->archive)
		mount_archives_put(archives, reply->node);
}

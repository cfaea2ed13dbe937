/* spool.c: memory, then an unlinked temporary file. SPDX-License-Identifier: Apache-2.0 */
#include "synth/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/temporary.h"

void spool_init(struct spool *spool, const char *directory, uint64_t limit)
{
	*spool = (struct spool){ .directory = directory, .limit = limit, .fd = -1 };
}

enum brv_status write_all(int fd, const void *bytes, uint64_t nbytes, struct error *err)
{
	for (const uint8_t *p = bytes; nbytes;) {
		ssize_t put = write(fd, p, MIN(nbytes, 1u << 30));
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return fail(err, BRV_IO, "write: %s", strerror(errno));
		p += put, nbytes -= (uint64_t)put;
	}
	return BRV_OK;
}

/* Small ones are put behind each other: of a hundred thousand tensors, most have few bytes. */
static bool hold(struct spool *spool, struct buffer *bytes)
{
	enum { SMALL = 1 << 16 };
	struct buffer *last = spool->nheld ? &spool->held[spool->nheld - 1] : NULL;

	spool->held_nbytes += bytes->nbytes;
	if (last && last->nbytes + bytes->nbytes <= SMALL) {
		buffer_put(last, bytes->data, bytes->nbytes);
		buffer_free(bytes);
		return !last->failed;
	}
	if (!spool->held || spool->nheld == spool->capacity) {
		const size_t capacity = spool->capacity ? 2 * spool->capacity : 64;
		struct buffer *held = realloc(spool->held, capacity * sizeof(*held));
		if (!held)
			return false;
		spool->held = held, spool->capacity = capacity;
	}
	spool->held[spool->nheld++] = *bytes;
	*bytes = (struct buffer){ 0 };
	return true;
}

enum brv_status spool_take(struct spool *spool, struct buffer *bytes, struct error *err)
{
	spool->nbytes += bytes->nbytes;
	if (spool->fd < 0 && spool->held_nbytes + bytes->nbytes <= spool->limit)
		return hold(spool, bytes) ? BRV_OK : fail(err, BRV_MEMORY, "no memory for the payload");
	if (spool->fd < 0 && (spool->fd = temporary_unnamed(spool->directory)) < 0)
		return fail(err, BRV_IO, "a temporary file in %s: %s", spool->directory, strerror(errno));
	const enum brv_status status = write_all(spool->fd, bytes->data, bytes->nbytes, err);
	buffer_free(bytes);
	return status;
}

/* The file from `at` on through user memory: for file systems between which the kernel cannot copy. */
static enum brv_status copy_by_hand(struct spool *spool, int fd, uint64_t at, struct error *err)
{
	enum { BLOCK = 1 << 20 };
	const uint64_t nbytes = spool->nbytes - spool->held_nbytes;
	uint8_t *block = malloc(BLOCK);
	enum brv_status status = block ? BRV_OK : fail(err, BRV_MEMORY, "no memory for a copy");

	while (status == BRV_OK && at < nbytes) {
		ssize_t got = pread(spool->fd, block, MIN((uint64_t)BLOCK, nbytes - at), (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			status = fail(err, BRV_IO, "read of the spooled payload: %s", got ? strerror(errno) : "it ended early");
		else
			status = write_all(fd, block, (uint64_t)got, err);
		at += got > 0 ? (uint64_t)got : 0;
	}
	free(block);
	return status;
}

enum brv_status spool_copy(struct spool *spool, int fd, struct error *err)
{
	const uint64_t nbytes = spool->nbytes - spool->held_nbytes; /* of the file */
	off_t from = 0;

	for (size_t i = 0; i < spool->nheld; i++)
		TRY(write_all(fd, spool->held[i].data, spool->held[i].nbytes, err));
	while ((uint64_t)from < nbytes) {
		ssize_t put = copy_file_range(spool->fd, &from, fd, NULL, MIN(nbytes - (uint64_t)from, 1u << 30), 0);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return copy_by_hand(spool, fd, (uint64_t)from, err);
	}
	return BRV_OK;
}

void spool_free(struct spool *spool)
{
	for (size_t i = 0; i < spool->nheld; i++)
		buffer_free(&spool->held[i]);
	free(spool->held);
	spool->held = NULL, spool->nheld = spool->capacity = 0;
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
}

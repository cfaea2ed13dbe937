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

static enum brv_status write_all(int fd, const uint8_t *p, uint64_t nbytes, struct error *err)
{
	while (nbytes) {
		ssize_t put = write(fd, p, MIN(nbytes, 1u << 30));
		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return fail(err, BRV_IO, "write: %s", strerror(errno));
		p += put, nbytes -= (uint64_t)put;
	}
	return BRV_OK;
}

enum brv_status spool_put(struct spool *spool, const void *bytes, size_t nbytes, struct error *err)
{
	spool->nbytes += nbytes;
	if (spool->fd < 0 && spool->memory.nbytes + nbytes <= spool->limit) {
		buffer_put(&spool->memory, bytes, nbytes);
		return spool->memory.failed ? fail(err, BRV_MEMORY, "no memory for the payload") : BRV_OK;
	}
	if (spool->fd < 0) {
		spool->fd = temporary_unnamed(spool->directory);
		if (spool->fd < 0)
			return fail(err, BRV_IO, "a temporary file in %s: %s", spool->directory, strerror(errno));
		TRY(write_all(spool->fd, spool->memory.data, spool->memory.nbytes, err));
		buffer_free(&spool->memory);
	}
	return write_all(spool->fd, bytes, nbytes, err);
}

/* Through user memory: for file systems between which the kernel cannot copy. */
static enum brv_status copy_by_hand(struct spool *spool, int fd, uint64_t at, struct error *err)
{
	enum { BLOCK = 1 << 20 };
	uint8_t *block = malloc(BLOCK);
	enum brv_status status = block ? BRV_OK : fail(err, BRV_MEMORY, "no memory for a copy");

	while (status == BRV_OK && at < spool->nbytes) {
		ssize_t got = pread(spool->fd, block, MIN((uint64_t)BLOCK, spool->nbytes - at), (off_t)at);
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
	off_t from = 0;

	if (spool->fd < 0)
		return write_all(fd, spool->memory.data, spool->memory.nbytes, err);
	while ((uint64_t)from < spool->nbytes) {
		ssize_t put = copy_file_range(spool->fd, &from, fd, NULL, MIN(spool->nbytes - (uint64_t)from, 1u << 30), 0);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return copy_by_hand(spool, fd, (uint64_t)from, err);
	}
	return BRV_OK;
}

void spool_free(struct spool *spool)
{
	buffer_free(&spool->memory);
	if (spool->fd >= 0)
		close(spool->fd);
	spool->fd = -1;
}

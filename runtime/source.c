/* source.c: where an archive's bytes come from (source.h).
 *
 * Files are read with pread and never mapped: one that shrinks while it is read gives an error and no SIGBUS.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/temporary.h"

enum { READ_MAX = 1 << 30, SKIP_NBYTES = 1 << 16, SPOOL_NBYTES = 1 << 20 };

/* Beside errno values: the source has fewer bytes. */
enum { ENDED = -1 };

static int read_at(int fd, uint64_t offset, uint8_t *at, size_t nbytes)
{
	while (nbytes > 0) {
		ssize_t done = pread(fd, at, MIN(nbytes, (size_t)READ_MAX), (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : ENDED;
		at += done;
		offset += (size_t)done;
		nbytes -= (size_t)done;
	}
	return 0;
}

/* Of a file, first what the page cache has: whether a read has to wait, and reading ahead pays, is known only so. */
static int read_file(struct source *source, uint64_t offset, uint8_t *at, size_t nbytes)
{
	const struct iovec part = { at, MIN(nbytes, (size_t)READ_MAX) };
	const ssize_t cached = preadv2(source->fd, &part, 1, (off_t)offset, RWF_NOWAIT);
	const size_t done = cached > 0 ? (size_t)cached : 0;
	const bool wait = done < nbytes;
	if (wait != atomic_load_explicit(&source->waits, memory_order_relaxed))
		atomic_store_explicit(&source->waits, wait, memory_order_relaxed);
	const int number = read_at(source->fd, offset + done, at + done, nbytes - done);
	if (source->drop_cache)
		posix_fadvise(source->fd, (off_t)offset, (off_t)nbytes, POSIX_FADV_DONTNEED);
	return number;
}

void source_ahead(const struct source *source, uint64_t offset, uint64_t nbytes)
{
	if (source->fd >= 0 && source->nbytes != UINT64_MAX && nbytes && atomic_load_explicit(&source->waits, memory_order_relaxed))
		posix_fadvise(source->fd, (off_t)offset, (off_t)nbytes, POSIX_FADV_WILLNEED);
}

/* The next nbytes of a pipe. */
static int read_on(struct source *source, uint8_t *at, size_t nbytes)
{
	while (nbytes > 0) {
		ssize_t done = read(source->fd, at, MIN(nbytes, (size_t)READ_MAX));
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : ENDED;
		at += done;
		source->at += (size_t)done;
		nbytes -= (size_t)done;
	}
	return 0;
}

static int read_pipe(struct source *source, uint64_t offset, uint8_t *buffer, size_t nbytes)
{
	uint8_t skipped[SKIP_NBYTES];
	if (nbytes == 0)
		return 0;
	if (source->spool_fd >= 0 && offset >= source->spool_at)
		return read_at(source->spool_fd, offset - source->spool_at, buffer, nbytes);
	if (offset < source->at)
		return ESPIPE;
	while (source->at < offset) {
		int number = read_on(source, skipped, MIN(offset - source->at, sizeof skipped));
		if (number)
			return number;
	}
	return read_on(source, buffer, nbytes);
}

static int read_any(struct source *source, uint64_t offset, void *buffer, size_t nbytes)
{
	if (offset > source->nbytes || nbytes > source->nbytes - offset)
		return ENDED;
	if (source->memory) {
		memcpy(buffer, source->memory + offset, nbytes);
		return 0;
	}
	if (source->fd < 0)
		return nbytes ? source->reader.read(source->reader.context, offset, buffer, nbytes) : 0;
	return source->nbytes == UINT64_MAX ? read_pipe(source, offset, buffer, nbytes) : read_file(source, offset, buffer, nbytes);
}

enum brv_status source_read(struct source *source, uint64_t offset, void *buffer, size_t nbytes, struct error *err)
{
	int number = read_any(source, offset, buffer, nbytes);
	if (number == 0)
		return BRV_OK;
	if (number == ENDED)
		return fail(err, BRV_DAMAGED, "the archive is cut short: it ends within the %llu bytes at %llu", (unsigned long long)nbytes,
			    (unsigned long long)offset);
	return fail(err, BRV_IO, "cannot read %llu bytes at %llu of the archive: %s", (unsigned long long)nbytes, (unsigned long long)offset,
		    strerror(number));
}

enum brv_status source_from_fd(struct source *source, int fd, bool owns_fd, struct error *err)
{
	struct stat st;
	*source = (struct source){ .fd = fd, .owns_fd = owns_fd, .spool_fd = -1, .nbytes = UINT64_MAX };
	int number = fstat(fd, &st) == 0 ? 0 : errno;
	if (number == 0 && S_ISDIR(st.st_mode))
		number = EISDIR;
	if (number) {
		source_free(source);
		return fail(err, BRV_IO, "cannot read it: %s", strerror(number));
	}
	if (S_ISREG(st.st_mode)) {
		source->nbytes = (uint64_t)st.st_size;
	} else if (S_ISBLK(st.st_mode)) {
		off_t end = lseek(fd, 0, SEEK_END);
		source->nbytes = end < 0 ? UINT64_MAX : (uint64_t)end;
	}
	source->sequential = source->nbytes == UINT64_MAX;
	return BRV_OK;
}

enum brv_status source_from_path(struct source *source, const char *path, struct error *err)
{
	int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return fail(err, BRV_IO, "cannot open it: %s", strerror(errno));
	return source_from_fd(source, fd, true, err);
}

void source_from_memory(struct source *source, const void *bytes, size_t nbytes)
{
	*source = (struct source){ .fd = -1, .spool_fd = -1, .memory = bytes, .nbytes = nbytes };
}

void source_from_reader(struct source *source, const brv_reader *reader)
{
	*source = (struct source){ .fd = -1, .spool_fd = -1, .reader = *reader, .nbytes = reader->nbytes_total };
}

void source_free(struct source *source)
{
	if (source->owns_fd && source->fd >= 0)
		close(source->fd);
	if (source->spool_fd >= 0)
		close(source->spool_fd);
	*source = (struct source){ .fd = -1, .spool_fd = -1 };
}

static int write_all(int fd, const uint8_t *at, size_t nbytes)
{
	while (nbytes > 0) {
		ssize_t done = write(fd, at, nbytes);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		at += done;
		nbytes -= (size_t)done;
	}
	return 0;
}

enum brv_status source_spool(struct source *source, uint64_t end, struct error *err)
{
	uint8_t *buffer = malloc(SPOOL_NBYTES);
	int number = buffer ? 0 : ENOMEM, fd = -1;
	uint64_t start = source->at;
	if (number == 0 && (fd = temporary_unnamed(NULL)) < 0)
		number = errno;
	while (number == 0 && source->at < end) {
		size_t part = MIN(end - source->at, (uint64_t)SPOOL_NBYTES);
		number = read_on(source, buffer, part);
		if (number == 0)
			number = write_all(fd, buffer, part);
	}
	free(buffer);
	if (number) {
		if (fd >= 0)
			close(fd);
		if (number == ENDED)
			return fail(err, BRV_DAMAGED, "the archive ends after %llu bytes: expected %llu", (unsigned long long)source->at,
				    (unsigned long long)end);
		return fail(err, number == ENOMEM ? BRV_MEMORY : BRV_IO, "cannot keep the pipe's bytes in a temporary file: %s", strerror(number));
	}
	source->spool_fd = fd;
	source->spool_at = start;
	source->sequential = false;
	return BRV_OK;
}

enum brv_status source_expect_end(struct source *source, uint64_t end, struct error *err)
{
	uint8_t byte;
	if (source->nbytes != UINT64_MAX || source->at != end)
		return BRV_OK;
	int number = read_on(source, &byte, 1);
	if (number == ENDED)
		return BRV_OK;
	return number ? fail(err, BRV_IO, "cannot read it: %s", strerror(number)) :
			fail(err, BRV_DAMAGED, "there is something behind the archive's %llu bytes", (unsigned long long)end);
}

/* outfile.c: a file that appears whole or not at all (outfile.h). SPDX-License-Identifier: Apache-2.0 */
#include "common/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/temporary.h"

enum { MAX_TRIES = 16 };

/* Creates and locks the temporary named out->temporary. 0, or an errno; EAGAIN: try another name. */
static int create_locked(struct outfile *out)
{
	out->slot = doom(out->temporary);
	out->fd = TEMP_FAILURE_RETRY(open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
	if (out->fd < 0) {
		int number = errno == EEXIST ? EAGAIN : errno;
		doom_take_back(out->slot);
		return number;
	}
	if (temporary_lock(out->fd))
		return 0;
	close(out->fd);
	out->fd = -1;
	doom_take_back(out->slot);
	return EAGAIN;
}

static enum brv_status open_temporary(struct outfile *out, struct error *err)
{
	int number = EAGAIN;
	for (int i = 0; i < MAX_TRIES && number == EAGAIN; i++) {
		free(out->temporary);
		out->temporary = temporary_name(out->path);
		if (!out->temporary)
			return fail(err, BRV_MEMORY, "out of memory");
		number = create_locked(out);
	}
	if (number == 0)
		return BRV_OK;
	out->slot = -1;
	free(out->temporary);
	out->temporary = NULL;
	errno = number;
	return fail_errno(err, "cannot create the output file");
}

/* Looks at what `path` is now: BRV_OK and *direct if it is to be written in place (a pipe or device). */
static enum brv_status look_at_target(const char *path, bool force, int input_fd, bool *direct, struct error *err)
{
	struct stat target, input;
	*direct = false;
	if (stat(path, &target) != 0)
		return errno == ENOENT ? BRV_OK : fail_errno(err, "cannot look at the output file");
	if (S_ISDIR(target.st_mode))
		return fail(err, BRV_USAGE, "the output is a directory");
	if (input_fd >= 0 && fstat(input_fd, &input) == 0 && S_ISREG(target.st_mode) && input.st_dev == target.st_dev &&
	    input.st_ino == target.st_ino)
		return fail(err, BRV_USAGE, "input and output are the same file");
	*direct = !S_ISREG(target.st_mode);
	if (!*direct && !force)
		return fail(err, BRV_USAGE, "the file exists already; -f overwrites it");
	return BRV_OK;
}

enum brv_status outfile_open(struct outfile *out, const char *path, bool force, int input_fd, struct error *err)
{
	*out = (struct outfile){ .fd = -1, .slot = -1, .force = force };
	if (strcmp(path, "-") == 0) {
		out->sequential = true;
		out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return out->fd >= 0 ? BRV_OK : fail_errno(err, "stdout");
	}
	if (path[0] == 0 || path[strlen(path) - 1] == '/')
		return fail(err, BRV_USAGE, "the output needs a file name");
	TRY(look_at_target(path, force, input_fd, &out->sequential, err));
	if (out->sequential) {
		out->fd = TEMP_FAILURE_RETRY(open(path, O_WRONLY | O_CLOEXEC));
		return out->fd >= 0 ? BRV_OK : fail_errno(err, "cannot open the output");
	}
	out->path = strdup(path);
	if (!out->path)
		return fail(err, BRV_MEMORY, "out of memory");
	temporary_remove_stale(path);
	enum brv_status status = open_temporary(out, err);
	if (status != BRV_OK)
		outfile_abandon(out);
	return status;
}

enum brv_status outfile_reserve(struct outfile *out, uint64_t nbytes, struct error *err)
{
	if (out->sequential || nbytes == 0)
		return BRV_OK;
	if (nbytes > INT64_MAX)
		return fail(err, BRV_LIMIT, "an output of %llu bytes is too large", (unsigned long long)nbytes);
	/* fallocate and not posix_fallocate: that one writes every block where the file system cannot reserve. */
	if (fallocate(out->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)nbytes) == 0 || (errno != ENOSPC && errno != EFBIG && errno != EDQUOT))
		return BRV_OK;
	return fail_errno(err, "cannot reserve space for the output");
}

enum brv_status outfile_write(struct outfile *out, const void *bytes, size_t nbytes, uint64_t offset, struct error *err)
{
	const uint8_t *at = bytes;
	if (out->sequential) {
		if (offset != out->at)
			return fail(err, BRV_OTHER, "the output cannot seek");
		out->at += nbytes;
	}
	while (nbytes > 0) {
		size_t part = MIN(nbytes, (size_t)1 << 30);
		ssize_t done = out->sequential ? write(out->fd, at, part) : pwrite(out->fd, at, part, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fail_errno(err, "cannot write");
		if (done == 0)
			return fail(err, BRV_IO, "cannot write: nothing was taken");
		at += done;
		nbytes -= (size_t)done;
		offset += (size_t)done;
	}
	return BRV_OK;
}

enum brv_status outfile_read(const struct outfile *out, void *bytes, size_t nbytes, uint64_t offset, struct error *err)
{
	uint8_t *at = bytes;
	while (nbytes > 0) {
		ssize_t done = pread(out->fd, at, MIN(nbytes, (size_t)1 << 30), (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return fail_errno(err, "cannot read back the output");
		if (done == 0)
			return fail(err, BRV_IO, "the output is shorter than what was written to it");
		at += done;
		nbytes -= (size_t)done;
		offset += (size_t)done;
	}
	return BRV_OK;
}

/* Gives the temporary its target's name, without replacing one that has appeared meanwhile unless forced. */
static int rename_to_target(const struct outfile *out)
{
	if (out->force)
		return rename(out->temporary, out->path);
	if (renameat2(AT_FDCWD, out->temporary, AT_FDCWD, out->path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* A file system without that flag. */
	if (link(out->temporary, out->path) == 0)
		return unlink(out->temporary);
	return errno == EEXIST ? -1 : rename(out->temporary, out->path);
}

static enum brv_status commit_file(struct outfile *out, uint64_t nbytes, struct error *err)
{
	struct stat st;
	if (fstat(out->fd, &st) != 0)
		return fail_errno(err, "cannot look at the output");
	if ((uint64_t)st.st_size != nbytes && TEMP_FAILURE_RETRY(ftruncate(out->fd, (off_t)nbytes)) != 0)
		return fail_errno(err, "cannot set the size of the output");
	if (TEMP_FAILURE_RETRY(fsync(out->fd)) != 0)
		return fail_errno(err, "cannot write the output to disk");
	if (out->drop_cache)
		posix_fadvise(out->fd, 0, 0, POSIX_FADV_DONTNEED);
	if (rename_to_target(out) != 0) {
		if (errno == EEXIST)
			return fail(err, BRV_USAGE, "the file appeared meanwhile; -f overwrites it");
		return fail_errno(err, "cannot rename the output");
	}
	doom_take_back(out->slot);
	out->slot = -1;
	free(out->temporary);
	out->temporary = NULL;
	sync_directory_of(out->path);
	return BRV_OK;
}

enum brv_status outfile_commit(struct outfile *out, uint64_t nbytes, struct error *err)
{
	enum brv_status status = BRV_OK;
	if (out->sequential) {
		/* A file behind stdout may report a full disk only here. */
		if (close(out->fd) != 0)
			status = fail_errno(err, "cannot write");
		out->fd = -1;
	} else {
		status = commit_file(out, nbytes, err);
	}
	outfile_abandon(out);
	return status;
}

void outfile_abandon(struct outfile *out)
{
	if (out->temporary)
		unlink(out->temporary);
	doom_take_back(out->slot);
	if (out->fd >= 0)
		close(out->fd);
	free(out->temporary);
	free(out->path);
	*out = (struct outfile){ .fd = -1, .slot = -1 };
}

enum brv_status outfile_put(const char *path, const void *bytes, size_t nbytes, bool force, struct error *err)
{
	struct outfile out;
	TRY(outfile_open(&out, path, force, -1, err));
	enum brv_status status = outfile_write(&out, bytes, nbytes, 0, err);
	if (status == BRV_OK)
		status = outfile_commit(&out, nbytes, err);
	outfile_abandon(&out);
	return status;
}

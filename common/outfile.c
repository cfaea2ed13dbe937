/* outfile.c: a file that appears whole or not at all (outfile.h).
 *
 * A temporary belongs to a living process exactly as long as its flock is held, which works across containers that share a directory, where
 * process ids mean nothing. A cleaner may meet a temporary between its creation and its lock: the creator therefore looks, once it has
 * the lock, whether the file still has a name, and starts again if not. SPDX-License-Identifier: Apache-2.0 */
#include "common/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 64, SUFFIX_NBYTES = sizeof(".brevis-4294967295-0123456789abcdef.tmp"), MAX_TRIES = 16 };

/* What the signal handler removes. A slot is claimed by its `used` flag; `path` is set last and cleared first. */
static struct {
	atomic_flag used;
	_Atomic(const char *) path;
} slots[SLOTS];

static void remove_and_die(int signal_number)
{
	for (size_t i = 0; i < SLOTS; i++) {
		const char *path = atomic_load(&slots[i].path);
		if (path)
			unlink(path);
	}
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void outfile_catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction old, action = { .sa_handler = remove_and_die };
		sigfillset(&action.sa_mask);
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

static int slot_take(const char *path)
{
	for (int i = 0; i < SLOTS; i++)
		if (!atomic_flag_test_and_set(&slots[i].used)) {
			atomic_store(&slots[i].path, path);
			return i;
		}
	return -1;
}

static void slot_give(int slot)
{
	if (slot < 0)
		return;
	atomic_store(&slots[slot].path, NULL);
	atomic_flag_clear(&slots[slot].used);
}

static enum brv_status fail_errno(struct error *err, const char *what)
{
	int number = errno;
	return fail(err, number == ENOMEM ? BRV_MEMORY : BRV_IO, "%s: %s", what, strerror(number));
}

/* "dir/" of a path, or "./": what to put before a name in the same directory. */
static int directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (int)(slash - path) + 1 : 0;
}

/* Start of the temporary's name: ".NAME.brevis-", with NAME cut so that the whole stays within NAME_MAX. */
static void temporary_prefix(const char *path, char prefix[256])
{
	const char *name = path + directory_length(path);
	int room = 255 - 1 - SUFFIX_NBYTES;
	snprintf(prefix, 256, ".%.*s.brevis-", room, name);
}

static uint64_t random_u64(void)
{
	uint64_t value;
	if (getrandom(&value, sizeof value, GRND_NONBLOCK) == sizeof value)
		return value;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec) * 0x9e3779b97f4a7c15ull;
}

/* True if nobody writes the open temporary any more. Without working locks, the process id in its name decides. */
static bool is_stale(int fd, const char *after_prefix)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	long pid = strtol(after_prefix, NULL, 10);
	return errno != EWOULDBLOCK && errno != EINTR && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Removes temporaries of the same target whose writers are gone. Never fails: what it cannot remove stays. */
static void remove_stale(const char *path)
{
	char prefix[256], directory[4096];
	int length = directory_length(path);
	temporary_prefix(path, prefix);
	if (length >= (int)sizeof directory)
		return;
	snprintf(directory, sizeof directory, "%.*s", length ? length : 1, length ? path : ".");
	DIR *dir = opendir(directory);
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		size_t nbytes = strlen(entry->d_name), start = strlen(prefix);
		if (nbytes < start + 4 || memcmp(entry->d_name, prefix, start) || strcmp(entry->d_name + nbytes - 4, ".tmp"))
			continue;
		int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (is_stale(fd, entry->d_name + start))
			unlinkat(dirfd(dir), entry->d_name, 0);
		close(fd);
	}
	closedir(dir);
}

/* Creates and locks the temporary named out->temporary. 0, or an errno; EAGAIN: try another name. */
static int create_locked(struct outfile *out)
{
	struct stat st;
	out->slot = slot_take(out->temporary);
	out->fd = open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (out->fd < 0) {
		int number = errno == EEXIST ? EAGAIN : errno;
		slot_give(out->slot);
		return number;
	}
	bool ours = flock(out->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
	if (ours && fstat(out->fd, &st) == 0 && st.st_nlink > 0)
		return 0;
	close(out->fd);
	out->fd = -1;
	slot_give(out->slot);
	return EAGAIN;
}

static enum brv_status open_temporary(struct outfile *out, struct error *err)
{
	char prefix[256];
	int length = directory_length(out->path), number = EAGAIN;
	size_t size = (size_t)length + sizeof prefix + SUFFIX_NBYTES;
	temporary_prefix(out->path, prefix);
	out->temporary = malloc(size);
	if (!out->temporary)
		return fail(err, BRV_MEMORY, "out of memory");
	for (int i = 0; i < MAX_TRIES && number == EAGAIN; i++) {
		snprintf(out->temporary, size, "%.*s%s%u-%016llx.tmp", length, out->path, prefix, (unsigned)getpid(),
			 (unsigned long long)random_u64());
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
		out->fd = open(path, O_WRONLY | O_CLOEXEC);
		return out->fd >= 0 ? BRV_OK : fail_errno(err, "cannot open the output");
	}
	out->path = strdup(path);
	if (!out->path)
		return fail(err, BRV_MEMORY, "out of memory");
	remove_stale(path);
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

static void sync_directory(const char *path)
{
	char directory[4096];
	int length = directory_length(path);
	if (length >= (int)sizeof directory)
		return;
	snprintf(directory, sizeof directory, "%.*s", length ? length : 1, length ? path : ".");
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static enum brv_status commit_file(struct outfile *out, uint64_t nbytes, struct error *err)
{
	struct stat st;
	if (fstat(out->fd, &st) != 0)
		return fail_errno(err, "cannot look at the output");
	if ((uint64_t)st.st_size != nbytes && ftruncate(out->fd, (off_t)nbytes) != 0)
		return fail_errno(err, "cannot set the size of the output");
	if (fsync(out->fd) != 0)
		return fail_errno(err, "cannot write the output to disk");
	if (rename_to_target(out) != 0) {
		if (errno == EEXIST)
			return fail(err, BRV_USAGE, "the file appeared meanwhile; -f overwrites it");
		return fail_errno(err, "cannot rename the output");
	}
	slot_give(out->slot);
	out->slot = -1;
	free(out->temporary);
	out->temporary = NULL;
	sync_directory(out->path);
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
	slot_give(out->slot);
	if (out->fd >= 0)
		close(out->fd);
	free(out->temporary);
	free(out->path);
	*out = (struct outfile){ .fd = -1, .slot = -1 };
}

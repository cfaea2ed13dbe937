/* temporary.c: what is not complete yet, and what a killed process left (temporary.h). SPDX-License-Identifier: Apache-2.0 */
#include "common/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 64, SUFFIX_NBYTES = sizeof(".brevis-4294967295-0123456789abcdef.tmp"), TREE_FDS = 32 };

/* What the signal handler removes. A slot is claimed by its `used` flag; `path` is set last and cleared first. */
static struct {
	atomic_flag used;
	_Atomic(const char *) path;
} slots[SLOTS];
static _Atomic(const struct doomed *) doomed_list;

static void remove_and_die(int signal_number)
{
	for (size_t i = 0; i < SLOTS; i++) {
		const char *path = atomic_load(&slots[i].path);
		if (path)
			unlink(path);
	}
	const struct doomed *list = atomic_load(&doomed_list);
	for (size_t i = list ? list->count : 0; i-- > 0;)
		if (unlink(list->path[i]) != 0)
			rmdir(list->path[i]);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

void temporary_catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction old, action = { .sa_handler = remove_and_die };
		sigfillset(&action.sa_mask);
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

int doom(const char *path)
{
	for (int i = 0; i < SLOTS; i++)
		if (!atomic_flag_test_and_set(&slots[i].used)) {
			atomic_store(&slots[i].path, path);
			return i;
		}
	return -1;
}

void doom_take_back(int slot)
{
	if (slot < 0)
		return;
	atomic_store(&slots[slot].path, NULL);
	atomic_flag_clear(&slots[slot].used);
}

void doom_list(const struct doomed *list) { atomic_store(&doomed_list, list); }

enum brv_status fail_errno(struct error *err, const char *what)
{
	int number = errno;
	return fail(err, number == ENOMEM ? BRV_MEMORY : BRV_IO, "%s: %s", what, strerror(number));
}

int directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (int)(slash - path) + 1 : 0;
}

/* Start of the temporary's name: ".NAME.brevis-", with NAME cut so that the whole stays within NAME_MAX. */
static void prefix_of(const char *path, char prefix[256])
{
	const char *name = path + directory_length(path);
	int room = 255 - 1 - SUFFIX_NBYTES;
	snprintf(prefix, 256, ".%.*s.brevis-", room, name);
}

/* "dir" of "dir/name", "." of "name". False if it is too long. */
static bool directory_of(const char *path, char directory[4096])
{
	const int length = directory_length(path);
	return snprintf(directory, 4096, "%.*s", length ? length : 1, length ? path : ".") < 4096;
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

char *temporary_name(const char *path)
{
	char prefix[256], *name;
	prefix_of(path, prefix);
	return asprintf(&name, "%.*s%s%u-%016llx.tmp", directory_length(path), path, prefix, (unsigned)getpid(),
			(unsigned long long)random_u64()) < 0 ?
		       NULL :
		       name;
}

/* A cleaner may meet a temporary between its creation and its lock: whether it still has a name, shows once it is locked. */
bool temporary_lock(int fd)
{
	struct stat st;
	const bool ours = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
	/* Where one cannot look, the name is believed to be there still: the temporary would be left behind else. */
	return ours && (fstat(fd, &st) != 0 || st.st_nlink > 0);
}

/* True if nobody writes the open temporary any more. Without working locks, the process id in its name decides. */
static bool is_stale(int fd, const char *after_prefix)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	long pid = strtol(after_prefix, NULL, 10);
	return errno != EWOULDBLOCK && errno != EINTR && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	(void)!remove(path);
	return 0;
}

/* Whether a name goes on as ours do: "PID-RANDOM.tmp", RANDOM 16 hexadecimal digits. */
static bool is_ours(const char *after_prefix)
{
	const size_t pid = strspn(after_prefix, "0123456789"), random = pid && after_prefix[pid] == '-' ? strspn(after_prefix + pid + 1, "0123456789abcdef") : 0;
	return random == 16 && strcmp(after_prefix + pid + 17, ".tmp") == 0;
}

static void remove_if_stale(DIR *dir, const char *directory, const char *name, size_t prefix_nbytes)
{
	struct stat st;
	char path[4096 + 256];
	int fd = TEMP_FAILURE_RETRY(openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && is_stale(fd, name + prefix_nbytes)) {
		snprintf(path, sizeof path, "%s/%s", directory, name);
		if (S_ISDIR(st.st_mode))
			nftw(path, remove_entry, TREE_FDS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		else
			unlinkat(dirfd(dir), name, 0);
	}
	close(fd);
}

void temporary_remove_stale(const char *path)
{
	char prefix[256], directory[4096];
	prefix_of(path, prefix);
	DIR *dir = directory_of(path, directory) ? opendir(directory) : NULL;
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		const size_t start = strlen(prefix);
		if (strncmp(entry->d_name, prefix, start) == 0 && is_ours(entry->d_name + start))
			remove_if_stale(dir, directory, entry->d_name, start);
	}
	closedir(dir);
}

void sync_directory_of(const char *path)
{
	char directory[4096];
	int fd = directory_of(path, directory) ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

int temporary_unnamed(const char *directory)
{
	char *path;
	if (!directory)
		directory = getenv("TMPDIR");
	if (!directory || !*directory)
		directory = "/tmp";
	int fd = TEMP_FAILURE_RETRY(open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	if (fd >= 0 || asprintf(&path, "%s/.brevis-XXXXXX", directory) < 0)
		return fd;
	/* A file system without O_TMPFILE: a name for a moment. */
	fd = mkostemp(path, O_CLOEXEC);
	const int slot = fd >= 0 ? doom(path) : -1, number = errno;
	if (fd >= 0)
		unlink(path);
	doom_take_back(slot);
	free(path);
	errno = number;
	return fd;
}

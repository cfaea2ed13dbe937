/* fault_inject.c: a library to preload that makes one call of a command fail: the n-th of a class of calls, in a chosen way.
 *
 *     BREVIS_FAULT=CLASS:N:KIND     N from 1; KIND: an errno, "short" (one byte is moved), "kill" (SIGKILL), "kill90" (90 us later);
 *                                   "N+" instead of N: that call and all later ones of the class
 *     BREVIS_FAULT_LOG=FILE         at the end: how often each class was called, how many blocks were never freed, and, without BREVIS_FAULT, the
 *                                   first call from each different place ("site CLASS N"; places differ if anything on the stack does)
 *
 * CLASS is a name of the table below, or "any": every call of every class, which is a clock that ticks with the command's progress.
 * Calls count from the end of loading on. Works with dynamically linked glibc programs without sanitizers. What the C library calls
 * itself (the write below printf) is not seen. SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The wrapped functions and their 64-bit twins are defined here, and the headers know them by macros and attributes. */
#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))find_real(#name))

enum fault_class { OPEN, READ, PREAD, WRITE, PWRITE, FSYNC, RENAME, FALLOCATE, FTRUNCATE, COPY, FLOCK, FSTAT, MMAP, MALLOC, THREAD, CLASSES };
static const char *const class_names[CLASSES] = { "open",      "read", "pread", "write", "pwrite", "fsync",  "rename", "fallocate",
						  "ftruncate", "copy", "flock", "fstat", "mmap",   "malloc", "thread" };

static atomic_bool armed;
static atomic_ulong calls[CLASSES], ticks;
static atomic_long blocks;
static int fault_class = -1;    /* CLASSES: any */
static unsigned long fault_at;
static bool fault_stays, fault_short, fault_kills;
static int fault_errno, fault_delay;
static char log_path[4096];

/* glibc's own allocator under names that nobody wraps: dlsym() may allocate. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *find_real(const char *name)
{
	void *real = dlsym(RTLD_NEXT, name);
	if (!real)
		abort();
	return real;
}

static void parse_fault(const char *text)
{
	char name[32] = "", kind[32] = "", stays = 0;
	if (sscanf(text, "%31[a-z]:%lu+:%31s", name, &fault_at, kind) == 3)
		stays = 1;
	else if (sscanf(text, "%31[a-z]:%lu:%31s", name, &fault_at, kind) != 3)
		abort();
	fault_stays = stays;
	fault_short = !strcmp(kind, "short");
	fault_kills = !strncmp(kind, "kill", 4);
	fault_delay = fault_kills ? atoi(kind + 4) : 0;
	fault_errno = atoi(kind);
	if (!fault_short && !fault_kills && !fault_errno)
		abort();
	fault_class = !strcmp(name, "any") ? CLASSES : -1;
	for (int i = 0; i < CLASSES; i++)
		if (!strcmp(name, class_names[i]))
			fault_class = i;
	if (fault_class < 0)
		abort();
}

/* SIGKILL now, or in a while: then somewhere between two calls. */
static void kill_soon(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	const struct itimerspec when = { .it_value = { .tv_nsec = fault_delay * 1000l } };
	timer_t timer;
	if (fault_delay == 0)
		kill(getpid(), SIGKILL), pause();
	else if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
		abort();
}

/* --- Places: hashes of stacks, in one open table. --- */

enum { SITES = 1 << 15, FRAMES = 16 };
static struct site {
	size_t stack;
	unsigned long n;
	int class;
} site[SITES];
static pthread_mutex_t site_lock = PTHREAD_MUTEX_INITIALIZER;
static bool noting;

static void note_site(enum fault_class class, unsigned long n)
{
	void *frame[FRAMES];
	size_t stack = (size_t)class + 1;
	int depth = backtrace(frame, FRAMES);
	for (int i = 0; i < depth; i++)
		stack = (stack ^ (size_t)frame[i]) * 0x9e3779b97f4a7c15ull, stack ^= stack >> 29;
	pthread_mutex_lock(&site_lock);
	for (size_t at = stack % SITES, tries = 0; tries < SITES && site[at].stack != stack; at = (at + 1) % SITES, tries++)
		if (!site[at].stack) {
			site[at] = (struct site){ stack, n, (int)class };
			break;
		}
	pthread_mutex_unlock(&site_lock);
}

static void write_sites(int fd)
{
	char line[64];
	for (size_t i = 0; i < SITES; i++)
		if (site[i].stack) {
			int length = snprintf(line, sizeof line, "site %s %lu\n", class_names[site[i].class], site[i].n);
			if (REAL(write)(fd, line, (size_t)length) != length)
				abort();
		}
}

/* Counts a call; true if it has to go wrong. */
static bool strikes(enum fault_class class)
{
	if (!atomic_load(&armed))
		return false;
	unsigned long n = atomic_fetch_add(&calls[class], 1) + 1, tick = atomic_fetch_add(&ticks, 1) + 1;
	if (noting)
		note_site(class, n);
	if (fault_class != (int)class && fault_class != CLASSES)
		return false;
	if (fault_class == CLASSES)
		n = tick;
	if (n != fault_at && !(fault_stays && n > fault_at))
		return false;
	if (fault_kills)
		kill_soon();
	return !fault_kills;
}

/* The call fails: errno is set and true returned; a short one moves a byte instead. */
static bool fails(enum fault_class class, size_t *nbytes)
{
	if (!strikes(class))
		return false;
	if (fault_short) {
		if (nbytes && *nbytes > 1)
			*nbytes = 1;
		return false;
	}
	errno = fault_errno;
	return true;
}

__attribute__((constructor)) static void begin(void)
{
	const char *fault = getenv("BREVIS_FAULT"), *log = getenv("BREVIS_FAULT_LOG");
	if (fault && *fault)
		parse_fault(fault);
	if (log)
		snprintf(log_path, sizeof log_path, "%s", log);
	void *frame[1];
	noting = log && !(fault && *fault);
	if (noting)
		backtrace(frame, 1); /* loads its library */
	atomic_store(&armed, true);
}

__attribute__((destructor)) static void end(void)
{
	char text[2048];
	int length = 0;
	atomic_store(&armed, false);
	if (!log_path[0])
		return;
	for (int i = 0; i < CLASSES; i++)
		length += snprintf(text + length, sizeof text - (size_t)length, "%s %lu\n", class_names[i], atomic_load(&calls[i]));
	length += snprintf(text + length, sizeof text - (size_t)length, "any %lu\nblocks %ld\n", atomic_load(&ticks), atomic_load(&blocks));
	int fd = REAL(open)(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || REAL(write)(fd, text, (size_t)length) != length)
		abort();
	if (noting)
		write_sites(fd);
	close(fd);
}

/* --- Files. Programs built with 64-bit offsets call the twins. --- */

static mode_t mode_of(int flags, va_list list) { return flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0; }

#define OPEN_WRAPPER(name)                                                            \
	EXPORT int name(const char *path, int flags, ...)                             \
	{                                                                             \
		va_list list;                                                         \
		va_start(list, flags);                                                \
		mode_t mode = mode_of(flags, list);                                   \
		va_end(list);                                                         \
		return fails(OPEN, NULL) ? -1 : REAL(name)(path, flags, mode);        \
	}
#define OPENAT_WRAPPER(name)                                                          \
	EXPORT int name(int directory, const char *path, int flags, ...)              \
	{                                                                             \
		va_list list;                                                         \
		va_start(list, flags);                                                \
		mode_t mode = mode_of(flags, list);                                   \
		va_end(list);                                                         \
		return fails(OPEN, NULL) ? -1 : REAL(name)(directory, path, flags, mode); \
	}
/* WRAPPER(type, name, parameters, class, failure, size to cut or NULL, arguments) */
#define WRAPPER(type, name, parameters, class, failure, size, arguments)              \
	EXPORT type name parameters { return fails(class, size) ? (failure) : REAL(name) arguments; }

OPEN_WRAPPER(open)
OPEN_WRAPPER(open64)
OPENAT_WRAPPER(openat)
OPENAT_WRAPPER(openat64)
WRAPPER(FILE *, fopen, (const char *path, const char *mode), OPEN, NULL, NULL, (path, mode))
WRAPPER(FILE *, fopen64, (const char *path, const char *mode), OPEN, NULL, NULL, (path, mode))
WRAPPER(DIR *, opendir, (const char *path), OPEN, NULL, NULL, (path))
WRAPPER(int, mkostemp, (char *path, int flags), OPEN, -1, NULL, (path, flags))
WRAPPER(int, mkostemp64, (char *path, int flags), OPEN, -1, NULL, (path, flags))
WRAPPER(ssize_t, read, (int fd, void *at, size_t n), READ, -1, &n, (fd, at, n))
WRAPPER(ssize_t, pread, (int fd, void *at, size_t n, off_t offset), PREAD, -1, &n, (fd, at, n, offset))
WRAPPER(ssize_t, pread64, (int fd, void *at, size_t n, off_t offset), PREAD, -1, &n, (fd, at, n, offset))
WRAPPER(ssize_t, write, (int fd, const void *at, size_t n), WRITE, -1, &n, (fd, at, n))
WRAPPER(ssize_t, pwrite, (int fd, const void *at, size_t n, off_t offset), PWRITE, -1, &n, (fd, at, n, offset))
WRAPPER(ssize_t, pwrite64, (int fd, const void *at, size_t n, off_t offset), PWRITE, -1, &n, (fd, at, n, offset))
WRAPPER(int, fsync, (int fd), FSYNC, -1, NULL, (fd))
WRAPPER(int, rename, (const char *from, const char *to), RENAME, -1, NULL, (from, to))
WRAPPER(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), RENAME, -1, NULL, (a, from, b, to, flags))
WRAPPER(int, fallocate, (int fd, int mode, off_t offset, off_t n), FALLOCATE, -1, NULL, (fd, mode, offset, n))
WRAPPER(int, fallocate64, (int fd, int mode, off_t offset, off_t n), FALLOCATE, -1, NULL, (fd, mode, offset, n))
WRAPPER(int, ftruncate, (int fd, off_t n), FTRUNCATE, -1, NULL, (fd, n))
WRAPPER(int, ftruncate64, (int fd, off_t n), FTRUNCATE, -1, NULL, (fd, n))
WRAPPER(ssize_t, copy_file_range, (int from, off64_t *at, int to, off64_t *to_at, size_t n, unsigned flags), COPY, -1, &n,
	(from, at, to, to_at, n, flags))
WRAPPER(int, flock, (int fd, int operation), FLOCK, -1, NULL, (fd, operation))
WRAPPER(int, fstat, (int fd, struct stat *st), FSTAT, -1, NULL, (fd, st))
WRAPPER(int, fstat64, (int fd, struct stat64 *st), FSTAT, -1, NULL, (fd, st))
WRAPPER(void *, mmap, (void *at, size_t n, int protection, int flags, int fd, off_t offset), MMAP, MAP_FAILED, NULL,
	(at, n, protection, flags, fd, offset))
WRAPPER(void *, mmap64, (void *at, size_t n, int protection, int flags, int fd, off_t offset), MMAP, MAP_FAILED, NULL,
	(at, n, protection, flags, fd, offset))

/* --- Threads and memory --- */

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	return fails(THREAD, NULL) ? fault_errno : REAL(pthread_create)(thread, attributes, start, argument);
}

static void *counted(void *block)
{
	if (block && atomic_load(&armed))
		atomic_fetch_add(&blocks, 1);
	return block;
}

EXPORT void *malloc(size_t n) { return fails(MALLOC, NULL) ? NULL : counted(__libc_malloc(n)); }
EXPORT void *calloc(size_t n, size_t size) { return fails(MALLOC, NULL) ? NULL : counted(__libc_calloc(n, size)); }
EXPORT void *memalign(size_t align, size_t n) { return fails(MALLOC, NULL) ? NULL : counted(__libc_memalign(align, n)); }
EXPORT void *aligned_alloc(size_t align, size_t n) { return fails(MALLOC, NULL) ? NULL : counted(__libc_memalign(align, n)); }
EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
	void *block = fails(MALLOC, NULL) ? NULL : counted(__libc_memalign(align, n));
	if (!block)
		return ENOMEM;
	*out = block;
	return 0;
}

EXPORT void *realloc(void *old, size_t n)
{
	if (!old)
		return malloc(n);
	return fails(MALLOC, NULL) ? NULL : __libc_realloc(old, n);
}

EXPORT void free(void *block)
{
	if (block && atomic_load(&armed))
		atomic_fetch_sub(&blocks, 1);
	__libc_free(block);
}

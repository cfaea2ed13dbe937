/* brevis.h: libbrevis, the runtime that turns a Brevis archive (.brv) back into the tensors of a checkpoint.
 *
 * Units: sizes and offsets are bytes, named ..._nbytes or _offset; shapes are elements; words are the unit of an archive's
 * streams and only matter to brv_show. Strings are UTF-8 and not always NUL-terminated where a length stands beside them.
 *
 * Ownership: what a function returns in a pointer to const belongs to the archive and lives until brv_close(). Buffers
 * that are decoded into are the caller's; nothing is kept of them after the call.
 *
 * Threads: an archive is immutable after brv_open_*(): any number of threads may decode from it at the same time, each call with its
 * own brv_pool or none. brv_close() must be the last call. A pool serves one call at a time.
 *
 * Errors: every function that can fail returns a brv_status and, if the error argument is not NULL, a line of text. Nothing aborts,
 * prints, or changes signal handlers. After a failed decode the contents of the caller's buffer are undefined.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BREVIS_H
#define BREVIS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BRV_VERSION_MAJOR 0
#define BRV_VERSION_MINOR 1
#define BRV_VERSION_PATCH 0
#define BRV_VERSION_STRING "0.1.0"
#define BRV_API __attribute__((visibility("default")))

typedef struct brv_archive brv_archive;
typedef struct brv_pool brv_pool;

/* Values are stable. In brackets: the exit code that the commands give for it. */
typedef enum brv_status_code {
	BRV_SUCCESS = 0,        /* [0] */
	BRV_E_OTHER = 1,        /* [1] */
	BRV_E_USAGE = 2,        /* [2] an argument makes no sense: NULL, too small a buffer */
	BRV_E_INPUT = 3,        /* [3] not a valid checkpoint (brevis-synth only) */
	BRV_E_DAMAGED = 4,      /* [4] not a Brevis archive, or a damaged one */
	BRV_E_IO = 5,           /* [5] reading or writing failed; the text names the errno */
	BRV_E_LIMIT = 6,        /* [6] over a limit that the caller set or the format has */
	BRV_E_MEMORY = 7,       /* [6] */
	BRV_E_VERSION = 8,      /* [4] an archive of a newer format */
	BRV_E_NOTFOUND = 9,     /* [2] no tensor of that name, or a range outside it */
	BRV_E_CANCELLED = 10    /* [1] the progress callback or the cancel flag said stop */
} brv_status_code;

/* One line: what was expected and found, and where. */
typedef struct brv_error {
	char text[256];
} brv_error;

/* A short name of a status, never NULL. */
BRV_API const char *brv_status_text(brv_status_code status);

/* Where an archive comes from. read() puts exactly nbytes bytes from offset into buffer and returns 0, or an errno value. It may be
 * called from several threads at once. nbytes_total is the size of the archive. */
typedef struct brv_reader {
	int (*read)(void *context, uint64_t offset, void *buffer, size_t nbytes);
	void *context;
	uint64_t nbytes_total;
} brv_reader;

typedef struct brv_options {
	size_t struct_nbytes;           /* sizeof(brv_options): lets later versions add fields */
	uint64_t memory_limit;          /* most bytes that the archive object and its calls may allocate together; 0: 4 GiB */
	int no_checksums;               /* 1: do not compare decoded chunks with their checksums (damage may go unseen) */
	int drop_cache;                 /* 1: bytes that were read from a file leave the page cache again */
} brv_options;

/* Opens an archive: reads and checks everything but the payload and the bodies of tables, which are checked when they are used.
 * options may be NULL. On failure *out is NULL. brv_open_fd: the descriptor stays the caller's and must stay open;
 * brv_open_memory: so must the bytes. A descriptor that cannot seek (a pipe) serves calls that go forward only, one at a time,
 * and whole runs of data (brv_decode_data) best. */
BRV_API brv_status_code brv_open_path(const char *path, const brv_options *options, brv_archive **out, brv_error *error);
BRV_API brv_status_code brv_open_fd(int fd, const brv_options *options, brv_archive **out, brv_error *error);
BRV_API brv_status_code brv_open_memory(const void *bytes, size_t nbytes, const brv_options *options, brv_archive **out, brv_error *error);
BRV_API brv_status_code brv_open_reader(const brv_reader *reader, const brv_options *options, brv_archive **out, brv_error *error);
BRV_API void brv_close(brv_archive *archive); /* NULL is fine */

/* The checkpoint as a whole. */
typedef struct brv_info {
	uint64_t archive_nbytes;        /* size of the .brv */
	uint64_t file_nbytes;           /* size of the .safetensors that it stands for */
	uint64_t header_nbytes;         /* of the JSON header, without its 8-byte length */
	uint64_t data_nbytes;           /* of all tensors */
	uint64_t tensor_count;
	uint32_t format_version;
} brv_info;
BRV_API void brv_get_info(const brv_archive *archive, brv_info *out);

/* The original JSON header, header_nbytes bytes. */
BRV_API const char *brv_header(const brv_archive *archive);

typedef struct brv_tensor {
	const char *name;               /* name_nbytes bytes; may contain NUL; not terminated */
	size_t name_nbytes;
	const char *dtype;              /* NUL-terminated, as in the header: "BF16" */
	const uint64_t *shape;          /* ndim elements */
	size_t ndim;
	uint64_t data_offset;           /* of its bytes in the data region */
	uint64_t data_nbytes;
	uint64_t archive_nbytes;        /* its payload, its record in the (decoded) index, and its checksums; not what tensors share */
} brv_tensor;

/* Tensors are numbered in the order of their data, from 0. BRV_E_NOTFOUND if index is out of range or no tensor has the name. */
BRV_API brv_status_code brv_get_tensor(const brv_archive *archive, uint64_t index, brv_tensor *out, brv_error *error);
BRV_API brv_status_code brv_find_tensor(const brv_archive *archive, const char *name, size_t name_nbytes, uint64_t *index,
					brv_error *error);

/* Called now and then during a long call, from any of its threads but never from two at once. done_nbytes of total_nbytes output bytes
 * are finished. A return value other than 0 cancels the call. */
typedef int (*brv_progress_fn)(void *context, uint64_t done_nbytes, uint64_t total_nbytes);

typedef struct brv_call {
	size_t struct_nbytes;           /* sizeof(brv_call) */
	brv_pool *pool;                 /* NULL: the calling thread alone */
	brv_progress_fn progress;       /* may be NULL */
	void *progress_context;
	const volatile int *cancel;     /* may be NULL; another thread or a signal handler stores something other than 0 there to stop the call */
	int no_huge_pages;              /* 1: do not ask for huge pages under dst */
} brv_call;

/* nbytes bytes from byte `offset` of a tensor, to dst. */
typedef struct brv_request {
	uint64_t tensor, offset;
	size_t nbytes;
	void *dst;
} brv_request;

/* Decoding. dst needs no alignment. call may be NULL. If dst is 4 MiB or more, transparent huge pages are asked for under it (madvise),
 * because the first write to fresh memory costs more than decoding otherwise; memory that has been written to stays as it is.
 *
 * brv_decode_tensor: all data_nbytes of a tensor; dst_nbytes must be at least that.
 * brv_decode_range: nbytes bytes from byte `offset` of a tensor; touches only the chunks that hold them.
 * brv_decode_rows: rows first_row .. first_row + rows - 1 of its first dimension, where rows are whole bytes; dst_nbytes must be at least that.
 * brv_decode_list: any number of ranges in one call, spread over the pool's threads together; their buffers must not overlap. If one
 * request makes no sense nothing is decoded.
 * brv_decode_data: nbytes bytes from byte `offset` of the data region (all tensors one after the other). */
BRV_API brv_status_code brv_decode_tensor(const brv_archive *archive, uint64_t index, void *dst, size_t dst_nbytes, const brv_call *call,
					  brv_error *error);
BRV_API brv_status_code brv_decode_range(const brv_archive *archive, uint64_t index, uint64_t offset, void *dst, size_t nbytes,
					 const brv_call *call, brv_error *error);
BRV_API brv_status_code brv_decode_rows(const brv_archive *archive, uint64_t index, uint64_t first_row, uint64_t rows, void *dst,
					size_t dst_nbytes, const brv_call *call, brv_error *error);
BRV_API brv_status_code brv_decode_list(const brv_archive *archive, const brv_request *request, size_t count, const brv_call *call,
					brv_error *error);
BRV_API brv_status_code brv_decode_data(const brv_archive *archive, uint64_t offset, void *dst, size_t nbytes, const brv_call *call,
					brv_error *error);

/* What a pool does on a machine with several memory nodes. It never fails for that: what is not there or is refused is left out.
 * Memory that has been written to before stays where it is, in every mode. */
typedef enum brv_numa {
	BRV_NUMA_DEFAULT = 0,   /* local if there are several threads and they may run on several nodes, else none */
	BRV_NUMA_NONE = 1,      /* everything is left to the kernel */
	BRV_NUMA_LOCAL = 2,     /* threads stay on their nodes; each node decodes its own part of dst, into its own memory */
	BRV_NUMA_INTERLEAVE = 3 /* if dst is 4 MiB or more its pages are dealt out to the nodes in turn; the policy stays with them (mbind) */
} brv_numa;

typedef struct brv_pool_options {
	size_t struct_nbytes;           /* sizeof(brv_pool_options) */
	unsigned threads;               /* 0: as many as this process may use (affinity mask and cgroup quota) */
	brv_numa numa;
} brv_pool_options;

/* A team of threads that calls share, one call at a time. The calling thread works too: threads - 1 are started. Where threads are
 * pinned, the calling thread is so during a call, and gets back the CPUs that it had. brv_pool_create: with the default placement. */
BRV_API brv_status_code brv_pool_create(unsigned threads, brv_pool **out, brv_error *error);
BRV_API brv_status_code brv_pool_create_with(const brv_pool_options *options, brv_pool **out, brv_error *error);
BRV_API unsigned brv_pool_threads(const brv_pool *pool);
/* How the pool's threads and output are placed, in a line without end: "threads 4 on 2 nodes, each on its core, huge pages: yes". Like
 * brv_describe(). */
BRV_API size_t brv_pool_describe(const brv_pool *pool, char *text, size_t size);
BRV_API void brv_pool_free(brv_pool *pool); /* NULL is fine */

/* The program of a tensor as text, in the caller's buffer, always terminated: brv_describe: the most used variant in one line; brv_show:
 * the tree and the bytecode of every variant with the bytes that each part costs; these add up to archive_nbytes. Returns the
 * size of the whole text without its end, like snprintf. */
BRV_API size_t brv_describe(const brv_archive *archive, uint64_t index, char *text, size_t size);
BRV_API size_t brv_show(const brv_archive *archive, uint64_t index, char *text, size_t size);

/* The instruction set in use ("avx512"), and a report of what was detected, what is used and why. */
BRV_API const char *brv_isa(void);
BRV_API size_t brv_cpu_report(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif

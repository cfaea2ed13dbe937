/* outfile.h: a file that appears whole or not at all: written as a temporary beside its target, then renamed.
 *
 * Temporaries of killed runs are removed when the next one starts (temporary.h). A target that is no regular file (a pipe,
 * /dev/null) and stdout are written directly: `sequential` is then true and offsets must ascend without gaps. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_OUTFILE_H
#define COMMON_OUTFILE_H

#include "common/base.h"
#include "common/status.h"

struct outfile {
	int fd;
	bool sequential;                /* no pwrite to earlier offsets, no commit: a pipe or a device */
	bool force;
	bool drop_cache;                /* set it after outfile_open(): what was written leaves the page cache once it is on the disk */
	uint64_t at;                    /* if sequential: end of what was written so far */
	char *path, *temporary;         /* owned; temporary NULL if sequential */
	int slot;                       /* of the signal handler's list, -1: none */
};

/* Starts the output file `path`; "-" is stdout. Fails with BRV_USAGE if the target exists and not `force`, or is a directory, or
 * is the same file as the open descriptor input_fd (-1: none), forced or not; with BRV_IO otherwise. On failure there is nothing
 * to abandon. */
enum brv_status outfile_open(struct outfile *out, const char *path, bool force, int input_fd, struct error *err);

/* Reserves nbytes on disk, so that a full disk shows before the work and not after it. Where the file system cannot, nothing happens. */
enum brv_status outfile_reserve(struct outfile *out, uint64_t nbytes, struct error *err);

/* Writes nbytes at offset; several threads may write at once unless sequential. */
enum brv_status outfile_write(struct outfile *out, const void *bytes, size_t nbytes, uint64_t offset, struct error *err);

/* Reads back what was written (not if sequential), for comparing. */
enum brv_status outfile_read(const struct outfile *out, void *bytes, size_t nbytes, uint64_t offset, struct error *err);

/* Cuts or extends the file to nbytes, fsyncs, renames it to the target and fsyncs the directory. Without force a target that appeared
 * meanwhile is refused. Whatever happens, the outfile is finished afterwards and needs no outfile_abandon() (which is harmless). */
enum brv_status outfile_commit(struct outfile *out, uint64_t nbytes, struct error *err);

/* A whole file at once. */
enum brv_status outfile_put(const char *path, const void *bytes, size_t nbytes, bool force, struct error *err);

/* Removes the temporary. Harmless after outfile_commit(), after a failed outfile_open() and twice. */
void outfile_abandon(struct outfile *out);

#endif

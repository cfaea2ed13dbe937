/* spool.h: bytes kept until the end of a job: in memory up to a limit, what comes after it in an unlinked file. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_SPOOL_H
#define SYNTH_SPOOL_H

#include "common/archive.h"

struct spool {
	const char *directory;          /* where the file goes; not owned */
	uint64_t limit, nbytes;         /* of memory; of all */
	struct buffer *held;            /* in memory: the first bytes, in order */
	size_t nheld, capacity;
	uint64_t held_nbytes;
	int fd;                         /* -1: all is in memory */
};

void spool_init(struct spool *spool, const char *directory, uint64_t limit);

/* Takes over the bytes, and the memory they are in; *bytes is empty then. */
enum brv_status spool_take(struct spool *spool, struct buffer *bytes, struct error *err);

/* Writes everything to fd at its current position, by the kernel alone where that is possible. */
enum brv_status spool_copy(struct spool *spool, int fd, struct error *err);
void spool_free(struct spool *spool);

/* Writes nbytes where the descriptor stands. BRV_IO. */
enum brv_status write_all(int fd, const void *bytes, uint64_t nbytes, struct error *err);

#endif

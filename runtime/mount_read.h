/* mount_read.h: a part of an original file, put together from an archive's header and decoded pieces. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_MOUNT_READ_H
#define RUNTIME_MOUNT_READ_H

#include <sys/uio.h>

#include "runtime/mount_cache.h"

enum { MOUNT_READ_NBYTES = 1 << 20 };   /* the most that is read at once: a request of the kernel */

/* Three pieces at most meet a range of that size (of pieces a MiB apart, two may begin in it), and two parts of the header. */
enum { MOUNT_MAX_PIECES = 3, MOUNT_MAX_PARTS = 5 };

/* How somebody reads an open file: who goes on where the last read ended will go on. */
struct mount_reader {
	uint32_t node;
	pthread_mutex_t lock;
	uint64_t next;                  /* the end of what was read; UINT64_MAX: nothing yet */
	unsigned depth;                 /* pieces to ask for ahead */
};

/* The bytes of a read, which stay where they are until mount_read_end(). */
struct mount_reply {
	struct iovec part[MOUNT_MAX_PARTS];
	unsigned nparts;
	uint8_t header_size[8];
	unsigned npieces;
	struct {
		struct mount_piece piece;
		size_t nbytes;
	} held[MOUNT_MAX_PIECES];
	uint32_t node;
	brv_archive *archive;           /* NULL: could not be opened */
	void *own;                      /* what was decoded for this read alone */
};

/* nbytes (at most MOUNT_READ_NBYTES) from `offset` of the reader's file, fewer only at its end. Thread-safe, also for one reader. On failure
 * too, mount_read_end() is due; the reader may be gone by then, as its file may be closed as soon as it has the reply. */
enum brv_status mount_read(struct mount_cache *cache, struct mount_archives *archives, struct mount_reader *reader, uint64_t offset,
			   size_t nbytes, struct mount_reply *reply, struct error *err);
void mount_read_end(struct mount_cache *cache, struct mount_archives *archives, struct mount_reply *reply);

#endif

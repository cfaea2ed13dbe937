/* mount_cache.h: decoded pieces of archives in bounded memory, and the threads that decode ahead of readers.
 *
 * A piece (decode_piece()) is decoded by one thread; several are under way at a time: those that readers wait for first, then those that were
 * asked for ahead. All memory is taken at the start. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_MOUNT_CACHE_H
#define RUNTIME_MOUNT_CACHE_H

#include "runtime/brevis.h"
#include "runtime/mount_archives.h"

struct mount_cache;

/* Called for the first piece of each archive that could not be decoded; from any thread. */
typedef void mount_damage_fn(const struct mount_node *node, const char *text);

struct mount_cache_options {
	struct mount_archives *archives;
	uint64_t piece_limit;           /* of all archives */
	uint64_t nbytes;                /* of the cache; as many as four pieces at least */
	unsigned threads;               /* that decode at a time */
	mount_damage_fn *damage;
};

/* A piece in use: nbytes bytes of a data region from `offset`; bytes is NULL if it cannot be decoded as a whole. */
struct mount_piece {
	uint64_t offset, nbytes;
	const uint8_t *bytes;
	struct mount_block *block;
};

enum brv_status alloc_mount_cache(const struct mount_cache_options *options, struct mount_cache **out, struct error *err);
void free_mount_cache(struct mount_cache *cache); /* nobody may use it any more; NULL is fine */

/* The piece that byte `offset` of an open archive's data region lies in, decoded; it stays until mount_cache_put(). Waits for room only if
 * `wait`: who has a piece must not, as all might wait for each other. False, if not: no room. */
bool mount_cache_get(struct mount_cache *cache, uint32_t node, brv_archive *archive, uint64_t offset, bool wait, struct mount_piece *out);

/* nbytes: how many of its bytes were used. A piece that was used up is the first to go. */
void mount_cache_put(struct mount_cache *cache, const struct mount_piece *piece, uint64_t nbytes);

/* Asks for `count` pieces from byte `offset` on, as far as there are that many and there is room. */
void mount_cache_ahead(struct mount_cache *cache, uint32_t node, brv_archive *archive, uint64_t offset, unsigned count);

/* As many as it makes sense to ask for ahead of a reader that reads on and on. */
unsigned mount_cache_depth(const struct mount_cache *cache);

#endif

/* mount_cache.c: decoded pieces of archives (mount_cache.h).
 *
 * A block is a slot of memory with a piece in it. Under the one lock it is on one list at most: free, queued (urgent or ahead) to be decoded,
 * or idle, in the order in which idle blocks are given up. The kernel keeps what was read in its page cache, so a block that was read to its
 * end will hardly be asked for again: it goes to the front of the idle ones, and a reader of a whole file uses the same few, warm, slots over
 * and over. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mount_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/decode.h"

enum { MIN_BLOCKS = 4, SLOT_ALIGN = 1 << 12, HUGE_NBYTES = 2 << 20 };

enum state { FREE, QUEUED, BUSY, READY, FAILED };

struct link {
	struct link *prev, *next;
};

struct mount_block {
	struct link link;               /* first: a link is its block */
	struct mount_block *chain;      /* of the hash table */
	enum state state;
	uint32_t node;
	brv_archive *archive;           /* until it is decoded */
	unsigned users;                 /* readers that have it or wait for it */
	uint64_t offset, nbytes, used;
	uint8_t *bytes;
};

struct mount_cache {
	struct mount_cache_options options;
	pthread_mutex_t lock;           /* of all that follows, and of the blocks but for the bytes of busy ones */
	pthread_cond_t work;            /* something is queued and may run, or stop */
	pthread_cond_t done;            /* a block was decoded */
	pthread_cond_t room;            /* a block became idle */
	struct link free, urgent, ahead, idle;
	unsigned running;               /* blocks being decoded; at most options.threads */
	bool stop;
	struct mount_block *block, **bucket;
	size_t nblocks, nbuckets;
	uint8_t *memory;
	size_t memory_nbytes;
	uint8_t *told;                  /* by node: damage was reported */
	unsigned nthreads;
	pthread_t thread[];
};

static void list_init(struct link *list) { list->prev = list->next = list; }
static bool list_empty(const struct link *list) { return list->next == list; }

static void list_add(struct link *list, struct mount_block *block, bool front)
{
	struct link *before = front ? list : list->prev, *link = &block->link;
	link->prev = before, link->next = before->next;
	before->next->prev = link, before->next = link;
}

static struct mount_block *list_remove(struct link *link)
{
	link->prev->next = link->next, link->next->prev = link->prev;
	list_init(link);
	return (struct mount_block *)link;
}

/* Finding a block by node and offset. */

static struct mount_block **bucket_of(const struct mount_cache *cache, uint32_t node, uint64_t offset)
{
	uint64_t hash = (offset ^ (uint64_t)node << 48 ^ node) * 0x9e3779b97f4a7c15ull;
	return &cache->bucket[(hash >> 32) & (cache->nbuckets - 1)];
}

static struct mount_block *find_block(const struct mount_cache *cache, uint32_t node, uint64_t offset)
{
	struct mount_block *block = *bucket_of(cache, node, offset);
	while (block && (block->node != node || block->offset != offset))
		block = block->chain;
	return block;
}

static void forget_block(struct mount_cache *cache, struct mount_block *block)
{
	struct mount_block **at = bucket_of(cache, block->node, block->offset);
	while (*at != block)
		at = &(*at)->chain;
	*at = block->chain;
}

/* A slot for a new piece: one that was used up, a fresh one, the one idle longest; for a reader also one that was only asked for ahead. */
static struct mount_block *take_slot(struct mount_cache *cache, bool urgent)
{
	struct mount_block *idle = list_empty(&cache->idle) ? NULL : (struct mount_block *)cache->idle.next;
	if (!list_empty(&cache->free) && !(idle && idle->used >= idle->nbytes))
		return list_remove(cache->free.next);
	if (idle) {
		list_remove(&idle->link);
		forget_block(cache, idle);
		return idle;
	}
	if (!urgent || list_empty(&cache->ahead))
		return NULL;
	struct mount_block *block = list_remove(cache->ahead.prev);
	forget_block(cache, block);
	mount_archives_put(cache->options.archives, block->node);
	return block;
}

/* A block for the piece, on no list; its archive stays open until it has been decoded. NULL: no room. */
static struct mount_block *new_block(struct mount_cache *cache, uint32_t node, brv_archive *archive, uint64_t low, uint64_t high,
				     bool urgent)
{
	struct mount_block *block = take_slot(cache, urgent);
	if (!block)
		return NULL;
	mount_archives_share(cache->options.archives, node);
	struct mount_block **bucket = bucket_of(cache, node, low);
	block->state = QUEUED;
	block->node = node;
	block->archive = archive;
	block->users = 0;
	block->offset = low, block->nbytes = high - low, block->used = 0;
	block->chain = *bucket;
	*bucket = block;
	return block;
}

/* Decodes a block that is on no list. The lock is held, but not meanwhile. */
static void decode_block(struct mount_cache *cache, struct mount_block *block)
{
	struct mount_archives *archives = cache->options.archives;
	brv_error error;
	cache->running++;
	block->state = BUSY;
	pthread_mutex_unlock(&cache->lock);
	brv_status_code status = brv_decode_data(block->archive, block->offset, block->bytes, block->nbytes, NULL, &error);
	mount_archives_put(archives, block->node);
	pthread_mutex_lock(&cache->lock);
	cache->running--;
	block->state = status == BRV_SUCCESS ? READY : FAILED;
	bool tell = status != BRV_SUCCESS && !cache->told[block->node];
	cache->told[block->node] |= tell;
	if (tell)
		cache->options.damage(&archives->tree->node[block->node], error.text);
	if (block->users == 0)
		list_add(&cache->idle, block, false);
	pthread_cond_broadcast(&cache->done);
	pthread_cond_signal(&cache->room);
	if (!list_empty(&cache->urgent) || !list_empty(&cache->ahead))
		pthread_cond_signal(&cache->work);
}

static void *worker_main(void *argument)
{
	struct mount_cache *cache = argument;
	pthread_mutex_lock(&cache->lock);
	while (!cache->stop) {
		struct link *queue = !list_empty(&cache->urgent) ? &cache->urgent : &cache->ahead;
		if (list_empty(queue) || cache->running >= cache->options.threads)
			pthread_cond_wait(&cache->work, &cache->lock);
		else
			decode_block(cache, list_remove(queue->next));
	}
	pthread_mutex_unlock(&cache->lock);
	return NULL;
}

/* The reader decodes by itself if it may: the bytes are then in the cache of the CPU that sends them. */
static void await_block(struct mount_cache *cache, struct mount_block *block)
{
	if (block->state == QUEUED) {
		list_remove(&block->link);
		if (cache->running < cache->options.threads)
			decode_block(cache, block);
		else
			list_add(&cache->urgent, block, false);
	}
	while (block->state == QUEUED || block->state == BUSY)
		pthread_cond_wait(&cache->done, &cache->lock);
}

bool mount_cache_get(struct mount_cache *cache, uint32_t node, brv_archive *archive, uint64_t offset, bool wait, struct mount_piece *out)
{
	uint64_t low, high;
	struct mount_block *block;
	decode_piece(archive, offset, &low, &high);
	pthread_mutex_lock(&cache->lock);
	while (!(block = find_block(cache, node, low))) {
		block = new_block(cache, node, archive, low, high, true);
		if (block) {
			list_init(&block->link);
			break;
		}
		if (!wait) {
			pthread_mutex_unlock(&cache->lock);
			return false;
		}
		pthread_cond_wait(&cache->room, &cache->lock);
	}
	if (block->users++ == 0 && (block->state == READY || block->state == FAILED))
		list_remove(&block->link);
	await_block(cache, block);
	*out = (struct mount_piece){ low, high - low, block->state == READY ? block->bytes : NULL, block };
	pthread_mutex_unlock(&cache->lock);
	return true;
}

void mount_cache_put(struct mount_cache *cache, const struct mount_piece *piece, uint64_t nbytes)
{
	struct mount_block *block = piece->block;
	pthread_mutex_lock(&cache->lock);
	block->used += nbytes;
	if (--block->users == 0) {
		list_add(&cache->idle, block, block->used >= block->nbytes);
		pthread_cond_signal(&cache->room);
	}
	pthread_mutex_unlock(&cache->lock);
}

void mount_cache_ahead(struct mount_cache *cache, uint32_t node, brv_archive *archive, uint64_t offset, unsigned count)
{
	brv_info info;
	brv_get_info(archive, &info);
	pthread_mutex_lock(&cache->lock);
	for (; count > 0 && offset < info.data_nbytes; count--) {
		uint64_t low, high;
		decode_piece(archive, offset, &low, &high);
		if (!find_block(cache, node, low)) {
			struct mount_block *block = new_block(cache, node, archive, low, high, false);
			if (!block)
				break;
			list_add(&cache->ahead, block, false);
			pthread_cond_signal(&cache->work);
		}
		offset = high;
	}
	pthread_mutex_unlock(&cache->lock);
}

/* Enough for every thread to have one and for the reader to find some; not so many that two readers take each other's. */
unsigned mount_cache_depth(const struct mount_cache *cache)
{
	return (unsigned)MIN((uint64_t)cache->options.threads + 2, (uint64_t)cache->nblocks / 4);
}

/* Making and freeing. */

static enum brv_status alloc_blocks(struct mount_cache *cache, struct error *err)
{
	uint64_t slot = (MAX(cache->options.piece_limit, (uint64_t)1) + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN;
	cache->nblocks = MAX(cache->options.nbytes / slot, (uint64_t)MIN_BLOCKS);
	for (cache->nbuckets = 1; cache->nbuckets < 2 * cache->nblocks;)
		cache->nbuckets *= 2;
	cache->memory_nbytes = cache->nblocks * slot;
	void *memory = mmap(NULL, cache->memory_nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cache->memory = memory == MAP_FAILED ? NULL : memory;
	cache->block = calloc(cache->nblocks, sizeof *cache->block);
	cache->bucket = calloc(cache->nbuckets, sizeof(struct mount_block *));
	cache->told = calloc(cache->options.archives->tree->nnodes, 1);
	if (!cache->memory || !cache->block || !cache->bucket || !cache->told)
		return fail(err, BRV_MEMORY, "no memory for a cache of %zu pieces of %llu bytes", cache->nblocks, (unsigned long long)slot);
	madvise(cache->memory, cache->memory_nbytes, MADV_HUGEPAGE);
	for (size_t i = 0; i < cache->nblocks; i++) {
		cache->block[i].bytes = cache->memory + i * slot;
		list_add(&cache->free, &cache->block[i], false);
	}
	return BRV_OK;
}

static enum brv_status start_threads(struct mount_cache *cache, struct error *err)
{
	for (; cache->nthreads < cache->options.threads; cache->nthreads++)
		if (pthread_create(&cache->thread[cache->nthreads], NULL, worker_main, cache))
			break; /* fewer are slower, not wrong */
	return cache->nthreads ? BRV_OK : fail(err, BRV_MEMORY, "cannot start a thread");
}

enum brv_status alloc_mount_cache(const struct mount_cache_options *options, struct mount_cache **out, struct error *err)
{
	struct mount_cache *cache = calloc(1, sizeof *cache + options->threads * sizeof cache->thread[0]);
	*out = cache;
	if (!cache)
		return fail(err, BRV_MEMORY, "no memory for a cache");
	cache->options = *options;
	pthread_mutex_init(&cache->lock, NULL);
	pthread_cond_init(&cache->work, NULL);
	pthread_cond_init(&cache->done, NULL);
	pthread_cond_init(&cache->room, NULL);
	list_init(&cache->free);
	list_init(&cache->urgent);
	list_init(&cache->ahead);
	list_init(&cache->idle);
	TRY(alloc_blocks(cache, err));
	return start_threads(cache, err);
}

void free_mount_cache(struct mount_cache *cache)
{
	if (!cache)
		return;
	pthread_mutex_lock(&cache->lock);
	cache->stop = true;
	pthread_cond_broadcast(&cache->work);
	pthread_mutex_unlock(&cache->lock);
	for (unsigned i = 0; i < cache->nthreads; i++)
		pthread_join(cache->thread[i], NULL);
	for (size_t i = 0; cache->block && i < cache->nblocks; i++)
		if (cache->block[i].state == QUEUED)
			mount_archives_put(cache->options.archives, cache->block[i].node);
	if (cache->memory)
		munmap(cache->memory, cache->memory_nbytes);
	pthread_cond_destroy(&cache->room);
	pthread_cond_destroy(&cache->done);
	pthread_cond_destroy(&cache->work);
	pthread_mutex_destroy(&cache->lock);
	free(cache->told);
	free(cache->bucket);
	free(cache->block);
	free(cache);
}

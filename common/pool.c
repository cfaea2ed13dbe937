/* pool.c: a team of threads; items are handed out by an atomic counter, one for each group of workers (pool.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct worker {
	struct pool *pool;
	unsigned number, group;
	pthread_t thread;
};

/* The items of one group, handed out from the first on: `next` may run past the end. A cache line each. */
struct share {
	_Alignas(64) atomic_uint_fast64_t next;
	uint64_t end;
};

struct pool {
	unsigned threads;
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	uint64_t round;                 /* counts calls of pool_run(): a worker joins each once */
	unsigned busy;
	bool stop;
	pool_fn *fn;
	void *context;
	unsigned nshares;               /* of this run: 1, or one for each group */
	struct share *share;            /* as many as threads */
	struct worker worker[];
};

/* The own share first, then what is left of the others'. */
static void work(struct pool *pool, unsigned worker)
{
	unsigned own = pool->nshares > 1 ? pool->worker[worker].group : 0;
	for (unsigned i = 0; i < pool->nshares; i++) {
		struct share *share = &pool->share[(own + i) % pool->nshares];
		for (uint64_t item; (item = atomic_fetch_add(&share->next, 1)) < share->end;)
			pool->fn(pool->context, item, worker);
	}
}

static void *worker_main(void *argument)
{
	struct worker *self = argument;
	struct pool *pool = self->pool;
	uint64_t seen = 0;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (pool->round == seen && !pool->stop)
			pthread_cond_wait(&pool->start, &pool->lock);
		if (pool->stop)
			break;
		seen = pool->round;
		pthread_mutex_unlock(&pool->lock);
		work(pool, self->number);
		pthread_mutex_lock(&pool->lock);
		if (--pool->busy == 0)
			pthread_cond_signal(&pool->done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

enum brv_status alloc_pool(unsigned threads, struct pool **out, struct error *err)
{
	struct pool *pool = calloc(1, sizeof(*pool) + threads * sizeof(pool->worker[0]));

	*out = pool;
	if (pool)
		pool->share = aligned_alloc(_Alignof(struct share), threads * sizeof(*pool->share));
	if (!pool || !pool->share) {
		free(pool);
		*out = NULL;
		return fail(err, BRV_MEMORY, "no memory for %u threads", threads);
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->start, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->threads = 1;
	for (unsigned i = 1; i < threads; i++) {
		struct worker *w = &pool->worker[i];
		*w = (struct worker){ .pool = pool, .number = i };
		if (pthread_create(&w->thread, NULL, worker_main, w))
			break; /* fewer threads are slower, not wrong */
		pool->threads = i + 1;
	}
	return BRV_OK;
}

unsigned pool_threads(const struct pool *pool) { return pool->threads; }

pthread_t pool_thread(const struct pool *pool, unsigned worker) { return pool->worker[worker].thread; }

void pool_set_group(struct pool *pool, unsigned worker, unsigned group) { pool->worker[worker].group = group; }

/* n * k / of, without overflow for any n: k <= of. */
static uint64_t part_of(uint64_t n, unsigned k, unsigned of) { return n / of * k + n % of * k / of; }

/* Each group's share is as large as the group: workers first .. end - 1. */
static void cut_shares(struct pool *pool, uint64_t nitems)
{
	pool->nshares = 0;
	for (unsigned first = 0, end; first < pool->threads; first = end) {
		for (end = first + 1; end < pool->threads && pool->worker[end].group == pool->worker[first].group; end++)
			;
		assert(pool->worker[first].group == pool->nshares);
		struct share *share = &pool->share[pool->nshares++];
		atomic_store(&share->next, part_of(nitems, first, pool->threads));
		share->end = part_of(nitems, end, pool->threads);
	}
}

static void run(struct pool *pool, uint64_t nitems, pool_fn *fn, void *context)
{
	pool->fn = fn, pool->context = context;
	if (pool->threads > 1 && nitems > 1) {
		pthread_mutex_lock(&pool->lock);
		pool->busy = pool->threads - 1;
		pool->round++;
		pthread_cond_broadcast(&pool->start);
		pthread_mutex_unlock(&pool->lock);
	}
	work(pool, 0);
	pthread_mutex_lock(&pool->lock);
	while (pool->busy)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

void pool_run(struct pool *pool, uint64_t nitems, pool_fn *fn, void *context)
{
	pool->nshares = 1;
	atomic_store(&pool->share[0].next, 0);
	pool->share[0].end = nitems;
	run(pool, nitems, fn, context);
}

void pool_run_grouped(struct pool *pool, uint64_t nitems, pool_fn *fn, void *context)
{
	cut_shares(pool, nitems);
	run(pool, nitems, fn, context);
}

void free_pool(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->start);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 1; i < pool->threads; i++)
		pthread_join(pool->worker[i].thread, NULL);
	pthread_cond_destroy(&pool->start);
	pthread_cond_destroy(&pool->done);
	pthread_mutex_destroy(&pool->lock);
	free(pool->share);
	free(pool);
}

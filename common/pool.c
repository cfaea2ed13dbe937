/* pool.c: a team of threads; items are handed out by an atomic counter. SPDX-License-Identifier: Apache-2.0 */
#include "common/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct worker {
	struct pool *pool;
	unsigned number;
	pthread_t thread;
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
	uint64_t nitems;
	atomic_uint_fast64_t next;
	struct worker worker[];
};

static void work(struct pool *pool, unsigned worker)
{
	for (uint64_t item; (item = atomic_fetch_add(&pool->next, 1)) < pool->nitems;)
		pool->fn(pool->context, item, worker);
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
	if (!pool)
		return fail(err, BRV_MEMORY, "no memory for %u threads", threads);
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

void pool_run(struct pool *pool, uint64_t nitems, pool_fn *fn, void *context)
{
	pool->fn = fn, pool->context = context, pool->nitems = nitems;
	atomic_store(&pool->next, 0);
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
	free(pool);
}

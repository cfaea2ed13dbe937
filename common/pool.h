/* pool.h: a team of threads that share numbered work items. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_POOL_H
#define COMMON_POOL_H

#include <pthread.h>

#include "common/base.h"
#include "common/status.h"

struct pool;

/* Does one item. worker: 0..threads - 1, the same thread each time; 0 is the one that called pool_run(). */
typedef void pool_fn(void *context, uint64_t item, unsigned worker);

/* threads - 1 threads are started: fewer if the system refuses them. BRV_MEMORY. */
enum brv_status alloc_pool(unsigned threads, struct pool **out, struct error *err);
unsigned pool_threads(const struct pool *pool);
void free_pool(struct pool *pool);

/* Runs items 0..nitems - 1, each once, in about ascending order, and returns when all are done. One call at a time. */
void pool_run(struct pool *pool, uint64_t nitems, pool_fn *fn, void *context);

/* The same for workers in groups (those of one memory node): each group has its own run of items that follow each other, as long as the
 * group is large, and begins with it; who finds no more there helps the next group. */
void pool_run_grouped(struct pool *pool, uint64_t nitems, pool_fn *fn, void *context);

/* Puts a worker into a group, all are in 0 at first. Groups have numbers without gaps, which ascend with those of the workers. */
void pool_set_group(struct pool *pool, unsigned worker, unsigned group);

/* The thread of a worker other than 0. */
pthread_t pool_thread(const struct pool *pool, unsigned worker);

#endif

/* py_pools.c: teams of threads for the whole process, and what a fork makes of them.
 *
 * Starting threads for each call would cost more than decoding a small tensor, and a pool serves one call at a time: so a few are kept,
 * each call takes an idle one, and one that finds none works alone. A child has none of its parent's threads: it forgets the pools and
 * makes its own. SPDX-License-Identifier: Apache-2.0 */
#include "python/native/py_native.h"

#include <pthread.h>
#include <stdatomic.h>

enum { POOLS_MAX = 8 };

struct kept {
	brv_pool *pool;
	unsigned threads;               /* as asked for, and so the next */
	brv_numa numa;
	atomic_bool busy;
};

static struct kept kept[POOLS_MAX];
static unsigned kept_count, kept_generation;
static atomic_uint generation;

static void count_fork(void) { atomic_fetch_add(&generation, 1); }

unsigned fork_generation(void) { return atomic_load(&generation); }

int fork_watch(void)
{
	static bool watching;
	int number = watching ? 0 : pthread_atfork(NULL, NULL, count_fork);
	watching |= number == 0;
	return number;
}

static void forget_parents_pools(void)
{
	if (kept_generation == fork_generation())
		return;
	for (unsigned i = 0; i < kept_count; i++)
		atomic_store(&kept[i].busy, false);
	kept_count = 0;
	kept_generation = fork_generation();
}

brv_status_code pool_take(unsigned threads, brv_numa numa, brv_pool **pool, brv_error *error)
{
	*pool = NULL;
	forget_parents_pools();
	if (threads == 1 && numa != BRV_NUMA_INTERLEAVE)
		return BRV_SUCCESS;
	for (unsigned i = 0; i < kept_count; i++) {
		if (kept[i].threads == threads && kept[i].numa == numa) {
			if (!atomic_exchange(&kept[i].busy, true))
				*pool = kept[i].pool;
			return BRV_SUCCESS;
		}
	}
	if (kept_count == POOLS_MAX)
		return BRV_SUCCESS;
	const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = threads, .numa = numa };
	brv_status_code status = brv_pool_create_with(&options, &kept[kept_count].pool, error);
	if (status != BRV_SUCCESS)
		return status;
	kept[kept_count].threads = threads;
	kept[kept_count].numa = numa;
	atomic_store(&kept[kept_count].busy, true);
	*pool = kept[kept_count++].pool;
	return BRV_SUCCESS;
}

void pool_give(brv_pool *pool)
{
	for (unsigned i = 0; pool && i < kept_count; i++)
		if (kept[i].pool == pool)
			atomic_store(&kept[i].busy, false);
}

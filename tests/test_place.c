/* test_place.c: which worker goes to which CPUs, on machines that hwloc makes up, and what is left when the system refuses.
 *
 * On which nodes pages lie is asked of a real kernel: numa_guest.py. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <hwloc.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/place.h"

enum { MAX_WORKERS = 16 };

static hwloc_topology_t synthetic(const char *shape)
{
	hwloc_topology_t topology;
	hwloc_topology_init(&topology);
	cr_assert_eq(hwloc_topology_set_synthetic(topology, shape), 0, "%s", shape);
	cr_assert_eq(hwloc_topology_load(topology), 0, "%s", shape);
	return topology;
}

/* The plan for `threads` workers where the CPUs of the list are allowed ("" for all). */
static struct place *plan(const char *shape, const char *allowed, brv_numa mode, unsigned threads)
{
	hwloc_topology_t topology = synthetic(shape);
	hwloc_bitmap_t set = hwloc_bitmap_alloc_full();
	if (*allowed)
		hwloc_bitmap_list_sscanf(set, allowed);
	struct place *place = place_plan(topology, set, mode, threads);
	hwloc_bitmap_free(set);
	cr_assert_not_null(place);
	return place;
}

static void check_said(const struct place *place, unsigned threads, const char *said, const char *about)
{
	char text[256] = "";
	struct text_out out = { text, sizeof text, 0 };
	place_describe(place, threads, &out);
	cr_expect(strstr(text, said), "%s: found \"%s\", expected \"%s\"", about, text, said);
}

/* cpus: of worker 0, 1, ..., as lists; "any": not pinned. */
static const struct {
	const char *shape, *allowed;
	brv_numa mode;
	unsigned threads;
	const char *said, *cpus[MAX_WORKERS];
} plans[] = {
	{ "pu:1", "", BRV_NUMA_DEFAULT, 1, "threads 1 on 1 node, left to the kernel", { "any" } },
	{ "pu:1", "", BRV_NUMA_LOCAL, 3, "threads 3 on 1 node, each on its core", { "0", "0", "0" } },
	{ "pu:1", "", BRV_NUMA_INTERLEAVE, 2, "threads 2 on 1 node", { "any", "any" } },
	{ "core:4 pu:2", "", BRV_NUMA_DEFAULT, 4, "threads 4 on 1 node, left to the kernel", { "any", "any", "any", "any" } },
	{ "core:4 pu:2", "", BRV_NUMA_LOCAL, 4, "each on its core", { "0-1", "2-3", "4-5", "6-7" } },
	{ "core:4 pu:2", "", BRV_NUMA_LOCAL, 8, "each on its core", { "0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7" } },
	{ "core:4 pu:2", "", BRV_NUMA_LOCAL, 2, "each on its node", { "0-7", "0-7" } },
	{ "core:4 pu:2", "1,4-5", BRV_NUMA_LOCAL, 2, "each on its core", { "1", "4-5" } },
	{ "node:2 core:2 pu:1", "", BRV_NUMA_NONE, 4, "left to the kernel", { "any", "any", "any", "any" } },
	{ "node:2 core:2 pu:1", "", BRV_NUMA_DEFAULT, 4, "threads 4 on 2 nodes, each on its core", { "0", "1", "2", "3" } },
	{ "node:2 core:2 pu:1", "", BRV_NUMA_DEFAULT, 2, "threads 2 on 2 nodes, each on its node", { "0-1", "2-3" } },
	{ "node:2 core:2 pu:1", "", BRV_NUMA_LOCAL, 3, "each on its node", { "0-1", "0-1", "2-3" } },
	{ "node:2 core:2 pu:1", "", BRV_NUMA_LOCAL, 5, "each on its core", { "0", "0", "1", "2", "3" } },
	{ "node:2 core:2 pu:1", "", BRV_NUMA_INTERLEAVE, 2, "threads 2 on 2 nodes, output interleaved", { "any", "any" } },
	{ "node:2 core:2 pu:1", "2-3", BRV_NUMA_DEFAULT, 2, "threads 2 on 1 node, left to the kernel", { "any", "any" } },
	{ "node:2 core:2 pu:1", "2-3", BRV_NUMA_LOCAL, 2, "threads 2 on 1 node, each on its core", { "2", "3" } },
	{ "node:2 core:2 pu:1", "1,3", BRV_NUMA_DEFAULT, 2, "threads 2 on 2 nodes, each on its core", { "1", "3" } },
	{ "node:2 core:2 pu:1", "17", BRV_NUMA_LOCAL, 2, "left to the kernel", { "any", "any" } },
	{ "node:2 core:4 pu:2", "", BRV_NUMA_DEFAULT, 4, "each on its node", { "0-7", "0-7", "8-15", "8-15" } },
	{ "pack:2 node:2 core:2 pu:1", "", BRV_NUMA_DEFAULT, 4, "threads 4 on 4 nodes, each on its node", { "0-1", "2-3", "4-5", "6-7" } },
	/* Two kinds of memory beside the same CPUs count once. */
	{ "pack:2 [numa(memory=1GB)] [numa(memory=1GB)] core:2 pu:1", "", BRV_NUMA_DEFAULT, 4, "threads 4 on 2 nodes", { "0", "1", "2", "3" } },
	/* No node has memory. */
	{ "pack:2 [numa(memory=0)] core:1 pu:1", "", BRV_NUMA_DEFAULT, 2, "threads 2 on 2 nodes, each on its core", { "0", "1" } },
	{ "pack:2 [numa(memory=0)] core:1 pu:1", "", BRV_NUMA_INTERLEAVE, 2, "left to the kernel", { "any", "any" } },
};

Test(place, who_goes_where)
{
	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		struct place *place = plan(plans[i].shape, plans[i].allowed, plans[i].mode, plans[i].threads);
		char about[160], cpus[64];
		snprintf(about, sizeof about, "row %zu: %s, %u threads", i, plans[i].shape, plans[i].threads);
		check_said(place, plans[i].threads, plans[i].said, about);
		for (unsigned w = 0; w < plans[i].threads; w++) {
			strcpy(cpus, "any");
			if (place_cpus(place, w))
				hwloc_bitmap_list_snprintf(cpus, sizeof cpus, place_cpus(place, w));
			cr_expect_str_eq(cpus, plans[i].cpus[w], "%s: worker %u", about, w);
			cr_expect(w == 0 || place_node(place, w) >= place_node(place, w - 1), "%s: worker %u", about, w);
		}
		free_place(place);
	}
}

/* The same four nodes, but the third has no memory: its CPUs are used all the same. */
Test(place, a_node_without_memory)
{
	hwloc_topology_t full = synthetic("node:4(memory=1GB) core:2 pu:1"), topology;
	char *xml, *at;
	int nbytes;
	cr_assert_eq(hwloc_topology_export_xmlbuffer(full, &xml, &nbytes, 0), 0);
	at = xml;
	for (int node = 0; node < 3; node++)
		cr_assert_not_null(at = strstr(at + 1, "local_memory=\""));
	for (at += strlen("local_memory=\""); *at != '"'; at++)
		*at = '0';
	hwloc_topology_init(&topology);
	cr_assert_eq(hwloc_topology_set_xmlbuffer(topology, xml, nbytes), 0);
	cr_assert_eq(hwloc_topology_load(topology), 0);
	cr_assert_eq(hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, 2)->attr->numanode.local_memory, 0);
	struct place *place = place_plan(topology, hwloc_topology_get_topology_cpuset(topology), BRV_NUMA_DEFAULT, 8);
	check_said(place, 8, "threads 8 on 4 nodes, each on its core", "XML");
	for (unsigned w = 0; w < 8; w++)
		cr_expect(place_node(place, w) == w / 2 && hwloc_bitmap_isset(place_cpus(place, w), w), "worker %u", w);
	free_place(place);
	hwloc_free_xmlbuffer(full, xml);
	hwloc_topology_destroy(full);
}

/* Every number of threads on an uneven machine: nodes stay in order, and none with more cores has fewer workers. */
Test(place, uneven_nodes)
{
	for (unsigned threads = 1; threads <= 40; threads++) {
		struct place *place = plan("node:3 core:4 pu:2", "0-7,9,16-17,20-21", BRV_NUMA_LOCAL, threads); /* 4, 1 and 2 cores */
		unsigned count[3] = { 0 };
		for (unsigned w = 0; w < threads; w++)
			count[place_node(place, w)]++;
		cr_expect(count[0] >= count[2] && count[2] + 1 >= count[1], "%u threads: %u, %u, %u", threads, count[0], count[1], count[2]);
		cr_expect(threads < 7 || (count[1] >= threads / 7 && count[0] >= 4 * (threads / 7)), "%u threads", threads);
		free_place(place);
	}
}

enum { TEAM = 6, MAX_ITEMS = 1000 };

struct run {
	atomic_uint times[MAX_ITEMS];
	_Atomic uint64_t first[TEAM];   /* by worker: its first item */
	pthread_barrier_t *all;         /* nobody takes a second item before everybody has one; NULL: no waiting */
};

static void note_item(void *context, uint64_t item, unsigned worker)
{
	struct run *run = context;
	uint64_t none = UINT64_MAX;
	atomic_fetch_add(&run->times[item], 1);
	if (atomic_compare_exchange_strong(&run->first[worker], &none, item) && run->all)
		pthread_barrier_wait(run->all);
}

static void run_items(struct pool *pool, struct run *run, uint64_t nitems, bool grouped)
{
	memset(run->times, 0, sizeof run->times);
	for (unsigned w = 0; w < TEAM; w++)
		atomic_store(&run->first[w], UINT64_MAX);
	(grouped ? pool_run_grouped : pool_run)(pool, nitems, note_item, run);
	for (uint64_t i = 0; i < MAX_ITEMS; i++)
		cr_assert_eq(atomic_load(&run->times[i]), i < nitems, "%llu items: item %llu", (unsigned long long)nitems, (unsigned long long)i);
}

/* Each item is done once, whatever the groups; and every worker begins in its group's share. */
Test(place, shares_of_groups)
{
	static const unsigned groups[][TEAM] = { { 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 1, 1, 1 }, { 0, 1, 1, 1, 1, 2 }, { 0, 1, 2, 3, 4, 5 } };
	static const uint64_t items[] = { 0, 1, 2, 5, 6, 7, 100, MAX_ITEMS };
	for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
		struct pool *pool;
		struct error err;
		struct run run = { .all = NULL };
		pthread_barrier_t all;
		cr_assert_eq(alloc_pool(TEAM, &pool, &err), BRV_OK);
		cr_assert_eq(pool_threads(pool), TEAM);
		for (unsigned w = 0; w < TEAM; w++)
			pool_set_group(pool, w, groups[g][w]);
		for (size_t n = 0; n < ARRAY_LEN(items); n++) {
			run_items(pool, &run, items[n], true);
			run_items(pool, &run, items[n], false);
		}
		pthread_barrier_init(&all, NULL, TEAM);
		run.all = &all;
		run_items(pool, &run, 600, true);
		for (unsigned w = 0; w < TEAM; w++) {
			unsigned low = w, high = w + 1;
			while (low > 0 && groups[g][low - 1] == groups[g][w])
				low--;
			while (high < TEAM && groups[g][high] == groups[g][w])
				high++;
			uint64_t first = atomic_load(&run.first[w]);
			cr_expect(first >= 100 * low && first < 100 * low + TEAM && first < 100 * high, "groups %zu, worker %u: began with %llu", g, w,
				  (unsigned long long)first);
		}
		pthread_barrier_destroy(&all);
		free_pool(pool);
	}
}

static void use_pool(brv_numa mode, const char *said)
{
	const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = 3, .numa = mode };
	brv_pool *pool;
	brv_error error;
	char text[256];
	cpu_set_t before, after;
	CPU_ZERO(&before);
	CPU_ZERO(&after);
	sched_getaffinity(0, sizeof before, &before);
	cr_assert_eq(brv_pool_create_with(&options, &pool, &error), BRV_SUCCESS, "%s", error.text);
	sched_getaffinity(0, sizeof after, &after);
	cr_expect(CPU_EQUAL(&before, &after), "creating a pool moved its creator");
	cr_expect_eq(brv_pool_describe(pool, text, sizeof text), strlen(text));
	cr_expect(strstr(text, said), "found \"%s\", expected \"%s\"", text, said);
	cr_expect_eq(brv_pool_threads(pool), 3);
	brv_pool_free(pool);
}

/* As a container's filter does. */
static void refuse_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_mempolicy, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	const struct sock_fprog program = { ARRAY_LEN(filter), filter };
	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		cr_skip_test("no seccomp filters here");
}

Test(place, refused_by_the_system)
{
	use_pool(BRV_NUMA_LOCAL, "threads 3");
	refuse_calls();
	use_pool(BRV_NUMA_DEFAULT, "threads 3");
	use_pool(BRV_NUMA_NONE, "left to the kernel");
	use_pool(BRV_NUMA_LOCAL, "pinning refused: Operation not permitted");
	use_pool(BRV_NUMA_INTERLEAVE, "interleaving refused: Operation not permitted");
	size_t nbytes = 16 << 20;
	char *dst = alloc_big(nbytes);
	cr_assert_not_null(dst);
	place_output(NULL, dst + 1, nbytes - 1, true);
	memset(dst, 1, nbytes);
	free(dst);
}

/* A node that the machine does not have: the topology says two, and binding to the other is real. */
Test(place, a_topology_that_lies)
{
	setenv("HWLOC_SYNTHETIC", "node:2(memory=1GB) core:512 pu:1", 1);
	setenv("HWLOC_THISSYSTEM", "1", 1);
	use_pool(BRV_NUMA_LOCAL, "threads 3");
	use_pool(BRV_NUMA_INTERLEAVE, "threads 3");
}

Test(place, arguments)
{
	const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = 1, .numa = (brv_numa)4 };
	brv_pool *pool;
	brv_error error;
	cr_expect_eq(brv_pool_create_with(&options, &pool, &error), BRV_E_USAGE);
	cr_expect_null(pool);
	cr_expect_eq(brv_pool_create_with(&options, NULL, &error), BRV_E_USAGE);
	cr_assert_eq(brv_pool_create_with(NULL, &pool, &error), BRV_SUCCESS);
	char text[8];
	cr_expect_gt(brv_pool_describe(pool, text, sizeof text), 7);
	cr_expect_str_eq(text, "threads");
	cr_expect_gt(brv_pool_describe(pool, NULL, 0), 7);
	brv_pool_free(pool);
	cr_expect_null(alloc_big(SIZE_MAX));
}

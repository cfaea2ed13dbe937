/* place.c: which CPUs each thread of a pool runs on, and on which memory node and in what pages its output lies (place.h).
 *
 * A page belongs to the node of the CPU that first writes to it. So `local` binds no memory: workers stay on their nodes, those of a node
 * write one run of the output from end to end (pool_run_grouped), and the pages are there; a policy that the user has set (numactl)
 * holds. `interleave` binds the output, and leaves the threads where the kernel puts them.
 *
 * The default is `local` where threads can run on several nodes, and otherwise nothing: on one node all memory is equally near, pinning
 * gained nothing (perf/bench_decode, docs/PERFORMANCE.md), and a pinned worker waits when something else runs on its CPU, where the
 * kernel would have moved it.
 *
 * For the same reason a team that does not fill the CPUs is kept on its nodes only, each worker free among the node's CPUs: two processes
 * with few threads would otherwise meet on the same cores while the others idle. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/place.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/cpus.h"

/* LARGE: outputs from here on hold at least one whole huge page, wherever they begin. */
enum { HUGE_NBYTES = 2 << 20, LARGE_NBYTES = 2 * HUGE_NBYTES };

/* CPUs that may be used, and the node they are near to. */
struct node {
	hwloc_obj_t object;             /* NULL: the kernel has no memory for them, and takes it from some other node */
	hwloc_bitmap_t cpus;
	unsigned ncores;
};

struct core {
	hwloc_bitmap_t cpus;            /* its hardware threads that may be used */
	unsigned node;
};

struct place {
	brv_numa mode;                  /* what is done: never BRV_NUMA_DEFAULT */
	unsigned threads;
	bool one_node;                  /* known without the topology */
	unsigned nnodes, ncores;        /* 0: the topology has not been read */
	struct node *node;
	struct core *core;              /* node by node */
	hwloc_topology_t topology;
	hwloc_bitmap_t memory;          /* nodes to interleave, by their numbers in the system */
	hwloc_bitmap_t home;            /* where the calling thread may run when it is not worker 0 */
	bool entered;
	int pin_errno, bind_errno;      /* 0: not refused */
};

/* Cores are dealt out node by node, so that the workers spread over all of them and stay in order. */
static const struct core *worker_core(const struct place *place, unsigned worker)
{
	return &place->core[(uint64_t)worker * place->ncores / place->threads];
}

static bool fills(const struct place *place) { return place->threads >= place->ncores; }

const struct hwloc_bitmap_s *place_cpus(const struct place *place, unsigned worker)
{
	if (!place || place->mode != BRV_NUMA_LOCAL)
		return NULL;
	const struct core *core = worker_core(place, worker);
	return fills(place) ? core->cpus : place->node[core->node].cpus;
}

unsigned place_node(const struct place *place, unsigned worker)
{
	return place && place->mode == BRV_NUMA_LOCAL ? worker_core(place, worker)->node : 0;
}

/* CPUs, cores and nodes of this machine, and nothing else; NULL if they cannot be had. hwloc's x86 backend would run on every CPU in turn to
 * ask it, which takes longer and moves this thread about; the kernel knows the same. */
static hwloc_topology_t load_topology(void)
{
	const unsigned long flags = HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
				    HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
	hwloc_topology_t topology;
	/* Without it hwloc has nothing to say but to complain on stderr. */
	if (access("/sys/devices/system/cpu", R_OK) != 0 || hwloc_topology_init(&topology) != 0)
		return NULL;
	hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE); /* nodes hang on them */
	hwloc_topology_set_flags(topology, flags);
	hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	if (hwloc_topology_load(topology) == 0)
		return topology;
	hwloc_topology_destroy(topology);
	return NULL;
}

/* Adds `cpus` (taken over) as a node, core by core. hwloc numbers the hardware threads of a core one after the other. */
static bool add_node(struct place *place, hwloc_obj_t object, hwloc_bitmap_t cpus)
{
	struct node *node = &place->node[place->nnodes++];
	hwloc_obj_t last = NULL;
	*node = (struct node){ .object = object, .cpus = cpus };
	for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(place->topology, HWLOC_OBJ_PU, pu));) {
		if (!hwloc_bitmap_isset(cpus, pu->os_index))
			continue;
		hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(place->topology, HWLOC_OBJ_CORE, pu);
		if (!core || core != last) {
			hwloc_bitmap_t set = hwloc_bitmap_alloc();
			if (!set)
				return false;
			place->core[place->ncores++] = (struct core){ set, (unsigned)(node - place->node) };
			node->ncores++;
		}
		if (hwloc_bitmap_set(place->core[place->ncores - 1].cpus, pu->os_index) != 0)
			return false;
		last = core;
	}
	return true;
}

/* Every CPU goes to the first node that has it: where two kinds of memory are equally near (HBM), that is the ordinary one. Nodes
 * without CPUs (expanders, accelerators) are left alone: who wants their memory says so with numactl. */
static bool add_nodes(struct place *place, hwloc_const_bitmap_t allowed)
{
	hwloc_bitmap_t left = hwloc_bitmap_dup(allowed), cpus = NULL;
	bool ok = left != NULL && hwloc_bitmap_and(left, left, hwloc_topology_get_topology_cpuset(place->topology)) == 0;
	for (hwloc_obj_t object = NULL; ok && (object = hwloc_get_next_obj_by_type(place->topology, HWLOC_OBJ_NUMANODE, object));) {
		cpus = hwloc_bitmap_alloc();
		ok = cpus && hwloc_bitmap_and(cpus, left, object->cpuset) == 0 && hwloc_bitmap_andnot(left, left, object->cpuset) == 0;
		if (ok && !hwloc_bitmap_iszero(cpus)) {
			if (object->attr->numanode.local_memory > 0)
				hwloc_bitmap_set(place->memory, object->os_index);
			ok = add_node(place, object, cpus);
		} else {
			hwloc_bitmap_free(cpus);
		}
	}
	if (!ok || hwloc_bitmap_iszero(left)) {
		hwloc_bitmap_free(left);
		return ok;
	}
	return add_node(place, NULL, left);
}

/* Whether pages can be interleaved is tried on one. */
static int try_interleave(const struct place *place)
{
	size_t nbytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return errno;
	int number = hwloc_set_area_membind(place->topology, page, nbytes, place->memory, HWLOC_MEMBIND_INTERLEAVE,
					    HWLOC_MEMBIND_BYNODESET) == 0 ? 0 : errno;
	munmap(page, nbytes);
	return number;
}

/* What is done of what was asked. */
static brv_numa effective(struct place *place, brv_numa mode)
{
	if (place->ncores == 0)
		return BRV_NUMA_NONE;
	if (mode == BRV_NUMA_DEFAULT)
		return place->nnodes > 1 ? BRV_NUMA_LOCAL : BRV_NUMA_NONE;
	if (mode == BRV_NUMA_INTERLEAVE && hwloc_bitmap_weight(place->memory) > 0)
		place->bind_errno = try_interleave(place);
	return mode == BRV_NUMA_INTERLEAVE && hwloc_bitmap_iszero(place->memory) ? BRV_NUMA_NONE : mode;
}

/* topology NULL: nothing is placed. */
struct place *place_plan(struct hwloc_topology *topology, const struct hwloc_bitmap_s *allowed, brv_numa mode, unsigned threads)
{
	struct place *place = calloc(1, sizeof *place);
	if (!place) {
		if (topology)
			hwloc_topology_destroy(topology);
		return NULL;
	}
	*place = (struct place){ .mode = BRV_NUMA_NONE, .threads = threads, .topology = topology };
	if (!topology)
		return place;
	int nnodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE), npus = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	place->node = calloc((size_t)MAX(nnodes, 0) + 1, sizeof *place->node);
	place->core = calloc((size_t)MAX(npus, 0) + 1, sizeof *place->core);
	place->memory = hwloc_bitmap_alloc();
	place->home = hwloc_bitmap_alloc();
	if (!place->node || !place->core || !place->memory || !place->home || !add_nodes(place, allowed)) {
		free_place(place);
		return NULL;
	}
	place->mode = effective(place, mode);
	return place;
}

/* True if the kernel knows of one memory node only, which saves the reading of the topology. */
static bool one_node(void)
{
	char list[64];
	return !read_line("/sys/devices/system/node/has_memory", list, sizeof list) || !strpbrk(list, "-,");
}

struct place *alloc_place(brv_numa mode, unsigned threads)
{
	bool one = one_node(), nothing = mode == BRV_NUMA_NONE || (mode == BRV_NUMA_DEFAULT && (threads == 1 || one));
	hwloc_topology_t topology = nothing ? NULL : load_topology();
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc_full();
	if (topology && allowed)
		hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD); /* fails: all of them */
	struct place *place = place_plan(topology, allowed, mode, threads);
	hwloc_bitmap_free(allowed);
	if (place)
		place->one_node = one;
	return place;
}

void free_place(struct place *place)
{
	if (!place)
		return;
	for (unsigned i = 0; i < place->nnodes; i++)
		hwloc_bitmap_free(place->node[i].cpus);
	for (unsigned i = 0; i < place->ncores; i++)
		hwloc_bitmap_free(place->core[i].cpus);
	hwloc_bitmap_free(place->memory);
	hwloc_bitmap_free(place->home);
	if (place->topology)
		hwloc_topology_destroy(place->topology);
	free(place->node);
	free(place->core);
	free(place);
}

void place_team(struct place *place, struct pool *team)
{
	if (!place || place->mode != BRV_NUMA_LOCAL)
		return;
	for (unsigned i = 0, group = 0; i < place->threads; i++) {
		group += i > 0 && place_node(place, i) != place_node(place, i - 1);
		pool_set_group(team, i, group);
		if (i > 0 && hwloc_set_thread_cpubind(place->topology, pool_thread(team, i), place_cpus(place, i), 0) != 0)
			place->pin_errno = errno;
	}
}

void place_enter(struct place *place)
{
	const struct hwloc_bitmap_s *cpus = place_cpus(place, 0);
	if (!cpus || hwloc_get_cpubind(place->topology, place->home, HWLOC_CPUBIND_THREAD) != 0)
		return;
	place->entered = hwloc_set_cpubind(place->topology, cpus, HWLOC_CPUBIND_THREAD) == 0;
}

void place_leave(struct place *place)
{
	if (!place || !place->entered)
		return;
	place->entered = false;
	hwloc_set_cpubind(place->topology, place->home, HWLOC_CPUBIND_THREAD);
}

/* Asking costs a system call. For memory that is not anonymous it changes nothing (or helps: tmpfs), so what it is does not matter. */
void place_output(const struct place *place, void *dst, size_t nbytes, bool huge)
{
	if (nbytes < LARGE_NBYTES)
		return;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t low = ((uintptr_t)dst + page - 1) / page * page, high = ((uintptr_t)dst + nbytes) / page * page;
	if (huge)
		madvise((void *)low, high - low, MADV_HUGEPAGE);
	if (place && place->mode == BRV_NUMA_INTERLEAVE)
		hwloc_set_area_membind(place->topology, (void *)low, high - low, place->memory, HWLOC_MEMBIND_INTERLEAVE,
				       HWLOC_MEMBIND_BYNODESET);
}

void *alloc_big(size_t nbytes)
{
	size_t align = nbytes >= HUGE_NBYTES ? HUGE_NBYTES : 64;
	void *ptr = nbytes <= SIZE_MAX - align ? aligned_alloc(align, (nbytes + align - 1) / align * align) : NULL;
	if (ptr && align == HUGE_NBYTES)
		madvise(ptr, nbytes, MADV_HUGEPAGE);
	return ptr;
}

/* NULL: huge pages are to be had. */
static const char *no_huge_pages(void)
{
	char line[128];
	if (!read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
		return "the kernel shows none";
	if (strstr(line, "[never]"))
		return "switched off in /sys/kernel/mm/transparent_hugepage/enabled";
	return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0 ? "switched off for this process" : NULL;
}

void place_describe(const struct place *place, unsigned threads, struct text_out *out)
{
	const char *no_huge = no_huge_pages();
	text_add(out, "threads %u", threads);
	if (place && (place->nnodes > 0 || place->one_node))
		text_add(out, " on %u node%s", MAX(place->nnodes, 1u), place->nnodes > 1 ? "s" : "");
	if (!place || place->mode == BRV_NUMA_NONE)
		text_add(out, ", left to the kernel");
	else if (place->mode == BRV_NUMA_LOCAL && place->pin_errno)
		text_add(out, ", pinning refused: %s", strerror(place->pin_errno));
	else if (place->mode == BRV_NUMA_LOCAL)
		text_add(out, ", each on its %s", fills(place) ? "core" : "node");
	else if (place->bind_errno)
		text_add(out, ", interleaving refused: %s", strerror(place->bind_errno));
	else
		text_add(out, ", output interleaved");
	text_add(out, ", huge pages: %s%s%s", no_huge ? "no (" : "yes", no_huge ? no_huge : "", no_huge ? ")" : "");
}

static void report_node(const struct node *node, struct text_out *out)
{
	char nbytes[16];
	if (node->object)
		text_add(out, "memory node:      %u: %s", node->object->os_index, text_nbytes(node->object->attr->numanode.local_memory, nbytes));
	else
		text_add(out, "memory node:      none");
	text_add(out, ", cores: %u, CPUs: %d\n", node->ncores, hwloc_bitmap_weight(node->cpus));
}

void place_report(unsigned threads, struct text_out *out)
{
	struct place *nodes = alloc_place(BRV_NUMA_LOCAL, threads), *place = alloc_place(BRV_NUMA_DEFAULT, threads);
	for (unsigned i = 0; nodes && i < nodes->nnodes; i++)
		report_node(&nodes->node[i], out);
	text_add(out, "placement:        ");
	place_describe(place, threads, out);
	text_add(out, "\n");
	free_place(nodes);
	free_place(place);
}

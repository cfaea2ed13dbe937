/* place.h: which CPUs each thread of a pool runs on, and on which memory node and in what pages its output lies.
 *
 * All of it is a matter of speed, and nothing here fails: what a system does not have or refuses (no /sys, one CPU, a cpuset, a seccomp
 * filter, a node without memory) is left to the kernel, and place_describe() says so. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_PLACE_H
#define RUNTIME_PLACE_H

#include "common/pool.h"
#include "common/text.h"
#include "runtime/brevis.h"

struct place;

/* Where `threads` workers should go. Reads the machine's topology (2 ms) unless it is clear that nothing will be placed. NULL if there
 * is no memory, which every function here takes for "nothing is placed". */
struct place *alloc_place(brv_numa mode, unsigned threads);
void free_place(struct place *place);

/* Pins the threads of a team of as many workers, but for worker 0, and puts them in groups. */
void place_team(struct place *place, struct pool *team);

/* A number for the node that a worker runs on; 0 if nothing is placed. */
unsigned place_node(const struct place *place, unsigned worker);

/* Worker 0 is the thread that calls: it is pinned between the two, and then gets back the CPUs it had. One pair at a time. */
void place_enter(struct place *place);
void place_leave(struct place *place);

/* Before nbytes at dst are written for the first time: asks for huge pages, and spreads the pages over the nodes if the mode
 * says so. Small outputs stay as they are. */
void place_output(const struct place *place, void *dst, size_t nbytes, bool huge);

/* Memory for nbytes, in huge pages if it is large and they are to be had; free() takes it back. NULL if there is none. */
void *alloc_big(size_t nbytes);

/* "threads 4 on 2 nodes, each on its core, huge pages: yes". */
void place_describe(const struct place *place, unsigned threads, struct text_out *out);

/* The nodes of this machine, and what brv_pool_create(0, ...) would do with them, in lines for `brevis cpu`. */
void place_report(unsigned threads, struct text_out *out);

/* For tests: alloc_place() on a topology that is already loaded (and taken over), with the CPUs that may be used; the CPUs of a worker,
 * NULL: any. */
struct hwloc_topology;
struct hwloc_bitmap_s;
struct place *place_plan(struct hwloc_topology *topology, const struct hwloc_bitmap_s *allowed, brv_numa mode, unsigned threads);
const struct hwloc_bitmap_s *place_cpus(const struct place *place, unsigned worker);

#endif

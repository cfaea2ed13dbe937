/* node_pages.c: decodes an archive and asks the kernel on which memory nodes the output lies; tests/numa_guest.py runs it.
 *
 *     node_pages ARCHIVE default|none|local|interleave THREADS HUGE
 *
 * HUGE: 1 to let the library ask for huge pages. Prints one line of JSON: what the pool says; whether this thread has its CPUs back; bytes
 * decoded by CPUs of each node; pages on each node, for each eighth of the output; and how often neighbouring pages lie on different
 * nodes. SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/brevis.h"

enum { PAGE = 4096, REGIONS = 8, NODES = 4 };

struct seen {
	uint64_t done, decoded[NODES];
	uint64_t pages[REGIONS][NODES], changes;
};

static void die(const char *what)
{
	fprintf(stderr, "node_pages: %s\n", what);
	exit(1);
}

/* brv_progress_fn: what is new was decoded by the thread that says so. */
static int count_decoded(void *context, uint64_t done, uint64_t total)
{
	struct seen *seen = context;
	unsigned cpu, node;
	(void)total;
	if (getcpu(&cpu, &node) == 0 && node < NODES)
		seen->decoded[node] += done - seen->done;
	seen->done = done;
	return 0;
}

static void count_pages(struct seen *seen, char *bytes, size_t nbytes)
{
	int last = -1;
	for (size_t at = 0; at < nbytes; at += PAGE) {
		void *page = bytes + at;
		int node;
		if (syscall(SYS_move_pages, 0, 1ul, &page, NULL, &node, 0) != 0 || node < 0 || node >= NODES)
			die("a page is on no node");
		seen->pages[at / PAGE * REGIONS / ((nbytes + PAGE - 1) / PAGE)][node]++;
		seen->changes += last >= 0 && node != last;
		last = node;
	}
}

static void print_list(const char *key, const uint64_t list[NODES])
{
	printf("%s[%llu, %llu, %llu, %llu]", key, (unsigned long long)list[0], (unsigned long long)list[1], (unsigned long long)list[2],
	       (unsigned long long)list[3]);
}

static brv_numa mode_of(const char *name)
{
	static const char *const names[] = { "default", "none", "local", "interleave" };
	for (int i = 0; i < 4; i++)
		if (strcmp(name, names[i]) == 0)
			return (brv_numa)i;
	die("no such mode");
	return BRV_NUMA_DEFAULT;
}

int main(int argc, char **argv)
{
	struct seen seen = { 0 };
	char described[256];
	brv_archive *archive;
	brv_pool *pool;
	brv_error error;
	brv_info info;
	cpu_set_t before, after;
	if (argc != 5)
		die("expected ARCHIVE MODE THREADS HUGE");
	const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = (unsigned)atoi(argv[3]), .numa = mode_of(argv[2]) };
	if (brv_open_path(argv[1], NULL, &archive, &error) || brv_pool_create_with(&options, &pool, &error))
		die(error.text);
	brv_get_info(archive, &info);
	brv_pool_describe(pool, described, sizeof described);
	char *dst = mmap(NULL, info.data_nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (dst == MAP_FAILED)
		die("no memory");
	const brv_call call = { .struct_nbytes = sizeof call, .pool = pool, .progress = count_decoded, .progress_context = &seen,
				.no_huge_pages = atoi(argv[4]) == 0 };
	sched_getaffinity(0, sizeof before, &before);
	if (brv_decode_data(archive, 0, dst, info.data_nbytes, &call, &error))
		die(error.text);
	sched_getaffinity(0, sizeof after, &after);
	count_pages(&seen, dst, info.data_nbytes);
	printf("{\"described\": \"%s\", \"kept\": %s, \"changes\": %llu", described, CPU_EQUAL(&before, &after) ? "true" : "false",
	       (unsigned long long)seen.changes);
	print_list(", \"decoded\": ", seen.decoded);
	for (int i = 0; i < REGIONS; i++)
		print_list(i ? ", " : ", \"pages\": [", seen.pages[i]);
	printf("]}\n");
	brv_pool_free(pool);
	brv_close(archive);
	munmap(dst, info.data_nbytes);
	return 0;
}

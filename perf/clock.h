/* clock.h: what all benchmarks share: pinning, time, medians, memory that is backed by huge pages.
 *
 * A figure is the median of REPEATS runs; every run times memcpy of the same number of bytes right before, and it is the ratio of the
 * two that can be compared between machines and days. SPDX-License-Identifier: Apache-2.0 */
#ifndef PERF_CLOCK_H
#define PERF_CLOCK_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "common/base.h"
#include "common/seconds.h"

enum { REPEATS = 7 };

/* Stays on the CPU that this thread is on. */
static inline void pin(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Touched memory; exits if there is none. */
static inline void *warm(size_t nbytes)
{
	void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(6);
	}
	madvise(p, nbytes, MADV_HUGEPAGE);
	memset(p, 1, nbytes);
	return p;
}

/* Time that this thread has had a CPU: what others take does not count, but for the caches. */
static inline double thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static inline double median(const double *values)
{
	double sorted[REPEATS];
	memcpy(sorted, values, sizeof(sorted));
	qsort(sorted, REPEATS, sizeof(double), by_value);
	return sorted[REPEATS / 2];
}

#endif

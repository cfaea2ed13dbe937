/* cpus.h: how many threads this process may use: its affinity mask and the quota of its cgroup (v1 or v2), or BREVIS_THREADS.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_CPUS_H
#define COMMON_CPUS_H

#include "common/base.h"
#include "common/status.h"

#define CPUS_MAX 1024u          /* more threads than this are refused as a mistake */

struct cpus {
	unsigned affinity;              /* CPUs in the affinity mask, at least 1 */
	unsigned quota;                 /* the cgroup's CPU quota rounded up, 0: none */
	unsigned usable;                /* the smaller of the two: the default */
};
void cpus_detect(struct cpus *out);

/* Threads to use: `asked` if > 0 (an option), else BREVIS_THREADS if set, else the default. BRV_USAGE if BREVIS_THREADS is no
 * number of 1..CPUS_MAX, or asked is above CPUS_MAX. */
enum brv_status cpus_threads(unsigned asked, unsigned *out, struct error *err);

/* The first line of a file, as those in /sys and /proc are, without its end; false if there is none. */
bool read_line(const char *path, char *line, size_t size);

#endif

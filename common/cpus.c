/* cpus.c: how many threads this process may use (cpus.h).
 *
 * A container's limit is mostly not in the affinity mask but in a CPU quota of a cgroup above the process; the smallest on the way to the
 * root counts. SPDX-License-Identifier: Apache-2.0 */
#include "common/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"

static unsigned affinity_count(void)
{
	for (int n = 1024; n <= 1 << 16; n *= 4) {
		cpu_set_t *set = CPU_ALLOC((size_t)n);
		if (!set)
			break;
		size_t size = CPU_ALLOC_SIZE((size_t)n);
		int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
		CPU_FREE(set);
		if (count > 0)
			return (unsigned)count;
	}
	return 1;
}

bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool ok = fgets(line, (int)size, file) != NULL;
	fclose(file);
	if (ok)
		line[strcspn(line, "\n")] = 0;
	return ok;
}

static unsigned quota_cpus(long long quota, long long period)
{
	if (quota <= 0 || period <= 0)
		return 0;
	long long cpus = quota / period + (quota % period != 0);
	return (unsigned)MIN(cpus, (long long)1 << 20);
}

/* Quota of one cgroup directory, 0: none. */
static unsigned quota_of(const char *directory, bool v2)
{
	char path[4352], line[64];
	long long quota, period;
	if (v2) {
		snprintf(path, sizeof path, "%s/cpu.max", directory);
		return read_line(path, line, sizeof line) && sscanf(line, "%lld %lld", &quota, &period) == 2 ? quota_cpus(quota, period) : 0;
	}
	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
	if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &quota) != 1)
		return 0;
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
	if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &period) != 1)
		return 0;
	return quota_cpus(quota, period);
}

/* The smallest quota from mount/group up to mount itself. In a container without a cgroup namespace the group does not exist below the
 * mount, and the mount is the container's own group: the walk ends there all the same. */
static unsigned smallest_quota(const char *mount, const char *group, bool v2)
{
	char directory[4224];
	unsigned smallest = 0;
	int root = snprintf(directory, sizeof directory, "%s", mount);
	snprintf(directory + root, sizeof directory - (size_t)root, "%s", group);
	for (;;) {
		unsigned quota = quota_of(directory, v2);
		if (quota && (!smallest || quota < smallest))
			smallest = quota;
		char *slash = strrchr(directory, '/');
		if (!slash || slash < directory + root)
			return smallest;
		*slash = 0;
	}
}

/* True if `list` ("cpu,cpuacct") names the cpu controller. */
static bool has_cpu_controller(const char *list)
{
	for (size_t n; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == 3 && memcmp(list, "cpu", 3) == 0)
			return true;
	}
	return false;
}

/* /proc/self/cgroup has a line "0::GROUP" for v2 and lines "ID:CONTROLLERS:GROUP" for v1. */
static unsigned cgroup_quota(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096 + 64];
	unsigned smallest = 0;
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*controllers++ = 0;
		*group++ = 0;
		unsigned quota = 0;
		if (*controllers == 0)
			quota = smallest_quota("/sys/fs/cgroup", group, true);
		else if (has_cpu_controller(controllers))
			quota = smallest_quota("/sys/fs/cgroup/cpu", group, false);
		if (quota && (!smallest || quota < smallest))
			smallest = quota;
	}
	if (file)
		fclose(file);
	return smallest;
}

void cpus_detect(struct cpus *out)
{
	out->affinity = affinity_count();
	out->quota = cgroup_quota();
	out->usable = MIN(out->quota ? MIN(out->affinity, out->quota) : out->affinity, CPUS_MAX);
}

enum brv_status cpus_threads(unsigned asked, unsigned *out, struct error *err)
{
	const char *text = getenv("BREVIS_THREADS");
	uint64_t value;
	if (asked > CPUS_MAX)
		return fail(err, BRV_USAGE, "%u threads: expected at most %u", asked, CPUS_MAX);
	if (asked > 0) {
		*out = asked;
	} else if (text && *text) {
		if (!text_number(text, 1, CPUS_MAX, &value))
			return fail(err, BRV_USAGE, "BREVIS_THREADS is \"%.40s\": expected a number from 1 to %u", text, CPUS_MAX);
		*out = (unsigned)value;
	} else {
		struct cpus cpus;
		cpus_detect(&cpus);
		*out = cpus.usable;
	}
	return BRV_OK;
}

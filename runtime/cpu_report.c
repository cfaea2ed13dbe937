/* cpu_report.c: what was detected, what is used and why (brv_cpu_report). SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/cpus.h"
#include "common/text.h"
#include "kernels/kernel.h"
#include "runtime/place.h"

static void put_model(struct text_out *report)
{
	char model[256];
	cpu_describe(model, sizeof model);
	text_add(report, "cpu:              %s\n", model);
}

static void put_sets(struct text_out *report)
{
	const char *asked = getenv("BREVIS_ISA");
	const struct kn_set *chosen;
	struct error err;
	for (const struct kn_set *const *set = kn_sets; *set; set++)
		text_add(report, "kernel set:       %-8s %s\n", (*set)->name, (*set)->why());
	if (kn_choose(&chosen, &err) != BRV_OK)
		text_add(report, "in use:           none: %s\n", err.text);
	else
		text_add(report, "in use:           %s (%s)\n", chosen->name, asked && *asked ? "BREVIS_ISA" : "the last that runs here");
}

static void put_threads(struct text_out *report)
{
	const char *asked = getenv("BREVIS_THREADS");
	struct cpus cpus;
	struct error err;
	unsigned threads;
	cpus_detect(&cpus);
	text_add(report, "affinity mask:    %u CPUs\n", cpus.affinity);
	if (cpus.quota)
		text_add(report, "cgroup quota:     %u CPUs\n", cpus.quota);
	else
		text_add(report, "cgroup quota:     none\n");
	if (cpus_threads(0, &threads, &err) != BRV_OK) {
		text_add(report, "default threads:  none: %s\n", err.text);
		return;
	}
	text_add(report, "default threads:  %u (%s)\n", threads, asked && *asked ? "BREVIS_THREADS" : "the smaller of the two");
	place_report(threads, report);
}

size_t brv_cpu_report(char *text, size_t size)
{
	struct text_out report = { text, size, 0 };
	if (size)
		text[0] = 0;
	put_model(&report);
	put_sets(&report);
	put_threads(&report);
	return report.length;
}

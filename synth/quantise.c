/* quantise.c: frequencies of a code from counts (quantise.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/quantise.h"

#include <math.h>

#include "synth/log2i.h"

/* Bits that a symbol of weight p loses by one step of its frequency. */
static double step_cost(double p, unsigned f, int step, unsigned total)
{
	const unsigned to = f + (unsigned)step;
	return !f || to < 1 || to > total - 1 ? HUGE_VAL : p * (log2i(f) - log2i(to));
}

void quantise(const double *p, unsigned m, unsigned total, unsigned *f)
{
	double sum = 0, cost[QUANTISE_MAX_SYMBOLS];
	unsigned now = 0;

	for (unsigned i = 0; i < m; i++)
		sum += p[i];
	for (unsigned i = 0; i < m; i++) {
		const double v = p[i] / sum * total + .5;
		f[i] = p[i] <= 0 ? 0 : v < 1 ? 1 : v > total - 1 ? total - 1 : (unsigned)v;
		now += f[i];
	}
	/* A step changes one cost only; without that this is quadratic, and most of the time of making tables. */
	const int step = now < total ? 1 : -1;
	for (unsigned i = 0; i < m; i++)
		cost[i] = step_cost(p[i], f[i], step, total);
	for (; now != total; now += (unsigned)step) {
		unsigned at = 0;
		for (unsigned i = 1; i < m; i++)
			at = cost[i] < cost[at] ? i : at;
		f[at] += (unsigned)step;
		cost[at] = step_cost(p[at], f[at], step, total);
	}
}

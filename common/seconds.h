/* seconds.h: a clock that only goes forward, for measuring. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_SECONDS_H
#define COMMON_SECONDS_H

#include <time.h>

static inline double seconds_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif

/* analysis.h: what scripts/analyse tells the analysers before each file: a failure is never a success. They see one file at a time and would
 * else follow paths on which fail() returns BRV_OK. SPDX-License-Identifier: Apache-2.0 */
#include "common/status.h"

static inline enum brv_status known_failure(enum brv_status status)
{
	if (status == BRV_OK)
		__builtin_unreachable();
	return status;
}
#define fail(err, status, ...) (fail(err, status, __VA_ARGS__), known_failure(status))

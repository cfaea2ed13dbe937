/* branchless.h: a choice that stays a conditional move. Compilers like to sink one side's computation behind a branch; where the outcome
 * is as good as random, every second one would be mispredicted. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_BRANCHLESS_H
#define KERNELS_BRANCHLESS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t choose_u32(bool first, uint32_t a, uint32_t b)
{
	__asm__("" : "+r"(a), "+r"(b)); /* both are there, whatever the choice */
	return first ? a : b;
}

#endif

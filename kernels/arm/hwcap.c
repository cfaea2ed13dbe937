/* hwcap.c: Arm features. NEON is part of AArch64. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/auxv.h>

#include "kernels/cpu.h"
#include "kernels/kernel.h"

#ifndef HWCAP_ASIMD
#define HWCAP_ASIMD (1ul << 1)
#endif
#ifndef HWCAP_SVE
#define HWCAP_SVE (1ul << 22)
#endif

bool kn_supported_scalar(void) { return true; }
bool kn_supported_neon(void) { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; }
const char *kn_why_scalar(void) { return "runs everywhere"; }
const char *kn_why_neon(void) { return kn_supported_neon() ? "supported" : "lacks asimd"; }
bool cpu_avoids(const char *set)
{
	(void)set;
	return false;
}

void cpu_describe(char *text, size_t size)
{
	const unsigned long caps = getauxval(AT_HWCAP);
	snprintf(text, size, "AArch64:%s%s", caps & HWCAP_ASIMD ? " asimd" : "", caps & HWCAP_SVE ? " sve" : "");
}

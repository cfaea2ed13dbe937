/* cpu.h: what the CPU and the operating system let us use. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_H
#define KERNELS_CPU_H

#include "common/base.h"

/* Whether this machine runs a set, and a word on why (static text). One pair for every set that the build has. */
#define CPU_SET(name) bool kn_supported_##name(void); const char *kn_why_##name(void);
CPU_SET(scalar)
CPU_SET(avx2)
CPU_SET(avx512)
CPU_SET(avx512i)
CPU_SET(neon)
CPU_SET(hwy)
#ifdef KN_TEST_SETS
CPU_SET(neon_simde)
CPU_SET(avx2_simde)
#endif
#undef CPU_SET

/* Whether a set that is supported should only be used when it is asked for. */
bool cpu_avoids(const char *set);

#endif

/* simd_x86.h: AVX2 intrinsics, from the compiler or, with KN_SIMDE, from SIMDe: then AVX2 bodies run, and are tested, on any machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_SIMD_X86_H
#define KERNELS_SIMD_X86_H

#ifdef KN_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/fma.h>
/* POPCNT, which SIMDe 0.7 lacks. */
#define _mm_popcnt_u32(v) __builtin_popcount(v)
#define _mm_popcnt_u64(v) __builtin_popcountll(v)
#else
#include <immintrin.h>
#endif

#endif

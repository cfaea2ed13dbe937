/* simd_arm.h: NEON intrinsics, from the compiler or, with KN_SIMDE, from SIMDe: then Arm bodies run, and are tested, on any machine.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_SIMD_ARM_H
#define KERNELS_SIMD_ARM_H

#ifdef KN_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>
/* Shift left and insert, which SIMDe 0.7 lacks. */
#ifndef vsliq_n_u8
#define vsliq_n_u8(a, b, n) vorrq_u8(vandq_u8(a, vdupq_n_u8((uint8_t)((1u << (n)) - 1))), vshlq_n_u8(b, n))
#define vsliq_n_u16(a, b, n) vorrq_u16(vandq_u16(a, vdupq_n_u16((uint16_t)((1u << (n)) - 1))), vshlq_n_u16(b, n))
#define vsliq_n_u32(a, b, n) vorrq_u32(vandq_u32(a, vdupq_n_u32((1u << (n)) - 1)), vshlq_n_u32(b, n))
#endif
#else
#include <arm_neon.h>
#endif

#endif

/* classes_neon.h: the vectors of enc_classes.c, in NEON. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CLASSES_NEON_H
#define KERNELS_CLASSES_NEON_H

#include "kernels/arm/simd_arm.h"

typedef uint8x16_t vec;
#define LOAD(p) vld1q_u8(p)
#define STORE(p, v) vst1q_u8((uint8_t *)(p), v)
#define TABLE(p) vld1q_u8(p)
#define LOOK(table, v) vqtbl1q_u8(table, v)
#define ADD8(a, b) vaddq_u8(a, b)
#define ADD16(a, b) vreinterpretq_u8_u16(vaddq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)))
#define LOW(v) vreinterpretq_u8_u16(vmovl_u8(vget_low_u8(v)))
#define HIGH(v) vreinterpretq_u8_u16(vmovl_high_u8(v))
#define ZERO vdupq_n_u8(0)
#define FIRST(v) (v)                    /* symbols 16.. are out of range already */
#define SECOND(v) vsubq_u8(v, vdupq_n_u8(16))

#endif

/* rans_shape.h: what the vector bodies of lit.rans make of the symbols they decode: bytes, or whole words with raw fields.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_RANS_SHAPE_H
#define KERNELS_RANS_SHAPE_H

#include "kernels/rans_item.h"

/* One instance for each shape and size of table; through SIMDe, where only results count, one for all. */
#ifdef KN_SIMDE
#define RANS_INLINE static inline
#else
#define RANS_INLINE static inline __attribute__((always_inline))
#endif

/* What becomes of 64 symbols. The coded field is the highest, the raw fields stand below it in the order of the name. */
enum rans_shape {
	SHAPE_BYTES,            /* symbols alone, as bytes */
	SHAPE_8_8_ROT,          /* raw 8, coded 8, rotated right by 1: BF16 exponents */
	SHAPE_7_9_ROT,          /* raw 7, coded 9, rotated: BF16, joint symbols */
	SHAPE_8_8, SHAPE_7_9,   /* the same without rotation */
	SHAPE_8_2_6, SHAPE_8_1_7, /* FP16 */
	SHAPE_24_8_ROT, SHAPE_23_9_ROT, /* FP32 */
	SHAPE_2_6, SHAPE_3_5,   /* FP8 */
	SHAPE_COUNT,
};

static const struct { uint8_t width, rotate, coded, raw[2]; } rans_shape_of[SHAPE_COUNT] = {
	[SHAPE_BYTES] = { 8, 0, 8, { 0, 0 } },          [SHAPE_8_8_ROT] = { 16, 1, 8, { 8, 0 } },
	[SHAPE_7_9_ROT] = { 16, 1, 9, { 7, 0 } },       [SHAPE_8_8] = { 16, 0, 8, { 8, 0 } },
	[SHAPE_7_9] = { 16, 0, 9, { 7, 0 } },           [SHAPE_8_2_6] = { 16, 0, 6, { 8, 2 } },
	[SHAPE_8_1_7] = { 16, 0, 7, { 8, 1 } },         [SHAPE_24_8_ROT] = { 32, 1, 8, { 24, 0 } },
	[SHAPE_23_9_ROT] = { 32, 1, 9, { 23, 0 } },     [SHAPE_2_6] = { 8, 0, 6, { 2, 0 } },
	[SHAPE_3_5] = { 8, 0, 5, { 3, 0 } },
};

/* Where the raw fields of the next 64 words stand. */
struct rans_raw {
	const uint8_t *at[2];
};

/* What stays the same during a run, besides the tables. */
struct rans_consts {
	uint8_t map[64];                /* symbol index -> byte; the base is in it if the coded field has at most 8 bits */
	uint8_t escape;                 /* index of the escape; 255: none */
	uint8_t marker;                 /* a byte that is no symbol's: what the map has for the escape */
	uint16_t base;                  /* to be added to a coded field of more than 8 bits */
};

#endif

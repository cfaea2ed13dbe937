/* stand_in.h: what a proof needs in place of what the analyser does not know; comes before every file (scripts/prove). SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVE_STAND_IN_H
#define PROVE_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <__fc_builtin.h>

/* The compiler checks these; the analyser's parser stops at them. */
#define _Static_assert(...)

/* The compiler's checked arithmetic, on 64 bits, which is all that the code asks of it. */
static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
	*out = a + b;
	if (b > UINT64_MAX - a)
		return true;
	*out = a + b;
	if (*out < a || *out < b) /* never, which intervals alone do not show */
		return true;
	return false;
}
static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *out)
{
	*out = a * b;
	return a && b > UINT64_MAX / a;
}
#define __builtin_add_overflow checked_add
#define __builtin_mul_overflow checked_mul

/* nbytes of memory, each byte anything. */
static inline void anything(void *memory, size_t nbytes)
{
	if (nbytes)
		Frama_C_make_unknown(memory, nbytes);
}
static inline unsigned any_u32(unsigned low, unsigned high) { return Frama_C_unsigned_int_interval(low, high); }
static inline uint64_t any_u64(void) { return Frama_C_unsigned_long_long_interval(0, UINT64_MAX); }

#endif

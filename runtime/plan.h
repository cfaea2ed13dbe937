/* plan.h: what can be known of a program before its chunks are: order of execution, places in the arena, fusions.
 *
 * A place is linear in the chunk's words n (rounded up to 64): units * n + pads * KN_PAD bytes, so one plan serves chunks of any
 * size and nothing is planned in the hot path. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_PLAN_H
#define RUNTIME_PLAN_H

#include "common/bytecode.h"

enum { PLAN_NONE = 255 };

struct place {
	uint16_t units, pads;
};

struct plan {
	uint8_t order[BC_MAX_INSTR];    /* instructions as they are executed: a carrying literal before the lit.raw it completes */
	uint8_t fused[BC_MAX_INSTR];    /* by position in order: the `merge` whose subtree begins there and fits a fused kernel, PLAN_NONE: none */
	bool in_payload[BC_MAX_INSTR];  /* a lit.raw whose packed words are its words: no copy is made of them */
	struct place at[BC_MAX_INSTR];  /* of each register; the root's is at 0 and only used if it cannot go to its destination */
	struct place scratch, unpacked; /* for kernels; for packed words that a carry completes */
	struct place end;
	bool has_gate;                  /* the number of words of its registers depends on the chunk */
};

/* `program` is linked. */
void plan_make(struct plan *plan, const struct bc_program *program);

static inline uint64_t plan_round(uint64_t nwords) { return (nwords + 63) & ~63ull; }

/* Offset of a place in an arena for chunks of nwords rounded by plan_round(). */
static inline uint64_t place_offset(struct place place, uint64_t rounded, unsigned pad)
{
	return place.units * rounded + (uint64_t)place.pads * pad;
}

#endif

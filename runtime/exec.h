/* exec.h: one chunk through its kernels: the hot loop. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_EXEC_H
#define RUNTIME_EXEC_H

#include "kernels/kernel.h"
#include "runtime/plan.h"

/* What an instruction with a table or with classes reads besides its payload. */
struct exec_operand {
	const struct kn_table *table;
	const uint8_t *row_class, *col_class; /* as in struct kn_args */
	uint64_t first;                 /* of what is classed: its first word's number among those of its instruction in all chunks */
};

/* Puts words first .. first + n of a stream into dst; the executor's way to the rest of the archive. */
typedef enum brv_status exec_ref_fn(void *context, uint64_t stream, uint64_t first, uint64_t n, void *dst);

/* A chunk to be executed. */
struct exec {
	const struct kn_set *kernels;
	const struct bc_program *program;
	const struct plan *plan;
	uint8_t *arena;                 /* place_offset(plan->end, plan_round(n), KN_PAD) bytes, aligned to 64 */
	uint64_t n, first;              /* words of the chunk; its first word's number in the stream */
	struct span payload;            /* KN_PAD readable bytes behind it */
	struct exec_operand operand[BC_MAX_INSTR];
	const uint8_t *row_class;       /* of the stream, for gates; NULL: none */
	uint64_t row_words;             /* G; 0: none */
	const uint64_t *refs;           /* stream and first word of each ref */
	const uint64_t *counts;         /* words of the first argument of each instruction whose chunks say them */
	exec_ref_fn *ref;
	void *ref_context;
	struct kn_drain *drain;         /* NULL: the root's words go to dst alone */

	/* Set by exec_layout(). */
	uint64_t nwords[BC_MAX_INSTR];
	struct span pay[BC_MAX_INSTR];  /* what each instruction takes of the payload, without an item's length */
};

/* Finds the sizes of all registers and what each takes of the payload. BRV_DAMAGED if they do not fit. */
enum brv_status exec_layout(struct exec *exec);

/* exec_layout(), then the n words of the root into dst (any alignment; not in the arena unless at its start); to the drain if there is one, and then dst,
 * which has room for them, is left undefined. BRV_DAMAGED, or what ref() returned. */
enum brv_status exec_run(struct exec *exec, void *dst);

#endif

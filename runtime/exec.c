/* exec.c: one chunk through its kernels.
 *
 * The program, the tables and the sizes have been verified; what is left to find out is whether the payload fits them: exec_layout() bounds
 * what each instruction may read, the kernels keep within that. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec.h"

/* Words of the chunk in rows whose class is in the set. */
static uint64_t count_rows(const void *context, uint64_t set)
{
	const struct exec *exec = context;
	uint64_t count = 0, at = exec->first, end = exec->first + exec->n;
	for (uint64_t row = at / exec->row_words; at < end; row++) {
		uint64_t next = MIN((row + 1) * exec->row_words, end);
		if (set >> exec->row_class[row] & 1)
			count += next - at;
		at = next;
	}
	return count;
}

/* Bytes of the payload that an instruction takes first: packed words, a first word, the length of an item. False if they cannot be. */
static bool fixed_nbytes(const struct exec *exec, unsigned i, uint64_t *nbytes)
{
	const struct bc_program *program = exec->program;
	const struct bc_instr *instr = &program->instr[i];
	*nbytes = 0;
	switch ((enum bc_payload)bc_opinfo(instr->op)->payload) {
	case PAYLOAD_NONE: break;
	case PAYLOAD_FIRST: *nbytes = (instr->width + 7u) / 8; break;
	case PAYLOAD_ITEM: *nbytes = 4; break;
	case PAYLOAD_PACKED:
		*nbytes = packed_nbytes(exec->nwords[i], instr->width);
		if (program->carry_of[i] == PLAN_NONE)
			break;
		if (*nbytes < program_carried_nbytes(program, i) || exec->nwords[program->carry_of[i]] == 0)
			return false;
		*nbytes -= program_carried_nbytes(program, i);
		break;
	}
	return true;
}

/* Whether the bits of `last`, the last byte of a lit.raw's packed words, that belong to no word are 0. */
static bool filled_with_0(const struct exec *exec, unsigned raw, uint8_t last)
{
	const unsigned used = exec->nwords[raw] * exec->program->instr[raw].width % 8;
	return used == 0 || last >> used == 0;
}

enum brv_status exec_layout(struct exec *exec)
{
	const struct bc_program *program = exec->program;
	const struct bc_rows rows = { exec->row_class ? count_rows : NULL, exec };
	const uint8_t *at = exec->payload.ptr, *end = at + exec->payload.nbytes;

	TRY(program_words(program, exec->n, &rows, exec->counts, exec->nwords, NULL));
	for (unsigned i = 0; i < program->ninstr; i++) {
		uint64_t nbytes;
		exec->pay[i] = (struct span){ at, 0 };
		if (exec->nwords[i] == 0) {
			if (program->carry_of[i] != PLAN_NONE || program->instr[i].flags & BC_CARRY)
				return BRV_DAMAGED;
			continue;
		}
		if (!fixed_nbytes(exec, i, &nbytes) || nbytes > (uint64_t)(end - at))
			return BRV_DAMAGED;
		if (bc_opinfo(program->instr[i].op)->payload == PAYLOAD_ITEM) {
			nbytes = load_u32(at);
			at += 4;
			if (nbytes > (uint64_t)(end - at))
				return BRV_DAMAGED;
		}
		exec->pay[i] = (struct span){ at, nbytes };
		at += nbytes;
		if (program->instr[i].op == OP_LIT_RAW && program->carry_of[i] == PLAN_NONE && !filled_with_0(exec, i, at[-1]))
			return BRV_DAMAGED;
	}
	return at == end ? BRV_OK : BRV_DAMAGED;
}

/* One execution's registers. */
struct run {
	struct exec *exec;
	void *dst;                      /* of the root */
	const void *reg[BC_MAX_INSTR];
	uint64_t rounded;
	uint8_t carry[BC_MAX_INSTR][BC_CARRY_MAX_NBYTES]; /* by carrying register; untouched unless there is one */
};

static uint8_t *in_arena(const struct run *run, struct place place)
{
	return run->exec->arena + place_offset(place, run->rounded, KN_PAD);
}

static void *place_of(const struct run *run, unsigned i)
{
	return i + 1u == run->exec->program->ninstr ? run->dst : in_arena(run, run->exec->plan->at[i]);
}

/* What every kernel of instruction i gets; arguments and fields are the caller's. */
static void set_args(struct run *run, unsigned i, struct kn_args *args)
{
	const struct exec *exec = run->exec;
	const struct bc_instr *instr = &exec->program->instr[i];
	const struct exec_operand *operand = &exec->operand[i];
	args->dst = place_of(run, i);
	args->n = exec->nwords[i];
	args->op = instr->op;
	args->width = instr->width;
	args->nsrc = 0;
	args->imm = instr->imm;
	args->pay = exec->pay[i].ptr;
	args->pay_nbytes = exec->pay[i].nbytes;
	args->table = operand->table;
	args->row_class = operand->row_class;
	args->col_class = operand->col_class;
	args->row_words = operand->row_class || operand->col_class ? exec->row_words : 0;
	args->first = args->row_words ? operand->first : exec->first;
	args->carry = instr->flags & BC_CARRY ? run->carry[i] : NULL;
	args->scratch = in_arena(run, exec->plan->scratch);
	args->field = NULL;
	args->nfield = args->rotate = args->coded_width = 0;
	args->drain = i + 1u == exec->program->ninstr ? exec->drain : NULL;
}

/* What is left to check of a carry when its literal has been decoded, alone or in a merge. */
static bool carry_is_good(const struct run *run, unsigned i)
{
	const struct bc_instr *instr = &run->exec->program->instr[i];
	return !(instr->flags & BC_CARRY) || filled_with_0(run->exec, instr->aux, run->carry[i][bc_carry_nbytes(instr->op) - 1]);
}

/* The packed words of a lit.raw whose last bytes came out of the carrying literal. */
static void complete_packed(struct run *run, unsigned i, struct kn_args *args)
{
	uint8_t *packed = in_arena(run, run->exec->plan->unpacked);
	const size_t carried = program_carried_nbytes(run->exec->program, i);
	memcpy(packed, args->pay, args->pay_nbytes);
	memcpy(packed + args->pay_nbytes, run->carry[run->exec->program->carry_of[i]], carried);
	args->pay = packed;
	args->pay_nbytes += carried;
}

static enum brv_status run_ref(struct run *run, unsigned i)
{
	const struct exec *exec = run->exec;
	unsigned nth = 0;
	for (unsigned k = 0; k < i; k++)
		nth += exec->program->instr[k].op == OP_REF;
	return exec->ref(exec->ref_context, exec->refs[2 * nth], exec->refs[2 * nth + 1], exec->nwords[i], place_of(run, i));
}

static enum brv_status run_instr(struct run *run, unsigned i)
{
	const struct exec *exec = run->exec;
	const struct bc_program *program = exec->program;
	struct kn_args args;

	run->reg[i] = place_of(run, i);
	if (exec->nwords[i] == 0)
		return BRV_OK;
	if (program->instr[i].op == OP_REF)
		return run_ref(run, i);
	if (exec->plan->in_payload[i] && i + 1u < program->ninstr) {
		run->reg[i] = exec->pay[i].ptr;
		return BRV_OK;
	}
	set_args(run, i, &args);
	args.nsrc = program->instr[i].nargs;
	for (unsigned k = 0; k < args.nsrc; k++) {
		unsigned arg = program->arg[program->arg_at[i] + k];
		args.src[k] = run->reg[arg];
		args.src_n[k] = exec->nwords[arg];
		args.src_width[k] = program->instr[arg].width;
	}
	if (program->carry_of[i] != PLAN_NONE)
		complete_packed(run, i, &args);
	return exec->kernels->fn[args.op](&args) && carry_is_good(run, i) ? BRV_OK : BRV_DAMAGED;
}

/* Runs a merge, with the rotation above it or without, by a fused kernel. *done: the instruction whose register is now there;
 * unchanged if this kernel set has no fast body for the shape. */
static enum brv_status run_fused(struct run *run, unsigned merge, unsigned *done)
{
	const struct exec *exec = run->exec;
	const struct bc_program *program = exec->program;
	unsigned coded = merge - 1, first = merge - program->instr[merge].nargs, parent = program->parent[merge];
	enum kn_id id = kn_merge_of(program->instr[coded].op);
	struct kn_field field[3];
	struct kn_args args;

	set_args(run, coded, &args);
	for (unsigned i = first; i < coded; i++)
		field[i - first] = (struct kn_field){ exec->pay[i].ptr, exec->pay[i].nbytes, program->instr[i].width,
						      program->carry_of[i] != PLAN_NONE };
	args.field = field;
	args.nfield = (uint8_t)(coded - first);
	args.coded_width = args.width;
	args.width = program->instr[merge].width;
	bool rotated = parent != merge && program->instr[parent].op == OP_MAP_ROT;
	for (int with = rotated; with >= 0; with--) {
		unsigned head = with ? parent : merge;
		args.rotate = with ? (uint8_t)program->instr[parent].imm : 0;
		args.dst = place_of(run, head);
		args.drain = head + 1u == program->ninstr ? exec->drain : NULL;
		if (!exec->kernels->can_fuse(id, &args))
			continue;
		run->reg[head] = args.dst;
		*done = head;
		return exec->kernels->fused[id](&args) && carry_is_good(run, coded) ? BRV_OK : BRV_DAMAGED;
	}
	return BRV_OK;
}

/* Words that no kernel has put there. */
static void drain_all(struct kn_drain *drain, const uint8_t *bytes, uint64_t nbytes)
{
	for (uint64_t at = 0; at < nbytes; at += KN_DRAIN_NBYTES)
		drain->put(drain, bytes + at, MIN(nbytes - at, (uint64_t)KN_DRAIN_NBYTES));
}

enum brv_status exec_run(struct exec *exec, void *dst)
{
	const struct bc_program *program = exec->program;
	struct run run;
	TRY(exec_layout(exec));
	run.exec = exec;
	run.dst = dst;
	run.rounded = plan_round(exec->n);
	for (unsigned at = 0; at < program->ninstr; at++) {
		unsigned merge = exec->plan->fused[at], done = PLAN_NONE;
		if (merge != PLAN_NONE && exec->nwords[merge] > 0) {
			TRY(run_fused(&run, merge, &done));
			if (done != PLAN_NONE) {
				at = done;
				continue;
			}
		}
		TRY(run_instr(&run, exec->plan->order[at]));
	}
	if (exec->drain && exec->drain->nbytes == 0)
		drain_all(exec->drain, dst, exec->n * word_nbytes(program->instr[program->ninstr - 1].width));
	return BRV_OK;
}

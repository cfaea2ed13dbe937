/* bytecode.h: instructions and programs: layout, names, type rule, printing.
 *
 * A program is a tree in post-order (docs/FORMAT.md, 3): instruction i produces register i, and its arguments are the
 * registers most recently produced and not yet used. program_link() finds them once, so that nobody else
 * repeats the stack walk. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_BYTECODE_H
#define COMMON_BYTECODE_H

#include "common/base.h"
#include "common/status.h"

enum {
	BC_INSTR_NBYTES = 16,
	BC_MAX_INSTR = 64,         /* of a program */
	BC_MAX_ARGS = 16,          /* of an instruction */
	BC_MAX_PROGRAMS = 65535,
	BC_MAX_CHUNK_WORDS = 1 << 20,
	BC_CARRY_NBYTES = 128,     /* of lit.rans and lit.wide */
	BC_CARRY_MAX_NBYTES = 256, /* of any literal */
	BC_MAX_INDEX_BITS = 20,    /* of the index of a lookup */
};

enum bc_flag { BC_CARRY = 1, BC_CLASSED = 2 };

enum bc_op {
#define OP(code, since, id, ...) OP_##id = code,
#include "common/ops.def"
#undef OP
};

enum bc_words { WORDS_LEAF, WORDS_SAME, WORDS_SPLIT, WORDS_DIVIDE, WORDS_LESS1, WORDS_RUNS, WORDS_ROWS, WORDS_COUNT, WORDS_CUT,
		WORDS_DEAL };
enum bc_widths { WIDTHS_LEAF, WIDTHS_SAME, WIDTHS_SUM, WIDTHS_INDEX, WIDTHS_MASK, WIDTHS_CUT, WIDTHS_DEAL };
enum bc_payload { PAYLOAD_NONE, PAYLOAD_PACKED, PAYLOAD_FIRST, PAYLOAD_ITEM };

/* Kinds of tables, numbered as in an archive. */
#define BC_TABLES(T) T(NONE) T(HUFF) T(RANS) T(WIDE) T(ALIAS)
#define BC_TABLE_KIND(kind) TABLE_##kind,
enum bc_table { BC_TABLES(BC_TABLE_KIND) TABLE_KINDS };

/* A row of ops.def. */
struct bc_opinfo {
	const char *name, *effect;
	uint8_t code, since, min_args, max_args, max_width;
	uint8_t words, widths, payload, table; /* enum bc_words, bc_widths, bc_payload, bc_table */
};

/* NULL for a code that is no op. */
const struct bc_opinfo *bc_opinfo(uint8_t code);

/* Whether the op is a rANS literal: what may have the flag CARRY. */
bool bc_is_rans(uint8_t op);

/* Bytes that a carry of this op holds (docs/FORMAT.md, 5.4). */
static inline size_t bc_carry_nbytes(uint8_t op) { return op == OP_LIT_ALIAS ? BC_CARRY_MAX_NBYTES : BC_CARRY_NBYTES; }

/* The format version that brought a kind of table: that of the first op which takes it. 0: no op does. */
unsigned bc_table_since(uint8_t kind);

struct bc_instr {
	uint8_t op, width, nargs, flags;
	uint32_t aux;
	uint64_t imm;
};
static_assert(sizeof(struct bc_instr) == BC_INSTR_NBYTES, "as in docs/FORMAT.md, 3");

/* A program whose structure has been checked. arg[] holds the argument registers of all instructions, one after the
 * other; those of instruction i begin at arg_at[i]. The root is the last instruction. */
struct bc_program {
	uint16_t ninstr;
	uint16_t ntables, nrefs, ncounts;  /* instructions that take a table; `ref`s; those whose first argument's words each chunk says */
	struct bc_instr instr[BC_MAX_INSTR];
	uint8_t arg_at[BC_MAX_INSTR];
	uint8_t arg[BC_MAX_INSTR];
	uint8_t parent[BC_MAX_INSTR];      /* the instruction that uses register i; the root's is itself */
	uint8_t carry_of[BC_MAX_INSTR];    /* for a lit.raw: the register whose CARRY completes it, else 255 */
};

/* Fills everything but ninstr and instr[] from those; checks ops, argument counts, widths, flags, operands: all that needs no n.
 * BRV_VERSION for an unknown op or flag, BRV_DAMAGED for anything else that is wrong. */
enum brv_status program_link(struct bc_program *program, struct error *err);

/* Row of a word, for the ops that need classes; NULL where a stream has none. `set_rows(ctx, set)`
 * is the number of the chunk's words that lie in rows whose class is in the bit set. */
struct bc_rows {
	uint64_t (*words_in)(const void *ctx, uint64_t set);
	const void *ctx;
};

/* Bytes at the end of register i's packed words that a carry holds; 0: it is the target of none. */
static inline size_t program_carried_nbytes(const struct bc_program *program, unsigned i)
{
	return program->carry_of[i] == 255 ? 0 : bc_carry_nbytes(program->instr[program->carry_of[i]].op);
}

/* The lowest format version that has all that is in a program. */
unsigned program_since(const struct bc_program *program);

/* nwords[i] = words that register i has to produce when the root has to produce n; counts: the chunk's, ncounts of them. BRV_DAMAGED if a
 * rule of FORMAT 5.2 is broken (concat, repeat, weave, counts; gate without rows). With rows->words_in == NULL a gate's argument is taken as n
 * words: an upper bound. */
enum brv_status program_words(const struct bc_program *program, uint64_t n, const struct bc_rows *rows, const uint64_t *counts,
			      uint64_t nwords[BC_MAX_INSTR], struct error *err);

/* Words of a block (but the last) of a lookup of n > 0 words with the operand imm, and how many blocks, each with its part of the dictionary, there are. */
static inline uint64_t lookup_block(uint64_t imm, uint64_t n) { return imm && imm < n ? imm : n; }
static inline uint64_t lookup_nblocks(uint64_t imm, uint64_t n) { return (n - 1) / lookup_block(imm, n) + 1; }

/* Sets *out to the words that register i has to produce when the root has to produce n > 0, if that follows from the ops between them alone: it does where
 * CLASSED instructions are. False if it does not, or n is not whole records or blocks. */
bool program_path_words(const struct bc_program *program, unsigned i, uint64_t n, uint64_t *out);

/* Where the words of CLASSED register i in chunk k, of chunks of chunk_words words, stand among its words in all chunks (docs/FORMAT.md, 7). */
static inline uint64_t program_classed_first(const struct bc_program *program, unsigned i, uint64_t chunk_words, uint64_t k)
{
	uint64_t each = 0;

	return k && program_path_words(program, i, chunk_words, &each) ? k * each : 0;
}

/* Whether word k of register i belongs to word k of the chunk, for all k. */
bool program_in_step(const struct bc_program *program, unsigned i);

/* Whether word i of argument k of an op is what word i of its result is made of: the k-th argument of a program's instruction. */
bool keeps_step(const struct bc_opinfo *info, unsigned k);

/* One instruction as text, for example "map.rot w16 imm 1"; always terminated. */
void instr_print(const struct bc_instr *instr, char *text, size_t size);

/* The whole program in one line, nested: "map.rot(merge(lit.raw:8, lit.rans:8), 1)"; always terminated, cut with "..." if it does not fit. */
void program_print(const struct bc_program *program, char *text, size_t size);

#endif

/* test_bytecode.c: programs, good and bad: each rule of docs/FORMAT.md, 3 and 5.2, is broken once; sizes down the tree; printing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/deal.h"
#include "common/bytecode.h"

#define I(op_, width_, nargs_, ...) { .op = OP_##op_, .width = width_, .nargs = nargs_, __VA_ARGS__ }
#define PROGRAM(...) (const struct bc_instr[]){ __VA_ARGS__ }, sizeof((const struct bc_instr[]){ __VA_ARGS__ }) / sizeof(struct bc_instr)

static struct bc_program make(const struct bc_instr *instr, size_t n)
{
	struct bc_program program;
	memset(&program, 0xee, sizeof(program)); /* whatever is not filled shows */
	program.ninstr = (uint16_t)n;
	memcpy(program.instr, instr, MIN(n, (size_t)BC_MAX_INSTR) * sizeof(*instr));
	return program;
}

static void check(const char *what, enum brv_status want, const struct bc_instr *instr, size_t n)
{
	struct bc_program program = make(instr, n);
	struct error err = { "" };
	const enum brv_status status = program_link(&program, &err);

	cr_expect_eq(status, want, "%s: %s (%s)", what, status_text(status), err.text);
	cr_expect_eq(status == BRV_OK, *err.text == 0, "%s: a failure has a reason", what);
	cr_expect_eq(program_link(&program, NULL), want, "%s: without an error", what);
}

#define GOOD(...) check(#__VA_ARGS__, BRV_OK, PROGRAM(__VA_ARGS__))
#define BAD(...) check(#__VA_ARGS__, BRV_DAMAGED, PROGRAM(__VA_ARGS__))
#define NEWER(...) check(#__VA_ARGS__, BRV_VERSION, PROGRAM(__VA_ARGS__))

/* The op over as many raw arguments as it takes at least, the operand as small as it may be. */
static size_t smallest_program(const struct bc_opinfo *op, struct bc_instr *instr)
{
	const unsigned n = op->min_args;
	struct bc_instr *root = &instr[n];

	for (unsigned i = 0; i < n; i++)
		instr[i] = (struct bc_instr)I(LIT_RAW, 8, 0);
	*root = (struct bc_instr){ .op = op->code, .width = (uint8_t)(op->widths == WIDTHS_SUM ? 8 * n : op->widths == WIDTHS_CUT ? 4 : 8), .nargs = (uint8_t)n };
	instr[1].width = op->widths == WIDTHS_MASK ? 1 : instr[1].width;
	root->imm = op->code == OP_WEAVE ? 0x00010001 : op->code == OP_DEAL ? (1 | DEAL_FIELD(0, 8, 0, 1)) : op->code == OP_REPEAT || op->code == OP_GATE;
	root->flags = op->code == OP_GATE ? BC_CLASSED : 0;
	return n + 1;
}

Test(bytecode, every_op)
{
	unsigned nops = 0;

	for (unsigned code = 0; code < 256; code++) {
		const struct bc_opinfo *op = bc_opinfo((uint8_t)code);
		struct bc_instr instr[BC_MAX_ARGS + 2], unknown = { .op = (uint8_t)code, .width = 8 };
		if (!op) {
			check("unknown op", BRV_VERSION, &unknown, 1);
			continue;
		}
		nops++;
		cr_expect_eq(op->code, code);
		const size_t n = smallest_program(op, instr);
		struct bc_instr *root = &instr[n - 1];
		const struct bc_instr keep = *root;
		check(op->name, BRV_OK, instr, n);
		root->width = 0;
		check(op->name, BRV_DAMAGED, instr, n);
		root->width = (uint8_t)(op->max_width + 1);
		check(op->name, BRV_DAMAGED, instr, n);
		*root = keep, root->flags |= 4;
		check(op->name, BRV_VERSION, instr, n);
		*root = keep, root->aux = 1;
		check(op->name, BRV_DAMAGED, instr, n);
		*root = keep, root->nargs++;
		check(op->name, BRV_DAMAGED, instr, n);
		if (keep.nargs) {
			*root = keep, root->nargs--;
			check(op->name, BRV_DAMAGED, instr, n);
		}
		*root = keep, instr[n] = (struct bc_instr)I(LIT_RAW, 8, 0);
		check("a register is left over", BRV_DAMAGED, instr, n + 1);
	}
	cr_assert_eq(nops, 24);
}

Test(bytecode, number_of_instructions)
{
	struct bc_instr instr[BC_MAX_INSTR + 1] = { I(LIT_RAW, 8, 0) };

	for (unsigned i = 1; i <= BC_MAX_INSTR; i++)
		instr[i] = (struct bc_instr)I(MAP_GRAY, 8, 1);
	check("none", BRV_DAMAGED, instr, 0);
	check("64", BRV_OK, instr, BC_MAX_INSTR);
	check("65", BRV_DAMAGED, instr, BC_MAX_INSTR + 1);
	check("65,535", BRV_DAMAGED, instr, 65535);
}

Test(bytecode, operands)
{
	GOOD(I(CONST, 8, 0, .imm = 255));
	BAD(I(CONST, 8, 0, .imm = 256));
	GOOD(I(CONST, 64, 0, .imm = UINT64_MAX));
	BAD(I(CONST, 63, 0, .imm = UINT64_MAX));
	BAD(I(LIT_RAW, 8, 0, .imm = 1));
	BAD(I(LIT_PACK, 8, 0, .imm = 1));
	BAD(I(LIT_RANS, 8, 0, .imm = 1));
	GOOD(I(LIT_RAW, 9, 0), I(MAP_XOR, 9, 1, .imm = 511));
	BAD(I(LIT_RAW, 9, 0), I(MAP_XOR, 9, 1, .imm = 512));
	BAD(I(LIT_RAW, 9, 0), I(MAP_ADD, 9, 1, .imm = 512));
	BAD(I(LIT_RAW, 9, 0), I(MAP_ZIGZAG, 9, 1, .imm = 1));
	BAD(I(LIT_RAW, 9, 0), I(MAP_GRAY, 9, 1, .imm = 1));
	GOOD(I(LIT_RAW, 9, 0), I(MAP_ROT, 9, 1, .imm = 8));
	BAD(I(LIT_RAW, 9, 0), I(MAP_ROT, 9, 1, .imm = 9));
	BAD(I(LIT_RAW, 9, 0), I(SCAN_XOR, 9, 1, .imm = 1));
	BAD(I(LIT_RAW, 9, 0), I(SCAN_ADD, 9, 1, .imm = 1));
	GOOD(I(LIT_RAW, 9, 0), I(LIT_RAW, 9, 0), I(CONCAT, 9, 2, .imm = 1 << 20));
	BAD(I(LIT_RAW, 9, 0), I(REPEAT, 9, 1, .imm = 0));
	GOOD(I(REF, 16, 0));
	BAD(I(REF, 16, 0, .imm = 1));
	BAD(I(LIT_RAW, 9, 0), I(LIT_RAW, 1, 0), I(SCATTER, 9, 2, .imm = 512));
	BAD(I(LIT_RAW, 9, 0), I(CUT, 3, 1, .imm = 1));
	BAD(I(REF, 15, 0));
	BAD(I(REF, 24, 0));
}

Test(bytecode, argument_widths)
{
	BAD(I(LIT_RAW, 9, 0), I(MAP_XOR, 8, 1));
	BAD(I(LIT_RAW, 9, 0), I(LIT_RAW, 8, 0), I(CONCAT, 9, 2));
	BAD(I(LIT_RAW, 9, 0), I(SCAN_ADD, 16, 1));
	GOOD(I(LIT_RAW, 7, 0), I(LIT_RAW, 9, 0), I(MERGE, 16, 2));
	BAD(I(LIT_RAW, 7, 0), I(LIT_RAW, 8, 0), I(MERGE, 16, 2));
	BAD(I(LIT_RAW, 64, 0), I(LIT_RAW, 64, 0), I(MERGE, 64, 2));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 9, 0), I(WEAVE, 8, 2, .imm = 0x00010001));
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RAW, 20, 0), I(LOOKUP, 8, 2));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 21, 0), I(LOOKUP, 8, 2));
	BAD(I(LIT_RAW, 9, 0), I(LIT_RAW, 8, 0), I(LOOKUP, 8, 2));
	GOOD(I(LIT_RAW, 9, 0), I(LIT_RAW, 1, 0), I(SCATTER, 9, 2));
	BAD(I(LIT_RAW, 9, 0), I(LIT_RAW, 2, 0), I(SCATTER, 9, 2));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 1, 0), I(SCATTER, 9, 2));
	GOOD(I(LIT_RAW, 9, 0), I(CUT, 3, 1));
	GOOD(I(LIT_RAW, 64, 0), I(CUT, 1, 1));
	BAD(I(LIT_RAW, 9, 0), I(CUT, 9, 1));
	BAD(I(LIT_RAW, 9, 0), I(CUT, 2, 1));
	BAD(I(LIT_RAW, 9, 0), I(CUT, 18, 1));
}

/* Blocks of 32 words of 5 bits: the highest of each, then the rest. */
#define Q5 (32 | DEAL_FIELD(0, 1, 4, 1) | DEAL_FIELD(1, 4, 0, 16))

Test(bytecode, deal_fields)
{
	static const uint64_t q5 = Q5;

	GOOD(I(LIT_RAW, 5, 0), I(DEAL, 8, 1, .imm = q5));
	BAD(I(LIT_RAW, 6, 0), I(DEAL, 8, 1, .imm = q5));                                                       /* a bit in no field */
	BAD(I(LIT_RAW, 4, 0), I(DEAL, 8, 1, .imm = q5));                                                       /* a field beyond the word */
	BAD(I(LIT_RAW, 5, 0), I(DEAL, 8, 1, .imm = q5 - 1));                                                   /* a block that is no groups */
	BAD(I(LIT_RAW, 5, 0), I(DEAL, 8, 1, .imm = q5 - 32));                                                  /* no block */
	BAD(I(LIT_RAW, 4, 0), I(DEAL, 8, 1, .imm = 32 | DEAL_FIELD(0, 4, 0, 16) | DEAL_FIELD(1, 1, 0, 1)));    /* a bit in two fields */
	BAD(I(LIT_RAW, 4, 0), I(DEAL, 8, 1, .imm = 32 | DEAL_FIELD(1, 4, 0, 16)));                             /* a field behind none */
	BAD(I(LIT_RAW, 4, 0), I(DEAL, 8, 1, .imm = 32 | 1u << 24 | DEAL_FIELD(1, 4, 0, 16)));                  /* a field without bits */
	BAD(I(LIT_RAW, 3, 0), I(DEAL, 8, 1, .imm = 32 | DEAL_FIELD(0, 3, 0, 1)));                              /* bits that do not divide */
	BAD(I(LIT_RAW, 17, 0), I(DEAL, 17, 1, .imm = 1 | DEAL_FIELD(0, 15, 0, 1)));
	BAD(I(LIT_RAW, 1, 0), I(DEAL, 4, 1, .imm = 4 | DEAL_FIELD(0, 1, 0, 1)), I(DEAL, 8, 1, .imm = 2 | DEAL_FIELD(0, 4, 0, 1)));
}

/* Words on the way to a register, and the version that classes in records need. */
Test(bytecode, words_of_a_path)
{
	const struct bc_instr instr[] = { I(LIT_RAW, 16, 0), I(CUT, 8, 1), I(LIT_RANS, 5, 0, .flags = BC_CLASSED),
					  I(DEAL, 8, 1, .imm = 32 | DEAL_FIELD(0, 1, 4, 1) | DEAL_FIELD(1, 4, 0, 16)), I(WEAVE, 8, 2, .imm = 0x140002) };
	const uint64_t want[] = { 10, 20, 320, 200, 220 };
	struct bc_program program = { .ninstr = ARRAY_LEN(instr) };
	uint64_t words = 0;

	memcpy(program.instr, instr, sizeof(instr));
	cr_assert_eq(program_link(&program, NULL), BRV_OK);
	for (unsigned i = 0; i < ARRAY_LEN(instr); i++) {
		cr_expect(program_path_words(&program, i, 220, &words));
		cr_expect_eq(words, want[i], "register %u", i);
		cr_expect_eq(program_in_step(&program, i), i == 4);
	}
	cr_expect(!program_path_words(&program, 2, 221, &words));
	cr_expect_eq(program_since(&program), 2);
	const struct bc_instr woven[] = { I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(WEAVE, 8, 2, .imm = 0x20001) };
	program = (struct bc_program){ .ninstr = ARRAY_LEN(woven) };
	memcpy(program.instr, woven, sizeof(woven));
	cr_assert_eq(program_link(&program, NULL), BRV_OK);
	cr_expect_eq(program_since(&program), 2);
	program.instr[1].flags = 0;
	cr_expect_eq(program_since(&program), 1);
	/* What a scan or a count is made of has no place that follows. */
	const struct bc_instr other[] = { I(LIT_RAW, 8, 0), I(LIT_RAW, 1, 0), I(SCATTER, 8, 2) };
	program = (struct bc_program){ .ninstr = ARRAY_LEN(other) };
	memcpy(program.instr, other, sizeof(other));
	cr_assert_eq(program_link(&program, NULL), BRV_OK);
	cr_expect(!program_path_words(&program, 0, 5, &words) && program_path_words(&program, 1, 5, &words) && words == 5);
}

Test(bytecode, weave_runs)
{
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 2, .imm = 0xffff0010));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 2, .imm = 0x00000010));           /* too few */
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 2, .imm = 0x000100010001));       /* too many */
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 3, .imm = 0x000100000001)); /* one in between */
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 4, .imm = 0x0004000300020001));
}

Test(bytecode, flags)
{
	BAD(I(LIT_RAW, 8, 0, .flags = BC_CLASSED));
	BAD(I(LIT_HUFF, 8, 0, .flags = BC_CLASSED));
	BAD(I(LIT_RAW, 8, 0), I(MAP_GRAY, 8, 1, .flags = BC_CLASSED));
	BAD(I(LIT_RAW, 8, 0), I(GATE, 8, 1, .imm = 1));
	BAD(I(LIT_RAW, 8, 0), I(GATE, 8, 1, .imm = 0, .flags = BC_CLASSED));
	BAD(I(LIT_RAW, 8, 0), I(GATE, 8, 1, .imm = 256, .flags = BC_CLASSED));
	GOOD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED));
	GOOD(I(LIT_WIDE, 8, 0, .flags = BC_CLASSED), I(MAP_ROT, 8, 1, .imm = 1));
	GOOD(I(LIT_RAW, 8, 0), I(LIT_WIDE, 8, 0, .flags = BC_CLASSED), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(SCAN_ADD, 8, 1));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(SCAN_ADD, 8, 1), I(MAP_GRAY, 8, 1));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(REPEAT, 8, 1, .imm = 2));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(CONST, 8, 0), I(CONCAT, 8, 2));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(GATE, 8, 1, .imm = 1, .flags = BC_CLASSED));
	GOOD(I(LIT_RAW, 16, 0), I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(LOOKUP, 16, 2));
	BAD(I(LIT_RANS, 16, 0, .flags = BC_CLASSED), I(LIT_RAW, 8, 0), I(LOOKUP, 16, 2));
	GOOD(I(LIT_RAW, 16, 0), I(LIT_RANS, 1, 0, .flags = BC_CLASSED), I(SCATTER, 16, 2));
	BAD(I(LIT_RANS, 16, 0, .flags = BC_CLASSED), I(LIT_RAW, 1, 0), I(SCATTER, 16, 2));
	/* Records keep each word at its place in a row; gates count words of the chunk itself. */
	GOOD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(CUT, 4, 1));
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(WEAVE, 8, 2, .imm = 0x20001));
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RANS, 4, 0, .flags = BC_CLASSED), I(DEAL, 8, 1, .imm = 32 | DEAL_FIELD(0, 4, 0, 16)), I(WEAVE, 8, 2, .imm = 0x100002));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(GATE, 8, 1, .imm = 1, .flags = BC_CLASSED), I(WEAVE, 8, 2, .imm = 0x20001));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(SCAN_ADD, 8, 1), I(WEAVE, 8, 2, .imm = 0x20001));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CLASSED), I(CUT, 4, 1), I(LIT_RAW, 4, 0), I(CONCAT, 4, 2, .imm = 1));
}

Test(bytecode, carry)
{
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(MERGE, 16, 2));
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LIT_WIDE, 8, 0, .flags = BC_CARRY, .aux = 1), I(MERGE, 24, 3));
	GOOD(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY, .aux = 1),
	     I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(MERGE, 32, 4));
	BAD(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(LIT_RANS, 8, 0, .flags = BC_CARRY),
	    I(MERGE, 24, 3)); /* one target twice */
	BAD(I(LIT_PACK, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(MERGE, 16, 2));
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CARRY));                                                                /* itself */
	BAD(I(LIT_RANS, 8, 0, .flags = BC_CARRY, .aux = 1), I(LIT_RAW, 8, 0), I(MERGE, 16, 2));                   /* above it */
	BAD(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY, .aux = UINT32_MAX), I(MERGE, 16, 2));
	BAD(I(LIT_RAW, 8, 0, .flags = BC_CARRY));
	BAD(I(LIT_RAW, 8, 0), I(LIT_HUFF, 8, 0, .flags = BC_CARRY), I(MERGE, 16, 2));
}

/* concat(raw, repeat(merge(raw:4 <- carry, rans:4))) */
static const struct bc_instr linked[] = {
	I(LIT_RAW, 8, 0), I(LIT_RAW, 4, 0), I(LIT_RANS, 4, 0, .flags = BC_CARRY, .aux = 1), I(MERGE, 8, 2), I(REPEAT, 8, 1, .imm = 3),
	I(CONCAT, 8, 2, .imm = 10),
};

Test(bytecode, links)
{
	struct bc_program p = make(linked, ARRAY_LEN(linked));

	cr_assert_eq(program_link(&p, NULL), BRV_OK);
	cr_assert(p.ntables == 1 && p.nrefs == 0);
	cr_assert(p.parent[0] == 5 && p.parent[1] == 3 && p.parent[2] == 3 && p.parent[3] == 4 && p.parent[4] == 5 && p.parent[5] == 5);
	cr_assert(p.arg[p.arg_at[3]] == 1 && p.arg[p.arg_at[3] + 1] == 2 && p.arg[p.arg_at[4]] == 3 && p.arg[p.arg_at[5]] == 0 &&
		  p.arg[p.arg_at[5] + 1] == 4);
	cr_assert(p.carry_of[1] == 2 && p.carry_of[0] == 255);
}

static void check_counted(const struct bc_instr *instr, size_t ninstr, uint64_t n, const uint64_t *counts, enum brv_status want, const uint64_t *words)
{
	struct bc_program p = make(instr, ninstr);
	uint64_t nwords[BC_MAX_INSTR];
	struct error err = { "" };

	cr_assert_eq(program_link(&p, &err), BRV_OK, "%s", err.text);
	cr_expect_eq(program_words(&p, n, NULL, counts, nwords, &err), want, "%llu words: %s", (unsigned long long)n, err.text);
	for (size_t i = 0; want == BRV_OK && i < ninstr; i++)
		cr_expect_eq(nwords[i], words[i], "%llu words: register %zu has %llu", (unsigned long long)n, i,
			     (unsigned long long)nwords[i]);
}
#define WORDS(...) (const uint64_t[]){ __VA_ARGS__ }

static void check_words(const struct bc_instr *instr, size_t ninstr, uint64_t n, enum brv_status want, const uint64_t *words)
{
	check_counted(instr, ninstr, n, NULL, want, words);
}

Test(bytecode, words)
{
	check_words(linked, ARRAY_LEN(linked), 40, BRV_OK, WORDS(10, 10, 10, 10, 30, 40));
	check_words(linked, ARRAY_LEN(linked), 10, BRV_OK, WORDS(10, 0, 0, 0, 0, 10));
	check_words(linked, ARRAY_LEN(linked), 0, BRV_OK, WORDS(0, 0, 0, 0, 0, 0));
	check_words(linked, ARRAY_LEN(linked), 9, BRV_DAMAGED, NULL);   /* concat */
	check_words(linked, ARRAY_LEN(linked), 41, BRV_DAMAGED, NULL);  /* repeat */
	check_words(PROGRAM(I(LIT_RAW, 5, 0), I(DEAL, 8, 1, .imm = Q5)), 40, BRV_OK, WORDS(64, 40));
	check_words(PROGRAM(I(LIT_RAW, 5, 0), I(DEAL, 8, 1, .imm = Q5)), 41, BRV_DAMAGED, NULL);
	check_words(PROGRAM(I(LIT_RAW, 8, 0), I(SCAN_ADD, 8, 1)), 1, BRV_OK, WORDS(0, 1));
	check_words(PROGRAM(I(LIT_RAW, 8, 0), I(SCAN_ADD, 8, 1)), 7, BRV_OK, WORDS(6, 7));
	check_words(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 2, .imm = 0x00100002)), 36, BRV_OK, WORDS(4, 32, 36));
	check_words(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(WEAVE, 8, 2, .imm = 0x00100002)), 35, BRV_DAMAGED, NULL);
	check_words(PROGRAM(I(LIT_RAW, 8, 0), I(GATE, 8, 1, .imm = 1, .flags = BC_CLASSED)), 5, BRV_DAMAGED, NULL); /* no row classes */
}

#define LOOKUP(block) PROGRAM(I(LIT_RAW, 32, 0), I(LIT_RAW, 5, 0), I(LOOKUP, 32, 2, .imm = block))

Test(bytecode, words_that_chunks_say)
{
	check_counted(LOOKUP(0), 100, WORDS(7), BRV_OK, WORDS(7, 100, 100));
	check_counted(LOOKUP(0), 100, WORDS(100), BRV_OK, WORDS(100, 100, 100));
	check_counted(LOOKUP(0), 100, WORDS(101), BRV_DAMAGED, NULL);
	check_counted(LOOKUP(0), 100, WORDS(0), BRV_DAMAGED, NULL);
	check_counted(LOOKUP(0), 0, WORDS(0), BRV_OK, WORDS(0, 0, 0));
	check_counted(LOOKUP(0), 0, WORDS(1), BRV_DAMAGED, NULL);
	check_counted(LOOKUP(30), 100, WORDS(8), BRV_OK, WORDS(8, 100, 100)); /* 4 blocks, the last of 10 words */
	check_counted(LOOKUP(30), 100, WORDS(7), BRV_DAMAGED, NULL);
	check_counted(LOOKUP(30), 90, WORDS(9), BRV_OK, WORDS(9, 90, 90));
	check_counted(LOOKUP(UINT64_MAX), 90, WORDS(9), BRV_OK, WORDS(9, 90, 90));
	check_counted(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 1, 0), I(SCATTER, 8, 2)), 100, WORDS(0), BRV_OK, WORDS(0, 100, 100));
	check_counted(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 1, 0), I(SCATTER, 8, 2)), 100, WORDS(100), BRV_OK, WORDS(100, 100, 100));
	check_counted(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 1, 0), I(SCATTER, 8, 2)), 100, WORDS(101), BRV_DAMAGED, NULL);
	/* In the order of the instructions: the lookup's comes first. */
	check_counted(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 3, 0), I(LOOKUP, 8, 2), I(LIT_RAW, 1, 0), I(SCATTER, 8, 2)), 100, WORDS(4, 20), BRV_OK,
		      WORDS(4, 20, 20, 100, 100));
	check_counted(PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RAW, 3, 0), I(LOOKUP, 8, 2), I(LIT_RAW, 1, 0), I(SCATTER, 8, 2)), 100, WORDS(20, 4), BRV_DAMAGED,
		      NULL);
	check_words(PROGRAM(I(LIT_RAW, 4, 0), I(CUT, 1, 1)), 100, BRV_OK, WORDS(25, 100));
	check_words(PROGRAM(I(LIT_RAW, 8, 0), I(CUT, 1, 1)), 100, BRV_OK, WORDS(13, 100));
	check_words(PROGRAM(I(LIT_RAW, 64, 0), I(CUT, 32, 1)), 1, BRV_OK, WORDS(1, 1));
}

static uint64_t words_in_set(const void *context, uint64_t set) { return set == 5 ? *(const uint64_t *)context : 99; }

Test(bytecode, words_of_gate)
{
	static const struct bc_instr gate[] = { I(LIT_RAW, 8, 0), I(GATE, 8, 1, .imm = 5, .flags = BC_CLASSED) };
	struct bc_program p = make(gate, ARRAY_LEN(gate));
	const uint64_t zeros = 3;
	const struct bc_rows rows = { words_in_set, &zeros }, unknown = { NULL, NULL };
	uint64_t nwords[BC_MAX_INSTR];

	cr_assert_eq(program_link(&p, NULL), BRV_OK);
	cr_assert_eq(program_words(&p, 10, &rows, NULL, nwords, NULL), BRV_OK);
	cr_assert(nwords[0] == 7 && nwords[1] == 10);
	cr_assert_eq(program_words(&p, 10, &unknown, NULL, nwords, NULL), BRV_OK);
	cr_assert_eq(nwords[0], 10);
}

static void check_text(const char *want, const struct bc_instr *instr, size_t n)
{
	struct bc_program p = make(instr, n);
	char text[256], small[256];

	cr_assert_eq(program_link(&p, NULL), BRV_OK);
	program_print(&p, text, sizeof(text));
	cr_expect_str_eq(text, want);
	for (size_t size = 1; size <= strlen(want); size++) {
		memset(small, 'x', sizeof(small));
		program_print(&p, small, size);
		cr_expect_eq(strlen(small), size - 1, "size %zu: \"%s\"", size, small);
		cr_expect(small[size] == 'x', "size %zu: written beyond", size);
		cr_expect(size <= 4 || !strcmp(small + size - 4, "..."), "size %zu: \"%s\"", size, small);
	}
	program_print(&p, small, 0);
}

Test(bytecode, program_text)
{
	check_text("map.rot(merge(lit.raw:8, lit.rans:8), 1)",
		   PROGRAM(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1)));
	check_text("concat(lit.raw:8, repeat(merge(lit.raw:4, lit.rans:4 carry r1), 3), 10)", linked, ARRAY_LEN(linked));
	check_text("const:16(0)", PROGRAM(I(CONST, 16, 0)));
	check_text("const:64(0xffffffffffffffff)", PROGRAM(I(CONST, 64, 0, .imm = UINT64_MAX)));
	check_text("deal(lit.raw:5, 32 1@4/1 4@0/16)", PROGRAM(I(LIT_RAW, 5, 0), I(DEAL, 8, 1, .imm = Q5)));
	check_text("gate(lit.wide:8, 0b101)", PROGRAM(I(LIT_WIDE, 8, 0), I(GATE, 8, 1, .imm = 5, .flags = BC_CLASSED)));
	check_text("lit.rans:8 classed", PROGRAM(I(LIT_RANS, 8, 0, .flags = BC_CLASSED)));
	check_text("weave(lit.raw:8, lit.pack:8, 2 16)", PROGRAM(I(LIT_RAW, 8, 0), I(LIT_PACK, 8, 0), I(WEAVE, 8, 2, .imm = 0x00100002)));
	check_text("lookup(lit.raw:32, lit.wide:8)", PROGRAM(I(LIT_RAW, 32, 0), I(LIT_WIDE, 8, 0), I(LOOKUP, 32, 2)));
	check_text("lookup(lit.raw:16, lit.rans:4, 384)", PROGRAM(I(LIT_RAW, 16, 0), I(LIT_RANS, 4, 0), I(LOOKUP, 16, 2, .imm = 384)));
	check_text("scatter(lit.raw:16, cut(lit.rans:4), 0)", PROGRAM(I(LIT_RAW, 16, 0), I(LIT_RANS, 4, 0), I(CUT, 1, 1), I(SCATTER, 16, 2)));
	check_text("map.gray(scan.add(ref:16))", PROGRAM(I(REF, 16, 0), I(SCAN_ADD, 16, 1), I(MAP_GRAY, 16, 1)));
}

static void check_instr(const char *want, struct bc_instr instr)
{
	char text[128];

	instr_print(&instr, text, sizeof(text));
	cr_expect_str_eq(text, want);
	instr_print(&instr, text, 5);
	cr_expect_eq(strlen(text), 4);
	instr_print(&instr, text, 0);
}

Test(bytecode, instruction_text)
{
	check_instr("map.rot w16 imm 1", (struct bc_instr)I(MAP_ROT, 16, 1, .imm = 1));
	check_instr("lit.rans w8 classed carry r3", (struct bc_instr)I(LIT_RANS, 8, 0, .flags = 3, .aux = 3));
	check_instr("weave w8 runs 2 16", (struct bc_instr)I(WEAVE, 8, 2, .imm = 0x00100002));
	check_instr("lit.raw w8", (struct bc_instr)I(LIT_RAW, 8, 0));
	check_instr("unknown 0x7f w8", (struct bc_instr){ .op = 0x7f, .width = 8 });
}

/* program.c: any programs of one or two instructions, and some of three, linked and measured for any number of words.
 *
 * Ops are those of the table, and what is none; all else of each instruction is any bytes. Those of three have lit.raw and another leaf below an op of
 * two arguments. SPDX-License-Identifier: Apache-2.0 */
#include "common/bytecode.h"

static const uint8_t codes[] = {
#define OP(code, ...) code,
#include "common/ops.def"
#undef OP
	0, /* none */
};

static uint64_t words_in(const void *ctx, uint64_t set)
{
	(void)ctx, (void)set;
	return any_u64();
}

static void prove(const uint8_t *op, unsigned n)
{
	struct error err;
	struct bc_program program;
	uint64_t nwords[BC_MAX_INSTR], counts[BC_MAX_INSTR], placed;
	const struct bc_rows rows = { words_in, NULL }, bound = { NULL, NULL };

	anything(&program, sizeof program);
	anything(counts, sizeof counts);
	program.ninstr = (uint16_t)n;
	for (unsigned i = 0; i < n; i++)
		program.instr[i].op = op[i];
	if (program_link(&program, &err) != BRV_OK)
		return;
	program_since(&program);
	program_words(&program, any_u64(), &rows, counts, nwords, &err);
	program_words(&program, any_u64(), &bound, counts, nwords, &err);
	program_words(&program, any_u64(), NULL, counts, nwords, &err);
	for (unsigned i = 0; i < n; i++)
		program_path_words(&program, i, any_u64(), &placed);
}

static bool is_leaf(uint8_t code) { return bc_opinfo(code) && bc_opinfo(code)->max_args == 0; }

/* Under each op that can have two arguments. */
static void prove_pairs(uint8_t first, uint8_t second)
{
	for (unsigned i = 0; i < ARRAY_LEN(codes); i++)
		if (bc_opinfo(codes[i]) && bc_opinfo(codes[i])->max_args > 1)
			prove((const uint8_t[]){ first, second, codes[i] }, 3);
}

int main(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(codes); i++) {
		prove((const uint8_t[]){ codes[i] }, 1);
		for (unsigned j = 0; j < ARRAY_LEN(codes); j++) {
			prove((const uint8_t[]){ codes[i], codes[j] }, 2);
			if (codes[i] == OP_LIT_RAW && is_leaf(codes[j]))
				prove_pairs(codes[i], codes[j]);
		}
	}
	return 0;
}

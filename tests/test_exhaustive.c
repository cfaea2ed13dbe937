/* test_exhaustive.c: every program of up to three instructions over boundary operands: what is accepted is run, by every kernel set, on chunks of
 * few words, in memory of just its size, so that a sanitizer sees each byte out of place; all sets have to make the same of it.
 *
 * This is the other side of verification: nothing that program_link() and program_words() let through may read or write elsewhere. Payloads are
 * of the right sizes and random, so that coded literals mostly find them damaged. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/archive.h"
#include "common/deal.h"
#include "kernels/kernel.h"
#include "runtime/exec.h"
#include "synth/train.h"
#include "tests/gen.h"

enum { MAX_CANDIDATES = 1024, MOST_INSTR = 3, ROWS = 128, ROW_WORDS = 16, KINDS = TABLE_KINDS, MAX_WIDTH = 16 };
static const uint8_t widths[] = { 1, 7, 8, 9, 15, 16, 32, 33, 64 };
static const uint64_t sizes[] = { 1, 2, 3, 64, 65, 130, 390 };

struct enumeration {
	struct bc_instr candidate[MAX_CANDIDATES];
	unsigned ncandidates;
	struct bc_program program;
	struct kn_table *table[KINDS][MAX_WIDTH + 1][2]; /* by kind, width, classed or not */
	uint8_t row_class[ROWS + KN_CLASS_PAD];
	uint64_t refs[2 * MOST_INSTR];  /* the stream's number stands for the ref's width */
	uint64_t count;                 /* of every instruction whose chunks say one */
	uint64_t random, accepted, refused, ran, decoded;
};

static void add(struct enumeration *e, enum bc_op op, unsigned width, unsigned nargs, uint64_t imm, unsigned flags, unsigned aux)
{
	cr_assert(e->ncandidates < MAX_CANDIDATES);
	e->candidate[e->ncandidates++] =
		(struct bc_instr){ .op = (uint8_t)op, .width = (uint8_t)width, .nargs = (uint8_t)nargs, .flags = (uint8_t)flags, .aux = aux, .imm = imm };
}

/* Operands at and just beyond their limits. */
static void add_operands(struct enumeration *e, const struct bc_opinfo *op, unsigned width, unsigned nargs)
{
	const uint64_t mask = mask_bits(width);
	const uint64_t word[] = { 0, 1, mask, mask + 1 }, split[] = { 0, 1, 3, 131 }, times[] = { 0, 1, 2, 130 }, turn[] = { 1, width - 1, width };
	const uint64_t runs[] = { 0x10001, 0x20001, 0x10000, 0xffffffff, 0x100010001 }, set[] = { 1, 2, 3, 256 };
	/* Whole words; a bit and the rest, side by side and apart; three fields; none, an overlap, a gap, a block that is not whole. */
	const uint64_t fields[] = { 1 | DEAL_FIELD(0, width & 15, 0, 1), 8 | DEAL_FIELD(0, 1, 0, 1), 65 | DEAL_FIELD(0, 1, 0, 1), 32 | DEAL_FIELD(0, 1, 7, 1) | DEAL_FIELD(1, 7, 0, 1),
				    32 | DEAL_FIELD(0, 8, 0, 1) | DEAL_FIELD(1, 1, 8, 2), 64 | DEAL_FIELD(0, 8, 8, 8) | DEAL_FIELD(1, 4, 4, 16) | DEAL_FIELD(2, 4, 0, 32),
				    0, 8, 8 | DEAL_FIELD(0, 1, 0, 1) | DEAL_FIELD(1, 1, 0, 1), 8 | DEAL_FIELD(0, 4, 0, 1) | DEAL_FIELD(1, 4, 5, 1), 9 | DEAL_FIELD(0, 1, 0, 1) };
	const uint64_t block[] = { 0, 1, 3, UINT64_MAX };
	const struct { enum bc_op op; const uint64_t *imm; size_t count; } operands[] = {
		{ OP_CONST, word, ARRAY_LEN(word) }, { OP_MAP_XOR, word, ARRAY_LEN(word) }, { OP_MAP_ADD, word, ARRAY_LEN(word) },
		{ OP_CONCAT, split, ARRAY_LEN(split) }, { OP_REPEAT, times, ARRAY_LEN(times) }, { OP_MAP_ROT, turn, ARRAY_LEN(turn) },
		{ OP_WEAVE, runs, ARRAY_LEN(runs) }, { OP_GATE, set, ARRAY_LEN(set) }, { OP_LOOKUP, block, ARRAY_LEN(block) },
		{ OP_SCATTER, word, ARRAY_LEN(word) }, { OP_DEAL, fields, ARRAY_LEN(fields) },
	};
	for (size_t k = 0; k < ARRAY_LEN(operands); k++)
		for (size_t i = 0; operands[k].op == (enum bc_op)op->code && i < operands[k].count; i++)
			add(e, op->code, width, nargs, operands[k].imm[i], op->code == OP_GATE ? BC_CLASSED : 0, 0);
	for (size_t k = 0; k < ARRAY_LEN(operands); k++)
		if (operands[k].op == (enum bc_op)op->code)
			return;
	add(e, op->code, width, nargs, 0, 0, 0);
}

static void add_candidates(struct enumeration *e)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct bc_opinfo *op = bc_opinfo((uint8_t)code);
		for (size_t w = 0; op && w < ARRAY_LEN(widths); w++) {
			for (unsigned nargs = op->min_args; nargs <= MIN(op->max_args, MOST_INSTR - 1u); nargs++)
				add_operands(e, op, widths[w], nargs);
			for (unsigned flags = 1; flags < 4 && bc_is_rans((uint8_t)code) && widths[w] <= 16; flags++)
				for (unsigned aux = 0; aux <= 2 * (flags & BC_CARRY); aux++)
					add(e, code, widths[w], 0, 0, flags, aux);
		}
	}
	/* What no program may have. */
	add(e, 0, 8, 0, 0, 0, 0);
	add(e, OP_LIT_RAW, 0, 0, 0, 0, 0);
	add(e, OP_LIT_RAW, 65, 0, 0, 0, 0);
	add(e, OP_LIT_RAW, 8, 1, 0, 0, 0);
	add(e, OP_LIT_RAW, 8, 0, 1, 0, 0);
	add(e, OP_LIT_RAW, 8, 0, 0, 4, 0);
	add(e, OP_LIT_RAW, 8, 0, 0, BC_CARRY, 0);
	add(e, OP_MERGE, 16, 3, 0, 0, 0);
	add(e, OP_MERGE, 2, 2, 0, 0, 0);
	add(e, OP_MERGE, 9, 2, 0, 0, 0);
	add(e, OP_LIT_RAW, 15, 0, 0, 0, 0);
	add(e, OP_LIT_RAW, 7, 0, 0, 0, 0);
	add(e, OP_LIT_RANS, 8, 0, 0, BC_CARRY, UINT32_MAX);
}

/* A table for words of the width; NULL where there is none. */
static struct kn_table *make_table(struct enumeration *e, enum bc_table kind, unsigned width, bool classed)
{
	const size_t symbols = (size_t)1 << width, pairs = classed ? 2 : 1;
	uint32_t *counts = calloc(pairs * symbols, sizeof(*counts));
	struct buffer body = { 0 };
	struct kn_table *table = NULL;

	for (size_t p = 0; p < pairs; p++)
		for (size_t s = 0; s < MIN(symbols, (size_t)20); s++)
			counts[p * symbols + s] = 1 + (uint32_t)gen_between(&e->random, 0, 40);
	const bool ok = train_table((uint8_t)(OP_LIT_HUFF + kind - TABLE_HUFF), width, 4, (unsigned)pairs, 1, counts, &body);
	if (ok)
		cr_assert_eq(table_expand(kind, (struct span){ body.data, body.nbytes }, &table, NULL), BRV_OK);
	buffer_free(&body);
	free(counts);
	return table;
}

static void make_tables(struct enumeration *e)
{
	for (size_t w = 0; w < ARRAY_LEN(widths); w++)
		for (unsigned kind = TABLE_HUFF; kind < KINDS && widths[w] <= MAX_WIDTH; kind++)
			for (unsigned classed = 0; classed < (kind == TABLE_HUFF ? 1 : 2) && (kind != TABLE_HUFF || widths[w] <= 8); classed++)
				e->table[kind][widths[w]][classed] = make_table(e, kind, widths[w], classed);
	for (unsigned i = 0; i < sizeof(e->row_class); i++)
		e->row_class[i] = (uint8_t)gen_between(&e->random, 0, 1);
}

static void put_random(struct enumeration *e, struct buffer *out, uint64_t nbytes)
{
	for (uint64_t i = 0; i < nbytes; i++)
		buffer_put_u8(out, (uint8_t)gen_random(&e->random));
}

/* Sets everything but the payload; false if a table is missing. */
static bool set_exec(struct enumeration *e, struct exec *exec, const struct plan *plan, uint64_t n)
{
	for (unsigned i = 0, nth = 0; i < e->program.ninstr; i++)
		if (e->program.instr[i].op == OP_REF)
			e->refs[2 * nth++] = e->program.instr[i].width;
	*exec = (struct exec){ .program = &e->program, .plan = plan, .n = n, .row_class = e->row_class, .row_words = ROW_WORDS, .refs = e->refs, .counts = &e->count };
	for (unsigned i = 0; i < e->program.ninstr; i++) {
		const struct bc_instr *in = &e->program.instr[i];
		const enum bc_table kind = bc_opinfo(in->op)->table;
		const bool classed = in->flags & BC_CLASSED;
		exec->operand[i].row_class = classed ? e->row_class : NULL;
		if (kind == TABLE_NONE)
			continue;
		exec->operand[i].table = in->width <= MAX_WIDTH ? e->table[kind][in->width][classed] : NULL;
		if (!exec->operand[i].table)
			return false;
	}
	return true;
}

/* Words of a gate's argument are known to the executor only: it is asked what it makes of no payload. */
static struct buffer make_payload(struct enumeration *e, struct exec *exec, bool fill)
{
	struct buffer payload = { 0 };

	exec->payload = (struct span){ (const uint8_t *)"", 0 };
	exec_layout(exec);
	for (unsigned i = 0; i < e->program.ninstr; i++) {
		const struct bc_instr *in = &e->program.instr[i];
		const uint64_t n = exec->nwords[i];
		const enum bc_payload kind = bc_opinfo(in->op)->payload;
		uint64_t nbytes = kind == PAYLOAD_PACKED ? packed_nbytes(n, in->width) : kind == PAYLOAD_FIRST ? (in->width + 7u) / 8 : 0;
		if (n == 0)
			continue;
		nbytes -= MIN(nbytes, (uint64_t)program_carried_nbytes(&e->program, i));
		if (kind == PAYLOAD_ITEM) {
			uint8_t length[4];
			nbytes = gen_between(&e->random, 0, fill ? 300 : 12);
			store_u32(length, (uint32_t)nbytes);
			buffer_put(&payload, length, sizeof(length));
		}
		put_random(e, &payload, nbytes);
		if (kind == PAYLOAD_PACKED && nbytes && n * in->width % 8)
			payload.data[payload.nbytes - 1] &= (uint8_t)mask_bits(n * in->width % 8);
	}
	return payload;
}

/* exec_ref_fn */
static enum brv_status zeros(void *context, uint64_t stream, uint64_t first, uint64_t n, void *dst)
{
	(void)context, (void)first;
	memset(dst, 0, n * word_nbytes((unsigned)stream));
	return BRV_OK;
}

/* One run in memory of just its size; the words are returned, NULL if the payload is refused. */
static uint8_t *run_once(struct exec *exec, const struct kn_set *set, const struct buffer *payload, size_t nbytes)
{
	const size_t arena_nbytes = place_offset(exec->plan->end, plan_round(exec->n), KN_PAD);
	uint8_t *dst = malloc(nbytes), *bytes = malloc(payload->nbytes + KN_PAD);

	exec->arena = aligned_alloc(64, MAX((arena_nbytes + 63) / 64 * 64, (size_t)64));
	exec->kernels = set;
	if (payload->nbytes)
		memcpy(bytes, payload->data, payload->nbytes);
	memset(bytes + payload->nbytes, 0x5a, KN_PAD);
	exec->payload = (struct span){ bytes, payload->nbytes };
	const enum brv_status status = exec_run(exec, dst);
	cr_assert(status == BRV_OK || status == BRV_DAMAGED);
	free(exec->arena);
	free(bytes);
	if (status == BRV_OK)
		return dst;
	free(dst);
	return NULL;
}

static void run_all(struct enumeration *e, const struct plan *plan, uint64_t n, bool fill)
{
	const size_t nbytes = n * word_nbytes(e->program.instr[e->program.ninstr - 1].width);
	struct exec exec;

	if (!set_exec(e, &exec, plan, n))
		return;
	exec.ref = zeros;
	struct buffer payload = make_payload(e, &exec, fill);
	uint8_t *expected = run_once(&exec, kn_sets[0], &payload, nbytes);
	for (unsigned s = 1; kn_sets[s]; s++) {
		if (!kn_sets[s]->supported())
			continue;
		uint8_t *words = run_once(&exec, kn_sets[s], &payload, nbytes);
		char text[200];
		if (!expected != !words || (words && memcmp(words, expected, nbytes))) {
			program_print(&e->program, text, sizeof(text));
			cr_assert_fail("%s and %s disagree about %s of %llu words", kn_sets[0]->name, kn_sets[s]->name, text, (unsigned long long)n);
		}
		free(words);
	}
	e->ran++, e->decoded += expected != NULL;
	free(expected);
	buffer_free(&payload);
}

static void execute(struct enumeration *e)
{
	const struct bc_rows rows = { NULL, NULL };
	struct plan plan;

	plan_make(&plan, &e->program);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const uint64_t n = sizes[i], counts[] = { 0, 1, 2, n / 2, n, n + 1 };
		for (size_t k = 0; k < (e->program.ncounts ? ARRAY_LEN(counts) : 1); k++) {
			uint64_t nwords[BC_MAX_INSTR];
			e->count = counts[k];
			if (program_words(&e->program, n, &rows, &e->count, nwords, NULL) != BRV_OK)
				continue;
			run_all(e, &plan, n, false);
			if (e->program.ntables)
				run_all(e, &plan, n, true);
		}
	}
}

/* Adds each candidate; what is wrong for another reason than registers without use is wrong whatever follows. */
static void extend(struct enumeration *e, unsigned most)
{
	const unsigned at = e->program.ninstr++;

	for (unsigned c = 0; c < e->ncandidates; c++) {
		struct error err = { "" };
		e->program.instr[at] = e->candidate[c];
		const enum brv_status status = program_link(&e->program, &err);
		e->accepted += status == BRV_OK, e->refused += status != BRV_OK;
		cr_assert(status == BRV_OK || ((status == BRV_DAMAGED || status == BRV_VERSION) && err.text[0]));
		if (status == BRV_OK)
			execute(e);
		if (at + 1 < most && (status == BRV_OK || strstr(err.text, "left unused")))
			extend(e, most);
		e->program.ninstr = (uint16_t)(at + 1);
	}
}

Test(exhaustive, every_small_program_stays_within_its_memory, .timeout = 900)
{
	struct enumeration *e = calloc(1, sizeof(*e));

	e->random = 1;
	add_candidates(e);
	make_tables(e);
	extend(e, MOST_INSTR);
	cr_log_info("%llu programs accepted, %llu refused, %llu runs in every set, %llu of them decoded", (unsigned long long)e->accepted,
		    (unsigned long long)e->refused, (unsigned long long)e->ran, (unsigned long long)e->decoded);
	cr_assert(e->accepted > 10000 && e->refused > 100000 && e->decoded > 10000);
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned w = 0; w <= MAX_WIDTH; w++)
			free(e->table[k][w][0]), free(e->table[k][w][1]);
	free(e);
}

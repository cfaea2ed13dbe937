/* bytecode.c: the op table as data, the checks that a program alone allows, sizes down the tree, printing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/bytecode.h"

#include "common/deal.h"
#include "common/text.h"

static const struct bc_opinfo ops[256] = {
#define OP(op_code, version, id, op_name, lo, hi, width, words_rule, widths_rule, pay, tab, kernel, text)                                   \
	[op_code] = { .name = op_name, .effect = text, .code = op_code, .since = version, .min_args = lo, .max_args = hi, .max_width = width,        \
		      .words = WORDS_##words_rule, .widths = WIDTHS_##widths_rule, .payload = PAYLOAD_##pay, .table = TABLE_##tab },
#include "common/ops.def"
#undef OP
};

const struct bc_opinfo *bc_opinfo(uint8_t code) { return ops[code].name ? &ops[code] : NULL; }

unsigned bc_table_since(uint8_t kind)
{
	unsigned since = 0;
	for (unsigned code = 0; code < ARRAY_LEN(ops); code++)
		if (ops[code].name && ops[code].table == kind && kind != TABLE_NONE && (!since || ops[code].since < since))
			since = ops[code].since;
	return since;
}

bool bc_is_rans(uint8_t op)
{
	const unsigned table = bc_opinfo(op) ? ops[op].table : TABLE_NONE;
	return table == TABLE_RANS || table == TABLE_WIDE || table == TABLE_ALIAS;
}

unsigned program_since(const struct bc_program *program)
{
	unsigned since = 1;
	for (unsigned i = 0; i < program->ninstr; i++) {
		since = MAX(since, ops[program->instr[i].op].since);
		if (program->instr[i].flags & BC_CLASSED && !program_in_step(program, i))
			since = MAX(since, 2u);
	}
	return since;
}

/* Whether argument k of an op of width w may have this width; SUM is a matter of all of them. */
static bool width_fits(enum bc_widths rule, unsigned w, unsigned k, unsigned width)
{
	switch (rule) {
	case WIDTHS_SAME: return width == w;
	case WIDTHS_INDEX: return k ? width <= BC_MAX_INDEX_BITS : width == w;
	case WIDTHS_MASK: return width == (k ? 1 : w);
	case WIDTHS_CUT: return width > w && width % w == 0;
	case WIDTHS_DEAL: return width <= DEAL_MAX_BITS;
	default: return true;
	}
}

/* The operand rules of FORMAT 5.2 that need no n. */
static enum brv_status check_operands(const struct bc_program *program, unsigned i, struct error *err)
{
	const struct bc_instr *in = &program->instr[i];
	const bool is_rans = bc_is_rans(in->op);
	struct deal deal;
	uint64_t imm_limit = 1; /* exclusive; 0: any */
	uint64_t sum = 0;

	switch (in->op) {
	case OP_CONST: case OP_MAP_XOR: case OP_MAP_ADD: case OP_SCATTER: imm_limit = in->width == 64 ? 0 : 1ull << in->width; break;
	case OP_MAP_ROT: imm_limit = in->width; break;
	case OP_CONCAT: case OP_WEAVE: case OP_REPEAT: case OP_LOOKUP: case OP_DEAL: imm_limit = 0; break;
	case OP_GATE: imm_limit = 256; break;
	default: break;
	}
	if (imm_limit && in->imm >= imm_limit)
		return fail(err, BRV_DAMAGED, "instruction %u: operand %llu of %s is out of range", i,
			    (unsigned long long)in->imm, ops[in->op].name);
	if ((in->op == OP_REPEAT || in->op == OP_GATE) && in->imm == 0)
		return fail(err, BRV_DAMAGED, "instruction %u: operand of %s is 0", i, ops[in->op].name);
	if (in->op == OP_WEAVE)
		for (unsigned k = 0; k < 4; k++)
			if (!(in->imm >> (16 * k) & 0xffff) != (k >= in->nargs))
				return fail(err, BRV_DAMAGED, "instruction %u: run length %u of weave does not fit its %u arguments", i, k,
					    in->nargs);
	if (in->op == OP_DEAL && !deal_parse(in->imm, in->width, program->instr[program->arg[program->arg_at[i]]].width, &deal))
		return fail(err, BRV_DAMAGED, "instruction %u: fields of deal that do not make its words", i);
	if (in->op == OP_REF && in->width != 8 && in->width != 16 && in->width != 32 && in->width != 64)
		return fail(err, BRV_DAMAGED, "instruction %u: ref of width %u", i, in->width);
	for (unsigned k = 0; k < in->nargs; k++) {
		const unsigned width = program->instr[program->arg[program->arg_at[i] + k]].width;
		sum += width;
		if (!width_fits(ops[in->op].widths, in->width, k, width))
			return fail(err, BRV_DAMAGED, "instruction %u: %s of width %u has an argument of width %u", i, ops[in->op].name,
				    in->width, width);
	}
	if (ops[in->op].widths == WIDTHS_SUM && sum != in->width)
		return fail(err, BRV_DAMAGED, "instruction %u: arguments of %llu bits make a word of %u", i, (unsigned long long)sum,
			    in->width);
	if (in->flags & ~(BC_CARRY | BC_CLASSED))
		return fail(err, BRV_VERSION, "instruction %u: unknown flags 0x%x", i, in->flags);
	if ((in->flags & BC_CARRY && !is_rans) || (in->flags & BC_CLASSED && !is_rans && in->op != OP_GATE) ||
	    (in->op == OP_GATE && !(in->flags & BC_CLASSED)))
		return fail(err, BRV_DAMAGED, "instruction %u: flags 0x%x do not fit %s", i, in->flags, ops[in->op].name);
	if (!(in->flags & BC_CARRY) && in->aux)
		return fail(err, BRV_DAMAGED, "instruction %u: aux is not 0", i);
	return BRV_OK;
}

/* Gives each carry its target. */
static enum brv_status link_carry(struct bc_program *program, unsigned i, struct error *err)
{
	const struct bc_instr *in = &program->instr[i];

	if (!(in->flags & BC_CARRY))
		return BRV_OK;
	if (in->aux >= i || program->instr[in->aux].op != OP_LIT_RAW || program->carry_of[in->aux] != 255)
		return fail(err, BRV_DAMAGED, "instruction %u: register %u cannot be the target of its carry", i, in->aux);
	program->carry_of[in->aux] = (uint8_t)i;
	return BRV_OK;
}

bool keeps_step(const struct bc_opinfo *info, unsigned k) { return info->words == WORDS_SAME || (info->words == WORDS_COUNT && k == 1); }

/* Whether what is above register i, not the root, takes it word for word. The last argument of instruction i is i - 1. */
static bool parent_keeps_step(const struct bc_program *program, unsigned i)
{
	const struct bc_instr *parent = &program->instr[program->parent[i]];

	return keeps_step(&ops[parent->op], i + 1 == program->parent[i] ? parent->nargs - 1u : 0);
}

bool program_in_step(const struct bc_program *program, unsigned i)
{
	while (i + 1u < program->ninstr && parent_keeps_step(program, i))
		i = program->parent[i];
	return i + 1u == program->ninstr;
}

/* Whether an op has as many words for an argument in every chunk of a size, each at its place among those of a record. */
static bool keeps_records(const struct bc_opinfo *info) { return info->words == WORDS_RUNS || info->words == WORDS_CUT || info->words == WORDS_DEAL; }

/* CLASSED: only under map, merge, what chooses by position, and, for literals, records. */
static enum brv_status check_classed(const struct bc_program *program, unsigned i, struct error *err)
{
	const bool gate = program->instr[i].op == OP_GATE;

	if (!(program->instr[i].flags & BC_CLASSED))
		return BRV_OK;
	for (unsigned at = i; at + 1u < program->ninstr; at = program->parent[at]) {
		const struct bc_opinfo *above = &ops[program->instr[program->parent[at]].op];
		if (!parent_keeps_step(program, at) && (gate || !keeps_records(above)))
			return fail(err, BRV_DAMAGED, "instruction %u: classes under %s, which moves words", i, above->name);
	}
	return BRV_OK;
}

/* Registers below a deal have more words than it: one such step is all that memory has to be found for. */
static enum brv_status check_nested(const struct bc_program *program, unsigned i, struct error *err)
{
	for (unsigned at = i; program->instr[i].op == OP_DEAL && at + 1u < program->ninstr;) {
		at = program->parent[at];
		if (program->instr[at].op == OP_DEAL)
			return fail(err, BRV_DAMAGED, "instruction %u: a deal below a deal", i);
	}
	return BRV_OK;
}

enum brv_status program_link(struct bc_program *program, struct error *err)
{
	uint8_t stack[BC_MAX_INSTR];
	unsigned depth = 0, nargs = 0;

	if (program->ninstr < 1 || program->ninstr > BC_MAX_INSTR)
		return fail(err, BRV_DAMAGED, "a program of %u instructions", program->ninstr);
	program->ntables = program->nrefs = program->ncounts = 0;
	memset(program->carry_of, 255, sizeof(program->carry_of));
	for (unsigned i = 0; i < program->ninstr; i++) {
		const struct bc_instr *in = &program->instr[i];
		const struct bc_opinfo *info = bc_opinfo(in->op);
		if (!info)
			return fail(err, BRV_VERSION, "instruction %u: unknown op 0x%02x", i, in->op);
		if (in->width < 1 || in->width > info->max_width)
			return fail(err, BRV_DAMAGED, "instruction %u: %s of width %u", i, info->name, in->width);
		if (in->nargs < info->min_args || in->nargs > info->max_args || in->nargs > depth)
			return fail(err, BRV_DAMAGED, "instruction %u: %s of %u arguments, %u registers at hand", i, info->name,
				    in->nargs, depth);
		depth -= in->nargs;
		program->arg_at[i] = (uint8_t)nargs;
		for (unsigned k = 0; k < in->nargs; k++) {
			program->arg[nargs++] = stack[depth + k];
			program->parent[stack[depth + k]] = (uint8_t)i;
		}
		stack[depth++] = (uint8_t)i;
		program->ntables += info->table != TABLE_NONE;
		program->nrefs += in->op == OP_REF;
		program->ncounts += info->words == WORDS_COUNT;
		TRY(check_operands(program, i, err));
		TRY(link_carry(program, i, err));
	}
	if (depth != 1)
		return fail(err, BRV_DAMAGED, "%u registers are left unused", depth - 1);
	program->parent[program->ninstr - 1] = (uint8_t)(program->ninstr - 1);
	for (unsigned i = 0; i < program->ninstr; i++)
		TRY(check_nested(program, i, err));
	for (unsigned i = 0; i < program->ninstr; i++)
		TRY(check_classed(program, i, err));
	return BRV_OK;
}

/* Whether a lookup or scatter of n words, 0 too, can have a first argument of `count` words. */
static bool count_fits(const struct bc_instr *in, uint64_t n, uint64_t count)
{
	if (n == 0)
		return count == 0;
	return count <= n && (in->op != OP_LOOKUP || (count > 0 && count % lookup_nblocks(in->imm, n) == 0));
}

/* Words of a weave's record. */
static uint64_t weave_period(const struct bc_instr *in)
{
	uint64_t period = 0;

	for (unsigned k = 0; k < in->nargs; k++)
		period += in->imm >> (16 * k) & 0xffff;
	return period;
}

/* Words of argument k, of `width` bits, of an instruction that produces n whole records. False: they are not whole. */
static bool record_words(const struct bc_instr *in, unsigned k, unsigned width, uint64_t n, uint64_t *out)
{
	const uint64_t period = ops[in->op].words == WORDS_RUNS ? weave_period(in) : 1;
	const unsigned fields = width / in->width;
	struct deal deal;

	switch (ops[in->op].words) {
	case WORDS_RUNS: *out = n / period * (in->imm >> (16 * k) & 0xffff); return n % period == 0;
	case WORDS_DEAL:
		if (!deal_parse(in->imm, in->width, width, &deal) || !deal.nwords || n % deal.nwords)
			return false;
		*out = n / deal.nwords * deal.block;
		return true;
	default: *out = fields ? ceil_div(n, fields) : 0; return fields != 0; /* CUT */
	}
}

bool program_path_words(const struct bc_program *program, unsigned i, uint64_t n, uint64_t *out)
{
	uint8_t path[BC_MAX_INSTR] = { 0 };
	unsigned length = 0;

	for (unsigned at = i; at + 1u < program->ninstr; at = program->parent[at])
		path[length++] = (uint8_t)at;
	for (*out = n; length--;) {
		const unsigned at = path[length], above = program->parent[at];
		const struct bc_instr *in = &program->instr[above];
		unsigned k = 0;
		if (parent_keeps_step(program, at))
			continue;
		while (program->arg[program->arg_at[above] + k] != at)
			k++;
		if (!keeps_records(&ops[in->op]) || !record_words(in, k, program->instr[at].width, *out, out))
			return false;
	}
	return true;
}

/* Words of the arguments of one instruction that has to produce n > 0 words. count: of its first argument, if the chunk says it. */
static enum brv_status argument_words(const struct bc_program *program, unsigned i, uint64_t n, const struct bc_rows *rows, uint64_t count,
				      uint64_t nwords[BC_MAX_INSTR], struct error *err)
{
	const struct bc_instr *in = &program->instr[i];
	const uint8_t *arg = program->arg + program->arg_at[i];

	switch (ops[in->op].words) {
	case WORDS_SAME:
		for (unsigned k = 0; k < in->nargs; k++)
			nwords[arg[k]] = n;
		break;
	case WORDS_SPLIT:
		if (in->imm > n)
			return fail(err, BRV_DAMAGED, "instruction %u: concat at %llu of %llu words", i, (unsigned long long)in->imm,
				    (unsigned long long)n);
		nwords[arg[0]] = in->imm, nwords[arg[1]] = n - in->imm;
		break;
	case WORDS_DIVIDE:
		if (n % in->imm)
			return fail(err, BRV_DAMAGED, "instruction %u: %llu words are not %llu repeats", i, (unsigned long long)n,
				    (unsigned long long)in->imm);
		nwords[arg[0]] = n / in->imm;
		break;
	case WORDS_LESS1: nwords[arg[0]] = n - 1; break;
	case WORDS_RUNS:
	case WORDS_CUT:
	case WORDS_DEAL:
		for (unsigned k = 0; k < in->nargs; k++)
			if (!record_words(in, k, program->instr[arg[k]].width, n, &nwords[arg[k]]))
				return fail(err, BRV_DAMAGED, "instruction %u: %llu words are no whole records of %s", i, (unsigned long long)n,
					    ops[in->op].name);
		break;
	case WORDS_ROWS:
		if (!rows)
			return fail(err, BRV_DAMAGED, "instruction %u: gate in a stream without row classes", i);
		nwords[arg[0]] = rows->words_in ? n - rows->words_in(rows->ctx, in->imm) : n;
		break;
	case WORDS_COUNT: nwords[arg[0]] = count, nwords[arg[1]] = n; break;
	default: break;
	}
	return BRV_OK;
}

enum brv_status program_words(const struct bc_program *program, uint64_t n, const struct bc_rows *rows, const uint64_t *counts,
			      uint64_t nwords[BC_MAX_INSTR], struct error *err)
{
	unsigned left = program->ncounts;

	nwords[program->ninstr - 1] = n;
	for (unsigned i = program->ninstr; i-- > 0;) {
		const bool counted = ops[program->instr[i].op].words == WORDS_COUNT;
		const uint64_t count = counted ? counts[--left] : 0;
		if (counted && !count_fits(&program->instr[i], nwords[i], count))
			return fail(err, BRV_DAMAGED, "instruction %u: %s of %llu words with %llu to choose from", i, ops[program->instr[i].op].name,
				    (unsigned long long)nwords[i], (unsigned long long)count);
		if (nwords[i]) {
			TRY(argument_words(program, i, nwords[i], rows, count, nwords, err));
			continue;
		}
		for (unsigned k = 0; k < program->instr[i].nargs; k++)
			nwords[program->arg[program->arg_at[i] + k]] = 0;
	}
	return BRV_OK;
}

/* Whether there is an operand to show. */
static bool has_operand(const struct bc_instr *in) { return in->imm || in->op == OP_CONST || in->op == OP_CONCAT || in->op == OP_SCATTER; }

/* The block, then bits@lowest/stride of each field. */
static void put_deal(struct text_out *text, uint64_t imm)
{
	text_add(text, "%u", (unsigned)(imm & 0xffff));
	for (uint64_t fields = imm >> 16; fields; fields >>= 16)
		text_add(text, " %u@%u/%u", (unsigned)(fields & 15), (unsigned)(fields >> 4 & 15), (unsigned)(fields >> 8 & 255) + 1);
}

/* The operand as people read it: run lengths, a set of classes in binary, large words in hexadecimal. */
static void put_operand(struct text_out *text, const struct bc_instr *in)
{
	const char *separator = "";

	switch (in->op) {
	case OP_WEAVE:
		for (unsigned k = 0; k < MIN(in->nargs, 4u); k++, separator = " ")
			text_add(text, "%s%u", separator, (unsigned)(in->imm >> (16 * k) & 0xffff));
		break;
	case OP_DEAL: put_deal(text, in->imm); break;
	case OP_GATE:
		text_add(text, "0b");
		for (unsigned bit = 1u << (31 - __builtin_clz((unsigned)in->imm | 1)); bit; bit >>= 1)
			text_add(text, "%d", (in->imm & bit) != 0);
		break;
	case OP_CONST: case OP_MAP_XOR: case OP_MAP_ADD: case OP_SCATTER:
		text_add(text, in->imm < 1000 ? "%llu" : "0x%llx", (unsigned long long)in->imm);
		break;
	default: text_add(text, "%llu", (unsigned long long)in->imm);
	}
}

static void put_flags(struct text_out *text, const struct bc_instr *in)
{
	if (in->flags & BC_CLASSED && in->op != OP_GATE)
		text_add(text, " classed");
	if (in->flags & BC_CARRY)
		text_add(text, " carry r%u", in->aux);
}

static struct text_out start_text(char *out, size_t size)
{
	if (size)
		*out = 0;
	return (struct text_out){ out, size, 0 };
}

void instr_print(const struct bc_instr *in, char *out, size_t size)
{
	struct text_out text = start_text(out, size);
	const struct bc_opinfo *info = bc_opinfo(in->op);

	if (info)
		text_add(&text, "%s w%u", info->name, in->width);
	else
		text_add(&text, "unknown 0x%02x w%u", in->op, in->width);
	if (has_operand(in)) {
		text_add(&text, in->op == OP_WEAVE ? " runs " : " imm ");
		put_operand(&text, in);
	}
	put_flags(&text, in);
}

/* From the root down, with a stack of the instructions whose arguments are being written and how many of them are. */
void program_print(const struct bc_program *program, char *out, size_t size)
{
	struct text_out text = start_text(out, size);
	uint8_t stack[BC_MAX_INSTR], done[BC_MAX_INSTR];
	unsigned depth = 1;

	stack[0] = (uint8_t)(program->ninstr - 1), done[0] = 0;
	while (depth) {
		const unsigned i = stack[depth - 1], k = done[depth - 1]++;
		const struct bc_instr *in = &program->instr[i];
		if (k == 0)
			text_add(&text, in->nargs ? "%s" : "%s:%u", ops[in->op].name, in->width);
		if (k < in->nargs) {
			text_add(&text, k ? ", " : "(");
			stack[depth] = program->arg[program->arg_at[i] + k], done[depth] = 0;
			depth++;
			continue;
		}
		if (has_operand(in)) {
			text_add(&text, in->nargs ? ", " : "(");
			put_operand(&text, in);
		}
		text_add(&text, in->nargs || has_operand(in) ? ")" : "");
		put_flags(&text, in);
		depth--;
	}
	if (text.length >= size && size > 4)
		memcpy(out + size - 4, "...", 4);
}

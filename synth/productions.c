/* productions.c: the grammar's rules and their application to a hole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/productions.h"

#include "synth/log2i.h"
#include "synth/prior.h"

#define LITERAL(n, o, ...) { .name = n, .op = o, .literal = true, __VA_ARGS__ }
#define SPLIT(n, w, r, ...) { .name = n, .op = OP_MERGE, .width = w, .rotate = r, .field = { __VA_ARGS__ } }
#define ZEROS(n, w, ...) { .name = n, .op = OP_MERGE, .width = w, .field = { __VA_ARGS__ }, .zeros = true }
#define GATED(n, w, ...) { .name = n, .op = OP_MERGE, .width = w, .field = { __VA_ARGS__ }, .gated = true }

const struct production productions[] = {
	LITERAL("const", OP_CONST),
	LITERAL("raw", OP_LIT_RAW),
	LITERAL("pack", OP_LIT_PACK),
	LITERAL("huff", OP_LIT_HUFF),
	LITERAL("rans16", OP_LIT_RANS, .log2_nb = 4),
	LITERAL("rans16.rows", OP_LIT_RANS, .log2_nb = 4, .rows = true),
	LITERAL("rans16.both", OP_LIT_RANS, .log2_nb = 4, .rows = true, .cols = true),
	LITERAL("rans32", OP_LIT_RANS, .log2_nb = 5),
	LITERAL("rans32.rows", OP_LIT_RANS, .log2_nb = 5, .rows = true),
	LITERAL("rans32.both", OP_LIT_RANS, .log2_nb = 5, .rows = true, .cols = true),
	LITERAL("rans64", OP_LIT_RANS, .log2_nb = 6),
	LITERAL("rans64.rows", OP_LIT_RANS, .log2_nb = 6, .rows = true),
	LITERAL("rans64.both", OP_LIT_RANS, .log2_nb = 6, .rows = true, .cols = true),
	LITERAL("wide", OP_LIT_WIDE),
	LITERAL("wide.rows", OP_LIT_WIDE, .rows = true),
	LITERAL("wide.both", OP_LIT_WIDE, .rows = true, .cols = true),
	LITERAL("alias16", OP_LIT_ALIAS, .log2_nb = 4),
	LITERAL("alias16.rows", OP_LIT_ALIAS, .log2_nb = 4, .rows = true),
	LITERAL("alias16.both", OP_LIT_ALIAS, .log2_nb = 4, .rows = true, .cols = true),
	LITERAL("alias32", OP_LIT_ALIAS, .log2_nb = 5),
	LITERAL("alias32.rows", OP_LIT_ALIAS, .log2_nb = 5, .rows = true),
	LITERAL("alias32.both", OP_LIT_ALIAS, .log2_nb = 5, .rows = true, .cols = true),
	LITERAL("alias64", OP_LIT_ALIAS, .log2_nb = 6),
	LITERAL("alias64.rows", OP_LIT_ALIAS, .log2_nb = 6, .rows = true),
	LITERAL("alias64.both", OP_LIT_ALIAS, .log2_nb = 6, .rows = true, .cols = true),
	LITERAL("alias128", OP_LIT_ALIAS, .log2_nb = 7),
	LITERAL("alias128.rows", OP_LIT_ALIAS, .log2_nb = 7, .rows = true),
	LITERAL("alias256", OP_LIT_ALIAS, .log2_nb = 8),
	LITERAL("alias256.rows", OP_LIT_ALIAS, .log2_nb = 8, .rows = true),
	/* Scales of records, two bytes each. */
	{ .name = "cut 16", .op = OP_CUT, .width = 8, .field = { 16 } },
	/* Floating point: exponent above, sign rotated below it, as BF16 and FP32 have it; then the joint symbols. */
	SPLIT("bf16 exponent", 16, 1, 8, 8),
	SPLIT("bf16 exponent+1", 16, 1, 7, 9),
	SPLIT("bf16 sign,exponent", 16, 0, 7, 9),
	SPLIT("bf16 sign,exponent+2", 16, 0, 5, 11),
	SPLIT("bytes", 16, 0, 8, 8),
	SPLIT("fp16 exponent", 16, 1, 8, 3, 5),
	SPLIT("fp16 sign,exponent", 16, 0, 8, 2, 6),
	SPLIT("fp16 sign,exponent+1", 16, 0, 8, 1, 7),
	SPLIT("fp32 exponent", 32, 1, 24, 8),
	SPLIT("fp32 exponent+1", 32, 1, 23, 9),
	SPLIT("fp32 sign,exponent+2", 32, 0, 21, 11),
	GATED("fp32 of fp16", 32, 13, 10, 9),
	GATED("fp32 of fp16 +1", 32, 13, 9, 10),
	GATED("fp32 of fp16 +2", 32, 13, 8, 11),
	GATED("fp32 of bf16", 32, 16, 7, 9),
	/* The same for lit.rans: with the sign, exponents lie in two windows of 256 values. */
	GATED("fp32 of fp16, sign apart", 32, 13, 10, 8, 1),
	GATED("fp32 of fp16 +1, sign apart", 32, 13, 9, 9, 1),
	GATED("fp32 of bf16, sign apart", 32, 16, 7, 8, 1),
	SPLIT("halves", 32, 0, 16, 16),
	SPLIT("bytes", 32, 0, 8, 8, 8, 8),
	SPLIT("fp64 exponent", 64, 0, 52, 12),
	SPLIT("halves", 64, 0, 32, 32),
	SPLIT("bytes", 64, 0, 8, 8, 8, 8, 8, 8, 8, 8),
	SPLIT("nibbles", 8, 0, 4, 4),
	SPLIT("fp8 top 6", 8, 0, 2, 6),
	SPLIT("fp8 top 5", 8, 0, 3, 5),
	SPLIT("bytes", 24, 0, 8, 8, 8),
	SPLIT("byte+15", 23, 0, 15, 8),
	SPLIT("low 13", 23, 0, 13, 10),
	{ .name = "weave", .op = OP_WEAVE, .start = true },
	{ .name = "scan.add", .op = OP_SCAN_ADD },
	{ .name = "scan.xor", .op = OP_SCAN_XOR },
	{ .name = "zigzag", .op = OP_MAP_ZIGZAG },
	{ .name = "gray", .op = OP_MAP_GRAY },
	{ .name = "xor", .op = OP_MAP_XOR },
	{ .name = "add", .op = OP_MAP_ADD },
	{ .name = "repeat", .op = OP_REPEAT },
	{ .name = "concat", .op = OP_CONCAT },
	{ .name = "lookup", .op = OP_LOOKUP, .start = true },
	{ .name = "scatter", .op = OP_SCATTER, .start = true },
	{ .name = "sign apart", .op = OP_MERGE, .width = 16, .field = { 15, 1 }, .start = true },
	{ .name = "sign apart", .op = OP_MERGE, .width = 32, .field = { 31, 1 }, .start = true },
	/* What is left of words whose sign is apart. */
	SPLIT("bf16 exponent", 15, 0, 7, 8),
	SPLIT("bf16 exponent+1", 15, 0, 6, 9),
	SPLIT("bf16 exponent+2", 15, 0, 5, 10),
	SPLIT("fp16 exponent", 15, 0, 8, 2, 5),
	SPLIT("fp32 exponent", 31, 0, 23, 8),
	SPLIT("fp32 exponent+1", 31, 0, 22, 9),
	SPLIT("fp32 exponent+2", 31, 0, 21, 10),
	/* Single precision that was half precision: in all rows, which needs no gate. */
	ZEROS("fp32 that was bf16", 32, 16, 7, 9),
	ZEROS("fp32 that was bf16, sign apart", 32, 16, 7, 8, 1),
	ZEROS("fp32 that was fp16", 32, 13, 10, 9),
	ZEROS("fp32 that was fp16, sign apart", 32, 13, 10, 8, 1),
	ZEROS("fp32 that was fp16 +1, sign apart", 32, 13, 9, 9, 1),
	/* Masks, by groups. */
	{ .name = "cut 4", .op = OP_CUT, .width = 1, .field = { 4 } },
	{ .name = "cut 8", .op = OP_CUT, .width = 1, .field = { 8 } },
	/* Weights of records. */
	{ .name = "deal", .op = OP_DEAL, .start = true },
};
const unsigned nproductions = ARRAY_LEN(productions);
static_assert(ARRAY_LEN(productions) <= PRIOR_MAX_PRODUCTIONS, "a prior has room for all");

bool production_fits(const struct production *p, const struct target *target, unsigned depth, unsigned max_depth)
{
	const struct bc_opinfo *info = bc_opinfo(p->op);

	if (target->width > info->max_width || (p->width && p->width != target->width))
		return false;
	if (p->literal)
		return !(p->rows || p->cols) || target->classed;
	if (depth >= max_depth || p->start)
		return false;
	switch (p->op) {
	case OP_CUT: return p->width == 1 ? target->op == OP_SCATTER && target->slot == 1 :
					    target_is_scales(target);
	case OP_REPEAT: case OP_CONCAT: return !target->varies;
	/* Two maps of a kind in a row are one, or none. */
	case OP_MAP_ZIGZAG: case OP_MAP_GRAY: case OP_MAP_XOR: case OP_MAP_ADD:
		return target->op != p->op && target->width > 1;
	default:
		return true;
	}
}

/* The length of the shortest period of words that n is a multiple of, or n. Knuth, Morris, Pratt (1977) on a prefix, then a check of the whole. */
static size_t period(const struct words *in)
{
	enum { PREFIX = 4096 };
	uint16_t border[PREFIX] = { 0 };
	const unsigned size = word_nbytes(in->width);
	const size_t n = MIN(in->n, (size_t)PREFIX);
	size_t k = 0;

	for (size_t i = 1; i < n; i++) {
		uint64_t v = get_word(in->ptr, size, i);
		while (k && v != get_word(in->ptr, size, k))
			k = border[k - 1];
		k += v == get_word(in->ptr, size, k);
		border[i] = (uint16_t)k;
	}
	size_t p = n - (n ? border[n - 1] : 0);
	if (p == 0 || p > n / 2 || in->n % p)
		return in->n;
	return memcmp(in->ptr, (const uint8_t *)in->ptr + p * size, (in->n - p) * size) ? in->n : p;
}

/* repeat: imm is how often; the same for all segments that have the same length. */
static bool repeat_count(const struct targets *targets, const struct target *t, uint64_t *imm)
{
	struct words in = { t->words, t->n[0], t->width };

	for (unsigned s = 1; s < targets->nsegments; s++)
		if (t->n[s] != t->n[0])
			return false;
	size_t p = in.n ? period(&in) : 0;
	if (p == 0 || p == in.n || p == 1)
		return false;
	*imm = in.n / p;
	return true;
}

/* concat: where a constant beginning or end is cut off. Only for streams of a single chunk, since imm is part of the program. */
static bool concat_point(const struct targets *targets, const struct target *t, uint64_t *imm)
{
	enum { WORTH = 64 };
	const unsigned size = word_nbytes(t->width);
	size_t head = 1, tail = 1;

	if (targets->nchunks != 1 || targets->nsegments != 1 || t->total < 2 * WORTH)
		return false;
	while (head < t->total && get_word(t->words, size, head) == get_word(t->words, size, 0))
		head++;
	while (tail < t->total && get_word(t->words, size, t->total - 1 - tail) == get_word(t->words, size, t->total - 1))
		tail++;
	if (head == t->total || MAX(head, tail) < WORTH)
		return false;
	*imm = head >= tail ? head : t->total - tail;
	return true;
}

/* Fills one op and derives the targets of its arguments. */
static bool fill(struct targets *targets, struct expr *expr, unsigned at, enum bc_op op, uint64_t imm, unsigned nargs, const uint8_t *width)
{
	int first = targets_derive(targets, expr->node[at].target, op, imm, nargs, width);

	if (first < 0 || !expr_fill(expr, at, op, imm, nargs))
		return false;
	for (unsigned k = 0; k < nargs; k++) {
		struct expr_node *child = &expr->node[expr->node[at].arg[k]];
		child->width = width[k], child->target = (uint16_t)(first + (int)k);
	}
	return true;
}

static bool low_bits_zero(const struct target *t, unsigned bits)
{
	const unsigned size = word_nbytes(t->width);
	uint64_t any = 0;

	for (size_t i = 0; i < t->total; i++)
		any |= get_word(t->words, size, i);
	return (any & mask_bits(bits)) == 0;
}

/* A split: map.rot over merge, or merge alone; the lowest field gated or not. */
static bool apply_split(unsigned index, struct targets *targets, struct expr *expr, unsigned at)
{
	const struct production *p = &productions[index];
	const struct classes *c = targets->classes;
	const uint8_t width = expr->node[at].width;
	unsigned nargs = 0, merge = at;

	while (nargs < EXPR_MAX_ARGS && p->field[nargs])
		nargs++;
	if (p->gated && (!c || c->zero_bits != p->field[0] || !targets->target[expr->node[at].target]->positional))
		return false;
	if (p->zeros) {
		const struct target *t = targets_get(targets, expr->node[at].target);
		if (!t || !t->total || !low_bits_zero(t, p->field[0]))
			return false;
	}
	if (p->rotate) {
		if (!fill(targets, expr, at, OP_MAP_ROT, p->rotate, 1, &width))
			return false;
		merge = expr->node[at].arg[0];
		expr->node[merge].choice = (uint8_t)index, expr->node[merge].depth = expr->node[at].depth;
	}
	if (!fill(targets, expr, merge, OP_MERGE, 0, nargs, p->field))
		return false;
	for (unsigned k = 0; k < nargs; k++)
		expr->node[expr->node[merge].arg[k]].depth = (uint8_t)(expr->node[at].depth + 1);
	const unsigned low = expr->node[merge].arg[0];
	if (p->gated) {
		expr->node[low].choice = (uint8_t)index;
		return fill(targets, expr, low, OP_GATE, 1u << (c->kr - 1), 1, p->field);
	}
	return true;
}

/* The production that a start stands for, for targets of this width. */
static uint8_t start_choice(enum bc_op op, unsigned width)
{
	unsigned p = 0;

	while (p < nproductions && !(productions[p].start && productions[p].op == op && (!productions[p].width || productions[p].width == width)))
		p++;
	return (uint8_t)p;
}

bool production_halves(struct targets *targets, struct expr *expr)
{
	static const uint8_t whole = 16, bytes[2] = { 8, 8 };
	unsigned cut = 0, merge = 0;

	while (cut < nproductions && !(productions[cut].op == OP_CUT && productions[cut].width == 8))
		cut++;
	while (merge < nproductions && !(productions[merge].width == whole && !strcmp(productions[merge].name, "bytes")))
		merge++;
	expr->node[0].choice = (uint8_t)cut;
	if (!fill(targets, expr, 0, OP_CUT, 0, 1, &whole))
		return false;
	const unsigned at = expr->node[0].arg[0];
	expr->node[at].choice = (uint8_t)merge;
	return fill(targets, expr, at, OP_MERGE, 0, 2, bytes);
}

/* The root filled with records, their weights dealt if the start says so. */
static bool start_records(const struct start *start, struct targets *targets, struct expr *expr)
{
	static const uint8_t widths[RECORD_RUNS] = { 8, 8, 8, 8 };
	const struct record_type *record = start->record;
	unsigned nargs;
	const uint64_t runs = record_runs(record, &nargs);

	expr->node[0].choice = start_choice(OP_WEAVE, 8);
	if (!fill(targets, expr, 0, OP_WEAVE, runs, nargs, widths))
		return false;
	const unsigned at = expr->node[0].arg[record->slot];
	if (start->dealt)
		expr->node[at].choice = start_choice(OP_DEAL, 8);
	return !start->dealt || fill(targets, expr, at, OP_DEAL, record->deal, 1, &record->bits);
}

bool production_start(const struct start *start, struct targets *targets, struct expr *expr)
{
	unsigned at = 0, width = expr->node[0].width;

	if (start->op == OP_WEAVE)
		return start_records(start, targets, expr);
	if (start->sign_apart) {
		const uint8_t field[2] = { (uint8_t)(width - 1), 1 };
		expr->node[0].choice = start_choice(OP_MERGE, width);
		if (expr->node[0].choice == nproductions || !fill(targets, expr, 0, OP_MERGE, 0, 2, field))
			return false;
		at = expr->node[0].arg[0], width--;
	}
	const uint8_t widths[2] = { (uint8_t)width, start->op == OP_LOOKUP ? start->bits : 1 };
	expr->node[at].choice = start_choice(start->op, width);
	if (!fill(targets, expr, at, start->op, start->imm, 2, widths))
		return false;
	/* The search has all its depth for what is left. */
	for (unsigned i = 0; i < expr->nnodes; i++)
		expr->node[i].depth = 0;
	return true;
}

bool production_apply(unsigned index, struct targets *targets, struct expr *expr, unsigned at)
{
	const struct production *p = &productions[index];
	const unsigned width = expr->node[at].width;
	const uint8_t same[4] = { (uint8_t)width, (uint8_t)width, (uint8_t)width, (uint8_t)width };
	const struct expr before = *expr;
	uint64_t imm = 0;
	unsigned nargs = 1;
	bool ok;

	if (p->op == OP_MERGE) {
		ok = apply_split(index, targets, expr, at);
	} else {
		const struct target *t = targets_get(targets, expr->node[at].target);
		ok = t && t->total > 0;
		if (ok && p->op == OP_REPEAT)
			ok = repeat_count(targets, t, &imm);
		else if (ok && p->op == OP_CONCAT)
			ok = concat_point(targets, t, &imm), nargs = 2;
		else if (ok && (p->op == OP_MAP_XOR || p->op == OP_MAP_ADD)) {
			imm = get_word(t->words, word_nbytes(width), 0);
			ok = imm != 0;
		}
		ok = ok && fill(targets, expr, at, p->op, imm, nargs, p->op == OP_CUT ? p->field : same);
	}
	if (!ok) {
		*expr = before;
		return false;
	}
	expr->node[at].choice = (uint8_t)index;
	return true;
}

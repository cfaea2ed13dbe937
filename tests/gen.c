/* gen.c: cases for the ops without tables, and the memory of all cases (gen.h). SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/deal.h"
#include "tests/model.h"

uint64_t gen_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t gen_between(uint64_t *state, uint64_t lo, uint64_t hi)
{
	const uint64_t random = gen_random(state);
	return hi - lo == UINT64_MAX ? random : lo + random % (hi - lo + 1);
}

void gen_words(uint64_t *state, enum gen_shape shape, unsigned width, size_t n, void *words)
{
	const unsigned size = word_nbytes(width);
	const uint64_t mask = mask_bits(width), centre = gen_random(state);
	uint64_t v = 0;
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t r = gen_random(state);
		switch (shape) {
		case GEN_LOW: v = r >> 32 & 3 ? 0 : r & 3; break;
		case GEN_HIGH: v = r >> 32 & 3 ? mask : mask - (r & 3); break;
		case GEN_BELL: v = centre + (uint64_t)__builtin_popcountll(r) - (uint64_t)__builtin_popcountll(gen_random(state)); break;
		case GEN_RUNS:
			if (left-- == 0)
				v = r >> 60 & 1 ? mask : r, left = r >> 40 & 31;
			break;
		default: v = r; break;
		}
		set_word(words, size, i, v & mask);
	}
}

unsigned gen_width(uint64_t *state, unsigned lo, unsigned hi)
{
	const uint64_t r = gen_random(state);
	const unsigned round = 8u << (r >> 8 & 3), near = round + (r >> 16 & 7 ? 0 : (unsigned)(r >> 20 & 1) * 2 - 1);

	return r & 1 && near >= lo && near <= hi ? near : (unsigned)gen_between(state, lo, hi);
}

/* Memory between two pages that nobody may touch. */
static uint8_t *guarded(unsigned i)
{
	static uint8_t *blocks[GEN_BLOCKS + 2];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!blocks[i]) {
		uint8_t *at = mmap(NULL, GEN_BLOCK_NBYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		cr_assert_neq(at, MAP_FAILED);
		cr_assert_eq(mprotect(at + page, GEN_BLOCK_NBYTES, PROT_READ | PROT_WRITE), 0);
		blocks[i] = at + page;
	}
	return blocks[i];
}

uint8_t *gen_destination(unsigned which) { return guarded(GEN_BLOCKS + which); }

uint8_t *gen_block(struct gen_case *gen, size_t nbytes, size_t pad)
{
	cr_assert(gen->nblocks < GEN_BLOCKS && nbytes + pad <= GEN_BLOCK_NBYTES, "%s: a case too large", gen->what);
	uint8_t *at = guarded(gen->nblocks);
	if (!gen->at_left)
		at += GEN_BLOCK_NBYTES - nbytes - pad;
	gen->pad[gen->nblocks].at = at + nbytes, gen->pad[gen->nblocks].nbytes = pad;
	gen->nblocks++;
	return at;
}

uint8_t *gen_copy(struct gen_case *gen, const void *bytes, size_t nbytes)
{
	uint8_t *at = gen_block(gen, nbytes, KN_PAD);
	if (nbytes)
		memcpy(at, bytes, nbytes);
	return at;
}

void gen_fill_pads(const struct gen_case *gen, uint8_t value)
{
	for (unsigned i = 0; i < gen->nblocks; i++)
		memset(gen->pad[i].at, value, gen->pad[i].nbytes);
}

void gen_begin(struct gen_case *out, const struct bc_opinfo *op, unsigned seed, size_t n)
{
	memset(out, 0, sizeof(*out));
	out->fused = GEN_PLAIN;
	out->at_left = seed % 3 == 0;
	out->args.op = op->code, out->args.n = n;
	snprintf(out->what, sizeof(out->what), "%s, seed %u, n %zu", op->name, seed, n);
}

void gen_end(struct gen_case *gen)
{
	free(gen->expect);
	for (unsigned i = 0; i < gen->nowned; i++)
		free(gen->owned[i]);
	gen->expect = NULL, gen->nowned = 0;
}

void gen_source(struct gen_case *gen, uint64_t *state, unsigned width, size_t n, const void *words)
{
	const unsigned k = gen->args.nsrc++;
	uint8_t *at = gen_block(gen, n * word_nbytes(width), KN_PAD);

	if (words && n)
		memcpy(at, words, n * word_nbytes(width));
	else if (!words)
		gen_words(state, (enum gen_shape)gen_between(state, 0, GEN_SHAPES - 1), width, n, at);
	gen->args.src[k] = at, gen->args.src_n[k] = n, gen->args.src_width[k] = (uint8_t)width;
}

/* n packed words of w bits as the payload, behind `head_nbytes` bytes. */
static void packed_payload(struct gen_case *gen, uint64_t *state, unsigned width, size_t n, const void *head, size_t head_nbytes)
{
	const size_t nbytes = packed_nbytes(n, width);
	uint8_t *words = malloc(n * 8 + 8);

	gen->args.pay_nbytes = head_nbytes + nbytes;
	uint8_t *pay = gen_block(gen, gen->args.pay_nbytes, KN_PAD);
	if (head_nbytes)
		memcpy(pay, head, head_nbytes);
	if (width) {
		gen_words(state, (enum gen_shape)gen_between(state, 0, GEN_SHAPES - 1), width, n, words);
		model_pack(pay + head_nbytes, words, n, width);
	}
	gen->args.pay = pay;
	free(words);
}

static void pack_case(struct gen_case *gen, uint64_t *state)
{
	const unsigned w = gen->args.width, b = (unsigned)gen_between(state, 0, w);
	const uint64_t base = gen_random(state) & mask_bits(w);
	uint8_t head[9] = { (uint8_t)b };

	memcpy(head + 1, &base, (w + 7) / 8);
	packed_payload(gen, state, b, gen->args.n, head, 1 + (w + 7) / 8);
	if (gen_between(state, 0, 15) == 0) {
		gen->args.pay_nbytes -= 1;
		gen->verdict = GEN_DAMAGED;
	}
}

/* Two to sixteen fields; every third time one of the usual shapes. */
static void merge_case(struct gen_case *gen, uint64_t *state)
{
	static const uint8_t usual[][BC_MAX_ARGS] = {
		{ 8, 8 }, { 7, 9 }, { 8, 8, 8, 8 }, { 16, 8, 8 }, { 24, 8 }, { 23, 9 }, { 8, 8, 8, 8, 8, 8, 8, 8 }, { 16, 16 },
		{ 32, 32 }, { 4, 4 }, { 2, 6 }, { 8, 2, 6 }, { 1, 1, 1, 1, 1, 1, 1, 1 },
		{ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 16, 16, 16, 16 }, { 52, 12 },
	};
	uint8_t width[BC_MAX_ARGS] = { 0 };
	unsigned nargs = 0, total = 0;

	if (gen_between(state, 0, 2)) {
		memcpy(width, usual[gen_between(state, 0, ARRAY_LEN(usual) - 1)], sizeof(width));
	} else {
		const unsigned want = (unsigned)gen_between(state, 2, BC_MAX_ARGS);
		for (unsigned k = 0, left = 64; k < want && left; k++, left -= width[k - 1])
			width[k] = (uint8_t)gen_between(state, 1, k ? left : MIN(left - 1, 63u));
	}
	for (; nargs < BC_MAX_ARGS && width[nargs]; nargs++) {
		gen_source(gen, state, width[nargs], gen->args.n, NULL);
		total += width[nargs];
	}
	gen->args.width = (uint8_t)total;
}

/* False if n is no whole number of records of any random size. */
static bool weave_case(struct gen_case *gen, uint64_t *state)
{
	const unsigned nargs = (unsigned)gen_between(state, 2, 4);
	uint64_t run[4] = { 0 }, period = 0;

	for (unsigned k = 0; k < nargs; k++)
		period += run[k] = gen_between(state, 1, gen_between(state, 0, 2) ? 3 : 40);
	if (gen->args.n % period) { /* one record of n words */
		if (gen->args.n < nargs)
			return false;
		for (unsigned k = 0; k < nargs; k++)
			run[k] = k + 1 < nargs ? 1 : gen->args.n - (nargs - 1);
		period = gen->args.n;
		if (run[nargs - 1] > 65535)
			return false;
	}
	for (unsigned k = 0; k < nargs; k++) {
		gen->args.imm |= run[k] << (16 * k);
		gen_source(gen, state, gen->args.width, gen->args.n / period * run[k], NULL);
	}
	return true;
}

static void gate_case(struct gen_case *gen, uint64_t *state)
{
	struct kn_args *a = &gen->args;
	const unsigned kr = (unsigned)gen_between(state, 2, KN_MAX_ROWS);
	size_t zeros = 0;

	a->row_words = gen_between(state, 1, gen_between(state, 0, 1) ? 9 : 700);
	a->first = gen_between(state, 0, 3 * a->row_words);
	a->imm = gen_between(state, 1, mask_bits(kr));
	const size_t nrows = (a->first + a->n - 1) / a->row_words + 1;
	uint8_t *rows = gen_block(gen, nrows, 0);
	for (size_t r = 0; r < nrows; r++)
		rows[r] = (uint8_t)gen_between(state, 0, kr - 1);
	a->row_class = rows;
	for (size_t i = 0; i < a->n; i++)
		zeros += a->imm >> rows[(a->first + i) / a->row_words] & 1;
	gen_source(gen, state, a->width, a->n - zeros, NULL);
}

/* Some dictionaries are as long as the words allow; some indices are one too large. */
static void lookup_case(struct gen_case *gen, uint64_t *state)
{
	static const uint16_t usual[] = { 1, 2, 15, 16, 32, 33, 64, 65, 128, 200, 255, 256, 257, 1000 };
	struct kn_args *a = &gen->args;
	const unsigned bits = gen_width(state, 1, BC_MAX_INDEX_BITS);

	a->imm = gen_between(state, 0, 2) ? 0 : gen_between(state, 1, a->n + 20);
	const uint64_t nblocks = lookup_nblocks(a->imm, a->n), most = a->n / nblocks;
	const uint64_t entries = gen_between(state, 0, 3) ? MIN(usual[gen_between(state, 0, ARRAY_LEN(usual) - 1)], most) : gen_between(state, 1, most);
	uint64_t *index = malloc(a->n * sizeof(*index));
	for (size_t i = 0; i < a->n; i++)
		index[i] = gen_between(state, 0, MIN(entries - 1, mask_bits(bits)));
	if (entries <= mask_bits(bits) && gen_between(state, 0, 7) == 0) {
		index[gen_between(state, 0, a->n - 1)] = entries;
		gen->verdict = GEN_DAMAGED;
	}
	for (size_t i = 0; i < a->n; i++)
		set_word(index, word_nbytes(bits), i, index[i]);
	gen_source(gen, state, a->width, entries * nblocks, NULL);
	gen_source(gen, state, bits, a->n, index);
	free(index);
}

/* Masks of every density; some have a word too few or too many. */
static void scatter_case(struct gen_case *gen, uint64_t *state)
{
	struct kn_args *a = &gen->args;
	const uint64_t density = gen_between(state, 0, 8);
	uint8_t *mask = malloc(a->n);
	size_t ones = 0;

	a->imm = gen_between(state, 0, 1) ? 0 : gen_random(state) & mask_bits(a->width);
	for (size_t i = 0; i < a->n; i++)
		ones += mask[i] = gen_between(state, 0, 7) < density;
	if (gen_between(state, 0, 7) == 0) {
		ones = ones < a->n && (ones == 0 || gen_between(state, 0, 1)) ? ones + 1 : ones - 1;
		gen->verdict = GEN_DAMAGED;
	}
	gen_source(gen, state, a->width, ones, NULL);
	gen_source(gen, state, 1, a->n, mask);
	free(mask);
}

/* The last word's fields that no word is made of are 0, or once in a while not. */
static void cut_case(struct gen_case *gen, uint64_t *state)
{
	static const uint8_t usual[][2] = { { 1, 4 }, { 1, 8 }, { 1, 64 }, { 2, 8 }, { 4, 8 }, { 8, 16 }, { 8, 24 }, { 3, 9 }, { 16, 32 }, { 32, 64 }, { 20, 60 } };
	struct kn_args *a = &gen->args;
	const uint8_t *shape = usual[gen_between(state, 0, ARRAY_LEN(usual) - 1)];
	const bool any = gen_between(state, 0, 2) == 0;
	const unsigned w = any ? (unsigned)gen_between(state, 1, 32) : shape[0], fields = any ? (unsigned)gen_between(state, 2, 64 / w) : shape[1] / shape[0];
	const size_t nwords = ceil_div(a->n, fields), left = a->n % fields, size = word_nbytes(w * fields);

	a->width = (uint8_t)w;
	uint8_t *words = malloc(nwords * size);
	gen_words(state, (enum gen_shape)gen_between(state, 0, GEN_SHAPES - 1), w * fields, nwords, words);
	if (left) {
		const bool wrong = gen_between(state, 0, 7) == 0;
		const uint64_t last = get_word(words, (unsigned)size, nwords - 1) & mask_bits((unsigned)left * w);
		set_word(words, (unsigned)size, nwords - 1, last | (uint64_t)wrong << left * w);
		gen->verdict = wrong ? GEN_DAMAGED : GEN_GOOD;
	}
	gen_source(gen, state, w * fields, nwords, words);
	free(words);
}

/* An operand of one to three fields for words of a width that it says too, whose blocks are small enough for n words; false if none was found. */
static bool deal_operand(uint64_t *state, size_t n, unsigned *width, unsigned *from, uint64_t *imm, struct deal *deal)
{
	static const struct { uint8_t width, from; uint64_t imm; } usual[] = {
		{ 8, 4, 32 | DEAL_FIELD(0, 4, 0, 16) }, { 8, 5, 32 | DEAL_FIELD(0, 1, 4, 1) | DEAL_FIELD(1, 4, 0, 16) },
		{ 8, 5, 256 | DEAL_FIELD(0, 1, 4, 32) | DEAL_FIELD(1, 4, 0, 32) }, { 8, 6, 256 | DEAL_FIELD(0, 4, 0, 64) | DEAL_FIELD(1, 2, 4, 32) },
		{ 8, 3, 256 | DEAL_FIELD(0, 1, 2, 32) | DEAL_FIELD(1, 2, 0, 32) }, { 8, 2, 256 | DEAL_FIELD(0, 2, 0, 32) },
		{ 32, 4, 8 | DEAL_FIELD(0, 4, 0, 1) }, { 16, 4, 8 | DEAL_FIELD(0, 4, 0, 2) }, { 8, 1, 8 | DEAL_FIELD(0, 1, 0, 1) },
	};

	for (unsigned attempt = 0; attempt < 40; attempt++) {
		const uint64_t which = gen_between(state, 0, 2 * ARRAY_LEN(usual) - 1);
		if (which < ARRAY_LEN(usual)) {
			*width = usual[which].width, *from = usual[which].from, *imm = usual[which].imm;
		} else {
			unsigned block = 1, shift = 0;
			*width = 1u << gen_between(state, 0, 5), *imm = 0;
			for (unsigned k = 0; k < DEAL_FIELDS && (k == 0 || gen_between(state, 0, 2)); k++) {
				const unsigned bits = MIN(1u << gen_between(state, 0, 3), *width), stride = (unsigned)gen_between(state, 1, gen_between(state, 0, 1) ? 3 : 40);
				*imm |= DEAL_FIELD(k, bits, shift, stride), shift += bits;
				block *= *width / bits * stride;
			}
			*imm |= block & 0xffff, *from = shift;
		}
		if (deal_parse(*imm, *width, *from, deal) && n % deal->nwords == 0)
			return true;
	}
	return false;
}

static bool deal_case(struct gen_case *gen, uint64_t *state)
{
	struct deal deal;
	unsigned width, from;

	if (!deal_operand(state, gen->args.n, &width, &from, &gen->args.imm, &deal))
		return false;
	gen->args.width = (uint8_t)width;
	gen_source(gen, state, from, gen->args.n / deal.nwords * deal.block, NULL);
	return true;
}

static bool fill_case(const struct bc_opinfo *op, struct gen_case *gen, uint64_t *state)
{
	struct kn_args *a = &gen->args;
	uint64_t first;

	switch (op->code) {
	case OP_LIT_RAW: packed_payload(gen, state, a->width, a->n, NULL, 0); break;
	case OP_LIT_PACK: pack_case(gen, state); break;
	case OP_CONST: a->imm = gen_random(state) & mask_bits(a->width); break;
	case OP_CONCAT:
		a->imm = gen_between(state, 0, a->n);
		gen_source(gen, state, a->width, a->imm, NULL);
		gen_source(gen, state, a->width, a->n - a->imm, NULL);
		break;
	case OP_REPEAT:
		for (a->imm = gen_between(state, 1, a->n); a->n % a->imm;)
			a->imm--;
		gen_source(gen, state, a->width, a->n / a->imm, NULL);
		break;
	case OP_MAP_XOR: case OP_MAP_ADD:
		a->imm = gen_random(state) & mask_bits(a->width);
		gen_source(gen, state, a->width, a->n, NULL);
		break;
	case OP_MAP_ROT:
		a->imm = gen_between(state, 0, a->width - 1u);
		gen_source(gen, state, a->width, a->n, NULL);
		break;
	case OP_MAP_ZIGZAG: case OP_MAP_GRAY: gen_source(gen, state, a->width, a->n, NULL); break;
	case OP_SCAN_XOR: case OP_SCAN_ADD:
		first = gen_random(state) & mask_bits(a->width);
		a->pay_nbytes = (a->width + 7u) / 8;
		a->pay = gen_copy(gen, &first, a->pay_nbytes);
		gen_source(gen, state, a->width, a->n - 1, NULL);
		break;
	case OP_MERGE: merge_case(gen, state); break;
	case OP_WEAVE: return weave_case(gen, state);
	case OP_GATE: gate_case(gen, state); break;
	case OP_LOOKUP: lookup_case(gen, state); break;
	case OP_SCATTER: scatter_case(gen, state); break;
	case OP_CUT: cut_case(gen, state); break;
	case OP_DEAL: return deal_case(gen, state);
	default: return false;
	}
	return true;
}

bool gen_case(const struct bc_opinfo *op, unsigned seed, size_t n, struct gen_case *out)
{
	uint64_t state = (uint64_t)op->code << 56 ^ (uint64_t)seed << 32 ^ n;

	gen_begin(out, op, seed, n);
	out->args.width = (uint8_t)gen_width(&state, 1, op->max_width);
	if (!fill_case(op, out, &state))
		return false;
	const size_t used = strlen(out->what);
	snprintf(out->what + used, sizeof(out->what) - used, ", width %u, imm 0x%llx, %u arguments", out->args.width,
		 (unsigned long long)out->args.imm, out->args.nsrc);
	if (out->verdict == GEN_GOOD) {
		out->expect = malloc(n * word_nbytes(out->args.width));
		model_op(&out->args, out->expect);
	}
	return true;
}

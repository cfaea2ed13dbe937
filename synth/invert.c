/* invert.c: every op backward. The loops are written once per word size by macro, plain enough to be vectorised.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/invert.h"

#include "common/by_size.h"
#include "common/deal.h"
#include "kernels/kernel.h"
#include "synth/dictionary.h"

bool words_constant(struct words target)
{
	size_t size = word_nbytes(target.width);
	return target.n == 1 || !memcmp(target.ptr, (const uint8_t *)target.ptr + size, (target.n - 1) * size);
}

void words_range(struct words target, uint64_t *low, uint64_t *high)
{
	BY_SIZE(T, word_nbytes(target.width), {
		const T *v = target.ptr;
		T lo = v[0], hi = v[0];
		for (size_t i = 1; i < target.n; i++) {
			lo = v[i] < lo ? v[i] : lo;
			hi = v[i] > hi ? v[i] : hi;
		}
		*low = lo, *high = hi;
	})
}

static void invert_map(enum bc_op op, uint64_t imm, struct words in, void *out)
{
	const unsigned w = in.width;
	const uint64_t mask = mask_bits(w);

	BY_SIZE(T, word_nbytes(w), {
		const T *v = in.ptr;
		T *o = out;
		const T c = (T)imm, m = (T)mask;
		switch (op) {
		case OP_MAP_XOR: for (size_t i = 0; i < in.n; i++) o[i] = v[i] ^ c; break;
		case OP_MAP_ADD: for (size_t i = 0; i < in.n; i++) o[i] = (T)(v[i] - c) & m; break;
		case OP_MAP_GRAY: for (size_t i = 0; i < in.n; i++) o[i] = v[i] ^ (T)(v[i] >> 1); break;
		default: /* zigzag: twice the number, all bits inverted if its sign bit is set */
			for (size_t i = 0; i < in.n; i++)
				o[i] = (T)((T)(v[i] << 1) ^ (T)(0 - (T)(v[i] >> (w - 1)))) & m;
		}
	})
}

static void invert_scan(enum bc_op op, struct words in, struct words_out *arg)
{
	arg->n = in.n - 1;
	BY_SIZE(T, word_nbytes(in.width), {
		const T *v = in.ptr;
		T *o = arg->ptr;
		const T m = (T)mask_bits(in.width);
		if (op == OP_SCAN_XOR)
			for (size_t i = 0; i + 1 < in.n; i++)
				o[i] = v[i + 1] ^ v[i];
		else
			for (size_t i = 0; i + 1 < in.n; i++)
				o[i] = (T)(v[i + 1] - v[i]) & m;
	})
}

bool invert_merge(struct words in, unsigned rotate, struct words_out *arg, unsigned nargs)
{
	const struct kn_set *set;
	unsigned shift = 0;

	if (kn_choose(&set, NULL) != BRV_OK)
		return false;
	for (unsigned k = 0; k < nargs; shift += arg[k++].width) {
		arg[k].n = in.n;
		if (arg[k].ptr)
			set->take_field(in.ptr, in.n, in.width, rotate, shift, arg[k].width, arg[k].ptr);
	}
	return true;
}

static bool invert_rotation(struct words in, unsigned rotate, void *out)
{
	return invert_merge(in, rotate, &(struct words_out){ out, in.n, in.width }, 1);
}

static bool invert_weave(uint64_t imm, struct words in, struct words_out *arg, unsigned nargs)
{
	const size_t size = word_nbytes(in.width);
	size_t run[4], period = 0, at = 0;

	for (unsigned k = 0; k < nargs; k++)
		period += run[k] = imm >> (16 * k) & 0xffff;
	if (!period || in.n % period)
		return false;
	for (unsigned k = 0; k < nargs; k++) {
		uint8_t *out = arg[k].ptr;
		const uint8_t *from = (const uint8_t *)in.ptr + at * size;
		for (size_t i = 0; i < in.n / period; i++, from += period * size, out += run[k] * size)
			memcpy(out, from, run[k] * size);
		arg[k].n = in.n / period * run[k];
		at += run[k];
	}
	return true;
}

static bool invert_concat(uint64_t imm, struct words in, struct words_out *arg)
{
	const size_t size = word_nbytes(in.width);

	if (imm > in.n)
		return false;
	memcpy(arg[0].ptr, in.ptr, imm * size);
	memcpy(arg[1].ptr, (const uint8_t *)in.ptr + imm * size, (in.n - imm) * size);
	arg[0].n = imm, arg[1].n = in.n - imm;
	return true;
}

static bool invert_repeat(uint64_t imm, struct words in, struct words_out *arg)
{
	const size_t size = word_nbytes(in.width);

	if (imm == 0 || in.n % imm)
		return false;
	arg->n = in.n / imm;
	if (memcmp(in.ptr, (const uint8_t *)in.ptr + arg->n * size, (in.n - arg->n) * size))
		return false;
	memcpy(arg->ptr, in.ptr, arg->n * size);
	return true;
}

static bool invert_gate(uint64_t imm, struct words in, const struct row_view *rows, struct words_out *arg)
{
	const size_t size = word_nbytes(in.width);
	uint8_t *out = arg->ptr;

	for (size_t i = 0; i < in.n;) {
		size_t row = (rows->first + i) / rows->row_words;
		size_t n = MIN((row + 1) * rows->row_words - rows->first - i, in.n - i);
		const uint8_t *from = (const uint8_t *)in.ptr + i * size;
		if (imm >> rows->row_class[row] & 1) {
			if (from[0] || memcmp(from, from + 1, n * size - 1))
				return false;
		} else {
			memcpy(out, from, n * size);
			out += n * size;
		}
		i += n;
	}
	arg->n = (size_t)(out - (uint8_t *)arg->ptr) / size;
	return true;
}

/* The words that are not imm, and where they are. */
static void invert_scatter(uint64_t imm, struct words in, struct words_out *arg)
{
	uint8_t *mask = arg[1].ptr;
	size_t taken = 0;

	BY_SIZE(T, word_nbytes(in.width), {
		const T *v = in.ptr;
		T *o = arg[0].ptr;
		const T rest = (T)imm;
		for (size_t i = 0; i < in.n; i++)
			mask[i] = v[i] != rest;
		for (size_t i = 0; i < in.n; taken += mask[i++])
			o[taken] = v[i]; /* the last ones may be written beside what counts, never behind the n-th */
	})
	arg[0].n = taken, arg[1].n = in.n;
}

static void invert_cut(struct words in, struct words_out *arg)
{
	const unsigned fields = arg->width / in.width, from = word_nbytes(in.width), size = word_nbytes(arg->width);

	arg->n = ceil_div(in.n, fields);
	for (size_t i = 0; i < arg->n; i++) {
		uint64_t v = 0;
		for (unsigned k = 0; k < fields && i * fields + k < in.n; k++)
			v |= get_word(in.ptr, from, i * fields + k) << k * in.width;
		set_word(arg->ptr, size, i, v);
	}
}

/* The part of a block's words that one field is. */
static void gather_field(const struct deal *deal, const struct deal_field *f, const void *from, unsigned from_size, void *to, unsigned to_size)
{
	const size_t stride = f->stride, group = stride * f->each;

	BY_SIZE(F, from_size, {
		const F *in = from;
		BY_SIZE(T, to_size, {
			T *out = to;
			const F keep = (F)mask_bits(f->bits);
			for (size_t g = 0; g < deal->block; g += group, in += stride, out += group)
				for (unsigned t = 0; t < f->each; t++) {
					const unsigned right = t * f->bits, left = f->shift;
					for (size_t s = 0; s < stride; s++)
						out[t * stride + s] |= (T)((T)((F)(in[s] >> right) & keep) << left);
				}
		})
	})
}

static bool invert_deal(uint64_t imm, struct words in, struct words_out *arg)
{
	const unsigned from_size = word_nbytes(in.width), to_size = word_nbytes(arg->width);
	const uint8_t *from = in.ptr;
	uint8_t *to = arg->ptr;
	struct deal deal;

	if (!deal_parse(imm, in.width, arg->width, &deal) || in.n % deal.nwords)
		return false;
	arg->n = in.n / deal.nwords * deal.block;
	memset(to, 0, arg->n * to_size);
	for (size_t b = 0; b < in.n / deal.nwords; b++, to += deal.block * to_size)
		for (unsigned k = 0; k < deal.nfields; k++) {
			gather_field(&deal, &deal.field[k], from, from_size, to, to_size);
			from += deal.block / deal.field[k].each * from_size;
		}
	return true;
}

bool invert(enum bc_op op, uint64_t imm, struct words target, const struct row_view *rows, struct words_out *arg, unsigned nargs)
{
	switch (op) {
	case OP_MAP_XOR: case OP_MAP_ADD: case OP_MAP_ZIGZAG: case OP_MAP_GRAY:
		invert_map(op, imm, target, arg->ptr);
		arg->n = target.n;
		return true;
	case OP_MAP_ROT: arg->n = target.n; return invert_rotation(target, (unsigned)imm, arg->ptr);
	case OP_SCAN_XOR: case OP_SCAN_ADD: invert_scan(op, target, arg); return true;
	case OP_MERGE: return invert_merge(target, 0, arg, nargs);
	case OP_WEAVE: return invert_weave(imm, target, arg, nargs);
	case OP_CONCAT: return invert_concat(imm, target, arg);
	case OP_REPEAT: return invert_repeat(imm, target, arg);
	case OP_GATE: return invert_gate(imm, target, rows, arg);
	case OP_LOOKUP: return invert_lookup(imm, target, arg);
	case OP_SCATTER: invert_scatter(imm, target, arg); return true;
	case OP_CUT: invert_cut(target, arg); return true;
	case OP_DEAL: return invert_deal(imm, target, arg);
	case OP_CONST: return words_constant(target) && get_word(target.ptr, word_nbytes(target.width), 0) == imm;
	default: return true; /* literals can say anything */
	}
}

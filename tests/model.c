/* model.c: the ops without tables, straight from docs/FORMAT.md, 5.2 and 5.3 (model.h). SPDX-License-Identifier: Apache-2.0 */
#include "tests/model.h"

#include <stdlib.h>

void model_pack(uint8_t *out, const void *words, size_t n, unsigned width)
{
	memset(out, 0, packed_nbytes(n, width));
	for (size_t i = 0; i < n; i++)
		for (unsigned b = 0; b < width; b++) {
			const size_t at = i * width + b;
			out[at / 8] |= (uint8_t)((get_word(words, word_nbytes(width), i) >> b & 1) << at % 8);
		}
}

uint64_t model_unpack(const uint8_t *packed, size_t i, unsigned width)
{
	uint64_t v = 0;

	for (unsigned b = 0; b < width; b++) {
		const size_t at = i * width + b;
		v |= (uint64_t)(packed[at / 8] >> at % 8 & 1) << b;
	}
	return v;
}

static uint64_t src(const struct kn_args *a, unsigned k, size_t i) { return get_word(a->src[k], word_nbytes(a->src_width[k]), i); }

/* Bit b of the result is bit b + imm of the word, around its end. */
static uint64_t rotated(uint64_t v, unsigned width, unsigned by)
{
	uint64_t out = 0;

	for (unsigned b = 0; b < width; b++)
		out |= (v >> (b + by) % width & 1) << b;
	return out;
}

static uint64_t gray(uint64_t v, unsigned width)
{
	uint64_t out = 0;

	for (unsigned shift = 0; shift < width; shift++)
		out ^= v >> shift;
	return out;
}

/* The 0, -1, 1, -2, 2, ... that 0, 1, 2, 3, 4, ... stand for. */
static uint64_t zigzag(uint64_t v) { return v % 2 ? 0 - v / 2 - 1 : v / 2; }

static uint64_t map(const struct kn_args *a, uint64_t v)
{
	switch (a->op) {
	case OP_MAP_XOR: return v ^ a->imm;
	case OP_MAP_ADD: return v + a->imm;
	case OP_MAP_ZIGZAG: return zigzag(v);
	case OP_MAP_GRAY: return gray(v, a->width);
	default: return rotated(v, a->width, (unsigned)a->imm);
	}
}

static uint64_t pack(const struct kn_args *a, size_t i)
{
	const unsigned base_nbytes = (a->width + 7u) / 8;

	return model_unpack(a->pay + 1, 0, 8 * base_nbytes) + model_unpack(a->pay + 1 + base_nbytes, i, a->pay[0]);
}

static uint64_t merge(const struct kn_args *a, size_t i)
{
	unsigned shift = 0;
	uint64_t v = 0;

	for (unsigned k = 0; k < a->nsrc; shift += a->src_width[k++])
		v |= src(a, k, i) << shift;
	return v;
}

static uint64_t weave(const struct kn_args *a, size_t i)
{
	size_t period = 0, at;

	for (unsigned k = 0; k < a->nsrc; k++)
		period += a->imm >> (16 * k) & 0xffff;
	at = i % period;
	for (unsigned k = 0;; k++) {
		const size_t run = a->imm >> (16 * k) & 0xffff;
		if (at < run)
			return src(a, k, i / period * run + at);
		at -= run;
	}
}

/* The word of a field that word i of the result is, bit by bit of the words it is made of. */
static uint64_t deal(const struct kn_args *a, size_t i)
{
	const unsigned block = a->imm & 0xffff;
	size_t record = 0, at;
	uint64_t v = 0;

	for (uint64_t fields = a->imm >> 16; fields; fields >>= 16)
		record += block * (fields & 15) / a->width;
	at = i % record;
	for (uint64_t fields = a->imm >> 16;; fields >>= 16) {
		const unsigned bits = fields & 15, first = fields >> 4 & 15, stride = (unsigned)(fields >> 8 & 255) + 1, k = a->width / bits;
		if (at >= block / k) {
			at -= block / k;
			continue;
		}
		for (unsigned t = 0; t < k; t++)
			for (unsigned b = 0; b < bits; b++)
				v |= (src(a, 0, i / record * block + at / stride * stride * k + at % stride + (size_t)t * stride) >> (first + b) & 1)
				     << (t * bits + b);
		return v;
	}
}

void model_op(const struct kn_args *a, void *out)
{
	const size_t fields = a->op == OP_CUT ? a->src_width[0] / a->width : 1;
	size_t taken = 0;
	uint64_t v = 0;

	for (size_t i = 0; i < a->n; i++) {
		switch (a->op) {
		case OP_LIT_RAW: v = model_unpack(a->pay, i, a->width); break;
		case OP_LIT_PACK: v = pack(a, i); break;
		case OP_CONST: v = a->imm; break;
		case OP_CONCAT: v = i < a->imm ? src(a, 0, i) : src(a, 1, i - a->imm); break;
		case OP_REPEAT: v = src(a, 0, i % a->src_n[0]); break;
		case OP_SCAN_XOR: v = i == 0 ? model_unpack(a->pay, 0, a->width) : v ^ src(a, 0, i - 1); break;
		case OP_SCAN_ADD: v = i == 0 ? model_unpack(a->pay, 0, a->width) : v + src(a, 0, i - 1); break;
		case OP_MERGE: v = merge(a, i); break;
		case OP_WEAVE: v = weave(a, i); break;
		case OP_GATE: v = a->imm >> a->row_class[(a->first + i) / a->row_words] & 1 ? 0 : src(a, 0, taken++); break;
		case OP_LOOKUP: v = src(a, 0, (a->imm ? i / a->imm : 0) * (a->src_n[0] / (a->imm ? ceil_div(a->n, a->imm) : 1)) + src(a, 1, i)); break;
		case OP_SCATTER: v = src(a, 1, i) ? src(a, 0, taken++) : a->imm; break;
		case OP_DEAL: v = deal(a, i); break;
		case OP_CUT: v = src(a, 0, i / fields) >> i % fields * a->width; break;
		default: v = map(a, src(a, 0, i)); break;
		}
		v &= mask_bits(a->width);
		set_word(out, word_nbytes(a->width), i, v);
	}
}

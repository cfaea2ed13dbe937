/* op_deal.c: deal: words in fields that lie apart, block by block (docs/FORMAT.md, 5.2).
 *
 * Bytes made of bytes go eight at a time: the fields of eight neighbours are cut out and shifted by one instruction each, since no bit crosses
 * into a neighbour. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"
#include "common/deal.h"

/* One field of nblocks blocks: from and to are where the first has it, with `step` bytes from a block of the result to the next. bits, each and stride are
 * constants to the compiler where this is inlined with some. */
static inline __attribute__((always_inline)) void field_strided(const struct deal *deal, const uint8_t *from, uint8_t *to, size_t nblocks, unsigned shift,
								unsigned bits, unsigned stride)
{
	const uint64_t keep = 0x0101010101010101 * mask_bits(bits);
	const unsigned each = 8 / bits;
	const size_t group = (size_t)stride * each, block = deal->block, skip = deal->nwords - block / each;

	for (size_t b = 0; b < nblocks; b++, to += skip)
		for (size_t g = 0; g < block; g += group, from += group, to += stride)
			for (size_t s = 0; s < stride; s += 8) {
				uint64_t v = 0;
				for (unsigned t = 0; t < each; t++)
					v |= (load_u64(from + t * stride + s) >> shift & keep) << t * bits;
				store_u64(to + s, v);
			}
}

/* Bits of eight neighbours make a byte: each is moved to the highest byte by a term of the product, to its place there. */
static void field_bits(const struct deal *deal, const uint8_t *from, uint8_t *to, size_t nblocks, unsigned shift)
{
	for (size_t b = 0; b < nblocks; b++, to += deal->nwords - deal->block / 8)
		for (size_t i = 0; i < deal->block; i += 8, from += 8)
			*to++ = (uint8_t)((load_u64(from) >> shift & 0x0101010101010101) * 0x0102040810204080 >> 56);
}

static void deal_field(const struct deal *deal, const struct deal_field *f, const uint8_t *from, uint8_t *to, size_t nblocks)
{
	switch (f->bits << 8 | f->stride) {
	case 1 << 8 | 1: field_bits(deal, from, to, nblocks, f->shift); break;
	case 1 << 8 | 32: field_strided(deal, from, to, nblocks, f->shift, 1, 32); break;
	case 2 << 8 | 32: field_strided(deal, from, to, nblocks, f->shift, 2, 32); break;
	case 4 << 8 | 16: field_strided(deal, from, to, nblocks, f->shift, 4, 16); break;
	case 4 << 8 | 32: field_strided(deal, from, to, nblocks, f->shift, 4, 32); break;
	case 4 << 8 | 64: field_strided(deal, from, to, nblocks, f->shift, 4, 64); break;
	default: field_strided(deal, from, to, nblocks, f->shift, f->bits, f->stride);
	}
}

static void deal_bytes(const struct deal *deal, const uint8_t *from, uint8_t *to, size_t nblocks)
{
	for (unsigned k = 0; k < deal->nfields; to += deal->block / deal->field[k++].each)
		deal_field(deal, &deal->field[k], from, to, nblocks);
}

/* Whether the loops above know all fields. */
static bool is_plain(const struct deal *deal)
{
	for (unsigned k = 0; k < deal->nfields; k++)
		if (deal->field[k].stride % 8 && (deal->field[k].stride > 1 || deal->field[k].bits > 1))
			return false;
	return true;
}

bool KN(deal)(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width), from_width = args->src_width[0];
	struct deal deal;

	if (!deal_parse(args->imm, args->width, from_width, &deal))
		return false;
	const size_t nblocks = args->n / deal.nwords;
	if (args->width == 8 && from_width <= 8 && is_plain(&deal)) {
		deal_bytes(&deal, args->src[0], args->dst, nblocks);
		return true;
	}
	BY_SIZE(F, word_nbytes(from_width), {
		const F *from = args->src[0];
		BY_SIZE(T, size, {
			T *to = args->dst;
			for (size_t b = 0; b < nblocks; b++, from += deal.block)
				for (unsigned k = 0; k < deal.nfields; k++) {
					const struct deal_field *f = &deal.field[k];
					const F *group = from;
					for (size_t j = 0; j < deal.block / f->each; j += f->stride, group += (size_t)f->stride * f->each)
						for (size_t s = 0; s < f->stride; s++) {
							T v = 0;
							for (unsigned t = 0; t < f->each; t++)
								v |= (T)((T)(group[s + t * f->stride] >> f->shift & mask_bits(f->bits)) << t * f->bits);
							*to++ = v;
						}
				}
		})
	})
	return true;
}

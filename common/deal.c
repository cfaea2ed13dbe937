/* deal.c: the operand of a deal, checked. SPDX-License-Identifier: Apache-2.0 */
#include "common/deal.h"

bool deal_parse(uint64_t imm, unsigned width, unsigned from, struct deal *out)
{
	unsigned seen = 0;

	*out = (struct deal){ .block = imm & 0xffff };
	if (!out->block || !width || !from || from > DEAL_MAX_BITS)
		return false;
	for (unsigned k = 0; k < DEAL_FIELDS; k++) {
		const unsigned said = imm >> (16 + 16 * k) & 0xffff;
		struct deal_field *f = &out->field[k];
		*f = (struct deal_field){ .bits = said & 15, .shift = said >> 4 & 15, .stride = (said >> 8) + 1 };
		if (said == 0)
			return (imm >> 16) >> (16 * k) == 0 && seen == mask_bits(from);
		const unsigned mask = (unsigned)mask_bits(f->bits ? f->bits : 1) << f->shift;
		if (!f->bits || f->shift + f->bits > from || width % f->bits || seen & mask)
			return false;
		f->each = width / f->bits;
		const unsigned group = f->stride * f->each;
		if (!f->each || !group || out->block % group)
			return false;
		seen |= mask, out->nfields++, out->nwords += out->block / f->each;
	}
	return seen == mask_bits(from);
}

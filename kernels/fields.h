/* fields.h: raw fields joined to coded ones, in any shape and any width: what fused kernels fall back on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_FIELDS_H
#define KERNELS_FIELDS_H

#include "kernels/kernel.h"

/* Field i of packed words whose stored bytes end before the last BC_CARRY_NBYTES, which are in carry (if the field is carried). Never reads
 * beyond stored + stored_nbytes + KN_PAD. */
static inline uint64_t kn_field_word(const struct kn_field *f, const uint8_t *carry, size_t i)
{
	const size_t bit = i * f->width, byte = bit / 8;
	const unsigned shift = bit % 8;
	unsigned __int128 v = 0;

	if (!f->carried || byte + 16 <= f->pay_nbytes) {
		memcpy(&v, f->pay + byte, 16);
		return (uint64_t)(v >> shift) & mask_bits(f->width);
	}
	for (unsigned k = 0; k < (shift + f->width + 7) / 8; k++) {
		const size_t at = byte + k;
		const uint8_t b = at < f->pay_nbytes ? f->pay[at] : carry[at - f->pay_nbytes];
		v |= (unsigned __int128)b << (8 * k);
	}
	return (uint64_t)(v >> shift) & mask_bits(f->width);
}

/* Puts the raw fields below the coded fields that stand, shifted into place, in dst[from..to), and rotates. */
static inline void kn_merge_fields(const struct kn_args *a, const uint8_t *carry, size_t from, size_t to)
{
	const unsigned size = word_nbytes(a->width);
	unsigned shift = 0;

	for (unsigned f = 0; f < a->nfield; f++) {
		for (size_t i = from; i < to; i++)
			set_word(a->dst, size, i, get_word(a->dst, size, i) | kn_field_word(&a->field[f], carry, i) << shift);
		shift += a->field[f].width;
	}
	for (size_t i = from; i < to && a->rotate; i++) {
		const uint64_t v = get_word(a->dst, size, i);
		set_word(a->dst, size, i, (v >> a->rotate | v << (a->width - a->rotate)) & mask_bits(a->width));
	}
}

#endif

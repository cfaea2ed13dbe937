/* fields.h: raw fields joined to coded ones in plain loops, in any shape and any width, a block of words at a time.
 *
 * A block begins at a multiple of 128 words, so that every field of it begins at a whole byte. The last words wait for the end: some of
 * their raw bits are in the carry. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_FIELDS_H
#define KERNELS_FIELDS_H

#include "common/by_size.h"
#include "kernels/kernel.h"
#include "kernels/unpack.h"

enum {
	FIELD_MAX = 3,
	FIELD_BLOCK = 1024,             /* words of a block: all that is touched stays in the first-level cache */
	/* Words that may wait: as many as BC_CARRY_MAX_NBYTES of 1-bit fields have, and a part of the group of 128 where they begin. */
	FIELD_WAITING = BC_CARRY_MAX_NBYTES * 8 + KN_GROUP,
	FIELD_WAITING_NBYTES = BC_CARRY_MAX_NBYTES + KN_GROUP * 8 + KN_PAD,
};

/* The first word of those that wait, a multiple of 128; n rounded down if there is no carry among the fields. */
static inline size_t fields_waiting(const struct kn_args *a)
{
	size_t first = a->n / KN_GROUP * KN_GROUP;

	for (unsigned f = 0; f < a->nfield; f++)
		if (a->field[f].carried)
			first = MIN(first, a->field[f].pay_nbytes * 8 / a->field[f].width / KN_GROUP * KN_GROUP);
	return first;
}

#define FIELDS_INLINE static inline __attribute__((always_inline))

/* n packed words as an array of word_nbytes(width) each: where they stand, or unpacked into `space`. */
FIELDS_INLINE const void *fields_array(const uint8_t *packed, size_t n, const unsigned width, void *space)
{
	if (width == 8 * word_nbytes(width))
		return packed;
	kn_unpack(space, packed, n, width, width, 0);
	return space;
}

/* The frequent shapes in one pass: FIELDS(width, rotation, width of the coded field, widths of the raw ones). */
#define FIELDS_SHAPES(FIELDS)                                                                                        	FIELDS(16, 1, 8, 8, 0) FIELDS(16, 1, 9, 7, 0) FIELDS(16, 0, 11, 5, 0)          /* BF16 */                    	FIELDS(16, 0, 6, 8, 2) FIELDS(16, 0, 7, 8, 1) FIELDS(16, 0, 8, 8, 0)           /* FP16 */                    	FIELDS(32, 1, 8, 24, 0) FIELDS(32, 1, 9, 23, 0) FIELDS(32, 1, 8, 16, 8)        /* FP32 */                    	FIELDS(8, 0, 6, 2, 0) FIELDS(8, 0, 5, 3, 0)                                    /* FP8 */

FIELDS_INLINE void fields_shape(void *dst, const void *coded, const unsigned coded_size, unsigned base, const uint8_t *const raw[FIELD_MAX], size_t n,
				const unsigned width, const unsigned rotate, const unsigned coded_width, const unsigned w0, const unsigned w1)
{
	uint32_t space[2][FIELD_BLOCK];
	const void *first = fields_array(raw[0], n, w0, space[0]), *second = w1 ? fields_array(raw[1], n, w1, space[1]) : NULL;

	BY_SIZE(T, word_nbytes(width), {
		T *restrict out = dst;
		BY_SIZE(C, coded_size, {
			const C *c = coded;
			BY_SIZE(A, word_nbytes(w0), {
				const A *a = first;
				for (size_t i = 0; i < n; i++) {
					uint32_t v = (((uint32_t)c[i] + base) & (uint32_t)mask_bits(coded_width)) << (w0 + w1) | a[i];
					if (w1)
						v |= (uint32_t)((const uint8_t *)second)[i] << w0;
					out[i] = (T)(rotate ? v >> rotate | v << (width - rotate) : v);
				}
			})
		})
	})
}

/* Any shape, in one pass a field. */
static inline void fields_any(const struct kn_args *a, void *dst, const void *coded, unsigned coded_size, unsigned base,
			      const uint8_t *const raw[FIELD_MAX], size_t n)
{
	const unsigned size = word_nbytes(a->width), below = a->width - a->coded_width;
	const uint64_t keep = mask_bits(a->width);
	uint64_t space[FIELD_WAITING];

	BY_SIZE(T, size, {
		T *restrict out = dst;
		for (size_t i = 0; i < n; i++) {
			const unsigned c = coded_size == 1 ? ((const uint8_t *)coded)[i] : ((const uint16_t *)coded)[i];
			out[i] = (T)((uint64_t)((c + base) & (unsigned)mask_bits(a->coded_width)) << below);
		}
		for (unsigned f = 0, shift = 0; f < a->nfield; shift += a->field[f++].width) {
			const unsigned width = a->field[f].width;
			const void *field = fields_array(raw[f], n, width, space);
			BY_SIZE(A, word_nbytes(width), {
				const A *in = field;
				for (size_t i = 0; i < n; i++)
					out[i] |= (T)((uint64_t)in[i] << shift);
			})
		}
		for (size_t i = 0; i < n && a->rotate; i++)
			out[i] = (T)(((uint64_t)out[i] >> a->rotate | (uint64_t)out[i] << (a->width - a->rotate)) & keep);
	})
}

/* n <= FIELD_BLOCK words to dst: coded fields (bytes or u16, by coded_size; base to be added) above raw fields that begin at raw[]. */
FIELDS_INLINE void fields_join(const struct kn_args *a, void *dst, const void *coded, const unsigned coded_size, unsigned base,
			       const uint8_t *const raw[FIELD_MAX], size_t n)
{
#define FIELDS(w, rot, c, w0, w1)                                                                                        \
	if ((coded_size == 1 || (c) > 8) && a->width == (w) && a->rotate == (rot) && a->coded_width == (c) && a->nfield == 1 + ((w1) > 0) &&              \
	    a->field[0].width == (w0) && (!(w1) || a->field[1].width == (w1))) {                                          \
		fields_shape(dst, coded, coded_size, base, raw, n, w, rot, c, w0, w1);                                    \
		return;                                                                                                   \
	}
	FIELDS_SHAPES(FIELDS)
#undef FIELDS
	fields_any(a, dst, coded, coded_size, base, raw, n);
}

/* n words from word i on, a multiple of 128, whose raw bits are all in the payload. */
FIELDS_INLINE void fields_join_stored(const struct kn_args *a, void *dst, size_t i, const void *coded, const unsigned coded_size, unsigned base, size_t n)
{
	const uint8_t *raw[FIELD_MAX] = { NULL };

	for (unsigned f = 0; f < a->nfield; f++)
		raw[f] = a->field[f].pay + i * a->field[f].width / 8;
	fields_join(a, dst, coded, coded_size, base, raw, n);
}

/* The words from `first` on, when the carry is known. */
static inline void fields_join_waiting(const struct kn_args *a, size_t first, const void *coded, unsigned coded_size, unsigned base,
				       const uint8_t *carry)
{
	uint8_t bytes[FIELD_WAITING_NBYTES];
	const uint8_t *raw[FIELD_MAX] = { NULL };

	for (unsigned f = 0; f < a->nfield; f++) {
		const struct kn_field *field = &a->field[f];
		const size_t from = first * field->width / 8;
		raw[f] = field->pay + from;
		if (!field->carried)
			continue;
		memcpy(bytes, raw[f], field->pay_nbytes - from);
		memcpy(bytes + (field->pay_nbytes - from), carry, packed_nbytes(a->n, field->width) - field->pay_nbytes);
		raw[f] = bytes;
	}
	fields_any(a, (uint8_t *)a->dst + first * word_nbytes(a->width), coded, coded_size, base, raw, a->n - first);
}

#endif

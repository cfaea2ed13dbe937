/* unpack.h: packed words of b bits (docs/FORMAT.md, 1) as words of any size, a base added: lit.raw and lit.pack.
 *
 * Reads whole 8 or 16 bytes: up to 15 bytes beyond the packed words, which the pad covers. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_UNPACK_H
#define KERNELS_UNPACK_H

#include "common/by_size.h"
#include "kernels/kernel.h"

/* Eight words take b whole bytes, so that every group of eight begins at a byte: the shifts are the same in all groups. */
#define KN_UNPACK_EIGHT(T, b, lane_type)                                                              \
	for (; i + 8 <= n; i += 8, p += (b))                                                          \
		for (unsigned k = 0; k < 8; k++) {                                                    \
			lane_type v;                                                                  \
			memcpy(&v, p + k * (b) / 8, sizeof(v));                                       \
			out[i + k] = (T)(((T)(v >> (k * (b) % 8)) & (T)mask) + (T)base) & (T)keep;    \
		}

static inline void kn_unpack(void *dst, const uint8_t *p, size_t n, unsigned width, unsigned b, uint64_t base)
{
	const uint64_t mask = mask_bits(b), keep = mask_bits(width);
	size_t i = 0;

	BY_SIZE(T, word_nbytes(width), {
		T *out = dst;
		if (b == 0) {
			for (; i < n; i++)
				out[i] = (T)base;
		} else if (b <= 9) {
			KN_UNPACK_EIGHT(T, b, uint16_t)
		} else if (b <= 25) {
			KN_UNPACK_EIGHT(T, b, uint32_t)
		} else if (b <= 57) {
			KN_UNPACK_EIGHT(T, b, uint64_t)
		} else {
			KN_UNPACK_EIGHT(T, b, unsigned __int128)
		}
		for (unsigned k = 0; i < n; i++, k++) {
			unsigned __int128 v;
			memcpy(&v, p + (size_t)k * b / 8, sizeof(v));
			out[i] = (T)(((T)(uint64_t)(v >> (k * b % 8)) & (T)mask) + (T)base) & (T)keep;
		}
	})
}

#endif

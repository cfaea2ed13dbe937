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

/* Word i, i < 8, of a group that begins at p. */
static inline uint64_t kn_unpack_one(const uint8_t *p, unsigned i, unsigned b)
{
	unsigned __int128 v;
	memcpy(&v, p + i * b / 8, sizeof(v));
	return (uint64_t)(v >> i * b % 8) & mask_bits(b);
}

/* Bytes from 1 to 8 bits, eight in a u64: halves of them are moved apart three times. Then the base is added to each byte by itself. */
static inline void kn_unpack_bytes(uint8_t *out, const uint8_t *p, size_t n, unsigned width, unsigned b, uint64_t base)
{
	const uint64_t ones = 0x0101010101010101, tops = 0x80 * ones, keep = mask_bits(width) * ones, add = (base & 0xff) * ones;
	const uint64_t four = mask_bits(4 * b), two = mask_bits(2 * b) * 0x100000001, one = mask_bits(b) * 0x1000100010001;
	size_t i = 0;

	for (; i + 8 <= n; i += 8, p += b) {
		uint64_t v = load_u64(p);
		v = (v & four) | (v >> 4 * b & four) << 32;
		v = (v & two) | (v >> 2 * b & two) << 16;
		v = (v & one) | (v >> b & one) << 8;
		v = ((v & ~tops) + (add & ~tops)) ^ ((v ^ add) & tops);
		store_u64(out + i, v & keep);
	}
	for (unsigned k = 0; i < n; i++, k++)
		out[i] = (uint8_t)((kn_unpack_one(p, k, b) + base) & keep);
}

/* n words of `width` bits: base + the next b packed bits, 0 <= b <= width. */
static inline void kn_unpack(void *dst, const uint8_t *p, size_t n, unsigned width, unsigned b, uint64_t base)
{
	const uint64_t mask = mask_bits(b), keep = mask_bits(width);
	size_t i = 0;

	if (width <= 8 && b) {
		kn_unpack_bytes(dst, p, n, width, b, base);
		return;
	}
	BY_SIZE(T, word_nbytes(width), {
		T *out = dst;
		if (b == 0) {
			for (; i < n; i++)
				out[i] = (T)base;
		} else if (b <= 25) {
			KN_UNPACK_EIGHT(T, b, uint32_t)
		} else if (b <= 57) {
			KN_UNPACK_EIGHT(T, b, uint64_t)
		} else {
			KN_UNPACK_EIGHT(T, b, unsigned __int128)
		}
		for (unsigned k = 0; i < n; i++, k++)
			out[i] = (T)(kn_unpack_one(p, k, b) + base) & (T)keep;
	})
}

#endif

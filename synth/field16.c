/* field16.c: in GNU C vectors, since compilers widen 16-bit words to 32 bits for a shift that is not constant.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/field16.h"

typedef uint16_t halves __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(16)));

static inline __attribute__((always_inline)) halves take(const uint8_t *words, const bool rotated, unsigned rotate, unsigned shift, uint16_t mask)
{
	halves v;

	memcpy(&v, words, sizeof(v));
	if (rotated)
		v = v << (uint16_t)rotate | v >> (uint16_t)(16 - rotate);
	return v >> (uint16_t)shift & mask;
}

static inline __attribute__((always_inline)) size_t vectors(const uint8_t *words, size_t n, const bool rotated, unsigned rotate, unsigned shift, unsigned bits,
							    uint8_t *out)
{
	const uint16_t mask = (uint16_t)mask_bits(bits);
	size_t i = 0;

	if (bits > 8) {
		for (; i + 8 <= n; i += 8) {
			const halves v = take(words + 2 * i, rotated, rotate, shift, mask);
			memcpy(out + 2 * i, &v, sizeof(v));
		}
		return i;
	}
	for (; i + 16 <= n; i += 16) {
		const halves a = take(words + 2 * i, rotated, rotate, shift, mask), b = take(words + 2 * i + 16, rotated, rotate, shift, mask);
		const bytes v = __builtin_shufflevector((bytes)a, (bytes)b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
		memcpy(out + i, &v, sizeof(v));
	}
	return i;
}

void field16(const void *words, size_t n, unsigned rotate, unsigned shift, unsigned bits, void *out)
{
	size_t i = rotate ? vectors(words, n, true, rotate, shift, bits, out) : vectors(words, n, false, 0, shift, bits, out);

	for (; i < n; i++) {
		const unsigned word = load_u16((const uint8_t *)words + 2 * i);
		const uint16_t v = (uint16_t)(((word << rotate | word >> (16 - rotate)) & 0xffff) >> shift & mask_bits(bits));
		if (bits <= 8)
			((uint8_t *)out)[i] = (uint8_t)v;
		else
			store_u16((uint8_t *)out + 2 * i, v);
	}
}

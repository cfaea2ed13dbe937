/* op_map.c: map: a bijection of each word (docs/FORMAT.md, 5.2). SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

/* Rotation of bytes, eight in a u64: vectors have no shifts of bytes, so that the loop over words would widen them. */
static void rotate_bytes(uint8_t *out, const uint8_t *v, size_t n, unsigned w, unsigned by)
{
	const uint64_t ones = 0x0101010101010101, low = (mask_bits(w) >> by) * ones, high = (mask_bits(w) & ~(mask_bits(w) >> by)) * ones;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		const uint64_t x = load_u64(v + i);
		store_u64(out + i, (x >> by & low) | (x << (w - by) & high));
	}
	for (; i < n; i++)
		out[i] = (uint8_t)((v[i] >> by & low) | ((unsigned)v[i] << (w - by) & (high & 255)));
}

/* The sum of all shifts by doubling, 1, 2, 4, ... Steps beyond the size of a word add nothing. */
#define GRAY_STEP(T, g, s) g = (T)(g ^ (8 * sizeof(T) > (s) ? (T)(g >> ((s) % (8 * sizeof(T)))) : 0))

bool KN(map)(const struct kn_args *args)
{
	const unsigned w = args->width;
	const size_t n = args->n;

	if (args->op == OP_MAP_ROT && args->imm && w <= 8) {
		rotate_bytes(args->dst, args->src[0], n, w, (unsigned)args->imm);
		return true;
	}
	BY_SIZE(T, word_nbytes(w), {
		const T *v = args->src[0];
		T *out = args->dst;
		const T c = (T)args->imm, keep = (T)mask_bits(w);
		switch (args->op) {
		case OP_MAP_XOR:
			for (size_t i = 0; i < n; i++)
				out[i] = v[i] ^ c;
			break;
		case OP_MAP_ADD:
			for (size_t i = 0; i < n; i++)
				out[i] = (T)(v[i] + c) & keep;
			break;
		case OP_MAP_ZIGZAG:
			for (size_t i = 0; i < n; i++)
				out[i] = (T)((T)(v[i] >> 1) ^ (T)(0 - (T)(v[i] & 1))) & keep;
			break;
		case OP_MAP_GRAY:
			for (size_t i = 0; i < n; i++) {
				T g = v[i];
				GRAY_STEP(T, g, 1);
				GRAY_STEP(T, g, 2);
				GRAY_STEP(T, g, 4);
				GRAY_STEP(T, g, 8);
				GRAY_STEP(T, g, 16);
				GRAY_STEP(T, g, 32);
				out[i] = g;
			}
			break;
		default:
			if (c == 0)
				memcpy(out, v, n * sizeof(T));
			else
				for (size_t i = 0; i < n; i++)
					out[i] = (T)((T)(v[i] >> c) | (T)(v[i] << (w - c))) & keep;
		}
	})
	return true;
}

/* op_map.c: map: a bijection of each word (docs/FORMAT.md, 5.2). SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

bool KN(map)(const struct kn_args *args)
{
	const unsigned w = args->width;

	BY_SIZE(T, word_nbytes(w), {
		const T *v = args->src[0];
		T *out = args->dst;
		const T c = (T)args->imm, keep = (T)mask_bits(w);
		const size_t n = args->n;
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
			/* the sum of all shifts by doubling: 1, 2, 4, ... */
			for (size_t i = 0; i < n; i++) {
				T g = v[i];
				for (unsigned s = 1; s < 8 * sizeof(T); s *= 2)
					g ^= (T)(g >> s);
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

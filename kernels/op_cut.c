/* op_cut.c: cut: words cut into fields of fewer bits, lowest first (docs/FORMAT.md, 5.2).
 *
 * Words that fill their bytes are, side by side, nothing but packed fields. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/unpack.h"

/* Nibbles into bits, two nibbles a step: what masks of groups of four are made of. */
static void cut_nibbles(uint8_t *out, const uint8_t *src, size_t nwords)
{
	const uint64_t spread = 0x0000204081, ones = 0x01010101;
	size_t i = 0;

	for (; i + 2 <= nwords; i += 2)
		store_u64(out + 4 * i, (src[i] * spread & ones) | (src[i + 1] * spread & ones) << 32);
	if (i < nwords)
		store_u32(out + 4 * i, (uint32_t)(src[i] * spread & ones));
}

bool KN(cut)(const struct kn_args *args)
{
	const unsigned w = args->width, from_width = args->src_width[0], from_size = word_nbytes(from_width), fields = from_width / w;
	const size_t whole = args->n / fields, left = args->n % fields;

	if (left && get_word(args->src[0], from_size, whole) >> left * w)
		return false;
	if (from_width == 8 * from_size) {
		kn_unpack(args->dst, args->src[0], args->n, w, w, 0);
		return true;
	}
	size_t done = 0;
	if (w == 1 && from_width == 4) {
		cut_nibbles(args->dst, args->src[0], whole);
		done = whole;
	}
	BY_SIZE(F, from_size, {
		const F *from = args->src[0];
		BY_SIZE(T, word_nbytes(w), {
			T *to = args->dst;
			const T keep = (T)mask_bits(w);
			for (size_t i = done; i < whole; i++)
				for (unsigned k = 0; k < fields; k++)
					to[i * fields + k] = (T)(from[i] >> k * w) & keep;
			for (unsigned k = 0; k < left; k++)
				to[whole * fields + k] = (T)(from[whole] >> k * w) & keep;
		})
	})
	return true;
}

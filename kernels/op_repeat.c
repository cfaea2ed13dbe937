/* op_repeat.c: repeat: the argument imm times. The output doubles itself, so that short arguments are not copied one by one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

bool KN(repeat)(const struct kn_args *args)
{
	const size_t once = args->src_n[0] * word_nbytes(args->width), all = args->n * word_nbytes(args->width);
	uint8_t *out = args->dst;

	memcpy(out, args->src[0], once);
	for (size_t have = once; have < all;) {
		const size_t more = MIN(have, all - have);
		memcpy(out + have, out, more);
		have += more;
	}
	return true;
}

/* op_concat.c: concat: arguments one after the other. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

bool KN(concat)(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width);
	uint8_t *out = args->dst;

	for (unsigned k = 0; k < args->nsrc; k++) {
		if (args->src_n[k])
			memcpy(out, args->src[k], args->src_n[k] * size);
		out += args->src_n[k] * size;
	}
	return true;
}

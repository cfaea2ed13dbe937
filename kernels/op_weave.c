/* op_weave.c: weave: records made of runs of the arguments in turn. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

bool KN(weave)(const struct kn_args *args)
{
	const size_t size = word_nbytes(args->width);
	size_t run[4], period = 0;
	const uint8_t *from[4];
	uint8_t *out = args->dst;

	for (unsigned k = 0; k < args->nsrc; k++) {
		run[k] = (args->imm >> (16 * k) & 0xffff) * size;
		from[k] = args->src[k];
		period += run[k];
	}
	for (size_t i = 0; i < args->n * size / period; i++)
		for (unsigned k = 0; k < args->nsrc; k++) {
			memcpy(out, from[k], run[k]);
			out += run[k], from[k] += run[k];
		}
	return true;
}

/* op_const.c: const: one word, many times. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

bool KN(const)(const struct kn_args *args)
{
	const size_t n = args->n;

	BY_SIZE(T, word_nbytes(args->width), {
		T *out = args->dst;
		const T v = (T)args->imm;
		for (size_t i = 0; i < n; i++)
			out[i] = v;
	})
	return true;
}

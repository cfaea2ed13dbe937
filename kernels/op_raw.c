/* op_raw.c: lit.raw: packed words as they are. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/unpack.h"

bool KN(raw)(const struct kn_args *args)
{
	const unsigned w = args->width, size = word_nbytes(w);

	if (w == 8 * size)
		memcpy(args->dst, args->pay, args->n * size);
	else
		kn_unpack(args->dst, args->pay, args->n, w, w, 0);
	return true;
}

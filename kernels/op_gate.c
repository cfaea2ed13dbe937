/* op_gate.c: gate: zeros in the rows of some classes, the argument's words in the others. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

bool KN(gate)(const struct kn_args *args)
{
	const size_t size = word_nbytes(args->width);
	const uint8_t *from = args->src[0], *const end = from + args->src_n[0] * size;
	uint8_t *out = args->dst;

	for (size_t i = 0; i < args->n;) {
		const size_t row = (args->first + i) / args->row_words;
		const size_t n = MIN((row + 1) * args->row_words - args->first - i, args->n - i), nbytes = n * size;
		if (args->imm >> args->row_class[row] & 1) {
			memset(out, 0, nbytes);
		} else if ((size_t)(end - from) < nbytes) {
			return false;
		} else {
			memcpy(out, from, nbytes);
			from += nbytes;
		}
		out += nbytes, i += n;
	}
	return from == end;
}

/* op_scan.c: scan: running XOR and running sum (docs/FORMAT.md, 5.2). SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

/* One scan of n words after `first`; out[0] is the first word after it. */
#define PLAIN(T, combine)                                                                                 \
	for (size_t i = 0; i < n; i++) {                                                                  \
		first = (T)(first combine v[i]) & keep;                                                   \
		out[i] = first;                                                                           \
	}

bool KN(scan)(const struct kn_args *args)
{
	uint64_t word = 0;

	memcpy(&word, args->pay, (args->width + 7u) / 8);
	if (word > mask_bits(args->width))
		return false;
	BY_SIZE(T, word_nbytes(args->width), {
		const T *v = args->src[0];
		T *out = (T *)args->dst + 1;
		const T keep = (T)mask_bits(args->width);
		const size_t n = args->n - 1;
		T first = (T)word;
		((T *)args->dst)[0] = first;
		if (args->op == OP_SCAN_XOR) {
			PLAIN(T, ^)
		} else {
			PLAIN(T, +)
		}
	})
	return true;
}

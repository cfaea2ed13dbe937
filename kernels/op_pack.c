/* op_pack.c: lit.pack: a base and packed words of fewer bits (docs/FORMAT.md, 5.3). SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/unpack.h"

bool KN(pack)(const struct kn_args *args)
{
	const size_t head = 1 + (args->width + 7u) / 8;
	uint64_t base = 0;

	if (args->pay_nbytes < head || args->pay[0] > args->width || args->pay_nbytes != head + packed_nbytes(args->n, args->pay[0]))
		return false;
	memcpy(&base, args->pay + 1, head - 1);
	/* The bits that fill up the last byte are 0. */
	const unsigned used = args->n * args->pay[0] % 8;
	if (base > mask_bits(args->width) || (used && args->pay[args->pay_nbytes - 1] >> used))
		return false;
	kn_unpack(args->dst, args->pay + head, args->n, args->width, args->pay[0], base);
	return true;
}

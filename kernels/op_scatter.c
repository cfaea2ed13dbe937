/* op_scatter.c: scatter: the next word where the mask is 1, one and the same elsewhere (docs/FORMAT.md, 5.2).
 *
 * The mask's population is compared with the words there are before any is read. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

#if defined(KN_SET_avx512)
#include "kernels/x86/scatter_avx512.h"
#define SCATTER_GROUPS scatter512_groups
#elif defined(KN_SET_avx2) && !defined(KN_SIMDE) /* pdep */
#include "kernels/x86/scatter_avx2.h"
#define SCATTER_GROUPS scatter256_groups
#endif

/* How many of the n bytes are 1; more than n if one is neither 0 nor 1. In pieces that bytes can count. */
static size_t population(const uint8_t *mask, size_t n)
{
	enum { LANES = 64, ROUNDS = 255 };
	size_t sum = 0, i = 0;
	uint8_t any = 0;

	while (i + LANES <= n) {
		uint8_t lane[LANES] = { 0 };
		const size_t rounds = MIN((n - i) / LANES, (size_t)ROUNDS);
		for (size_t r = 0; r < rounds; r++, i += LANES)
			for (unsigned k = 0; k < LANES; k++)
				lane[k] = (uint8_t)(lane[k] + mask[i + k]);
		for (unsigned k = 0; k < LANES; k++)
			sum += lane[k];
	}
	for (; i < n; i++)
		sum += mask[i];
	for (i = 0; i < n; i++)
		any |= mask[i];
	return any <= 1 ? sum : n + 1;
}

bool KN(scatter)(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width);
	const uint8_t *mask = args->src[1];
	size_t i = 0, taken = 0;

	if (population(mask, args->n) != args->src_n[0])
		return false;
#ifdef SCATTER_GROUPS
	i = SCATTER_GROUPS(args->dst, size, args->src[0], mask, args->n, args->imm, &taken);
#endif
	BY_SIZE(T, size, {
		const T *from = args->src[0];
		const T rest = (T)args->imm;
		T *to = args->dst;
		/* Branchless: behind the last word one of the pad is read, and not taken. */
		for (; i < args->n; taken += mask[i++]) {
			const T word = from[taken], choose = (T)(0 - (T)mask[i]);
			to[i] = (T)((word & choose) | (rest & (T)~choose));
		}
	})
	return true;
}

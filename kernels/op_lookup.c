/* op_lookup.c: lookup: words of a dictionary by index (docs/FORMAT.md, 5.2).
 *
 * Indices are payload that nobody has checked: their maximum is found a piece at a time, just before they are used, while they are in the
 * first-level cache. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

#ifdef KN_SET_avx512
#include "kernels/x86/lookup_avx512.h"
#endif

enum { PIECE = 2048 };

/* Whether all n indices, of `size` bytes each, are below the limit. */
static bool all_below(const void *index, unsigned size, size_t n, size_t limit)
{
	size_t most = 0;

	BY_SIZE(I, size, {
		const I *at = index;
		I greatest = 0;
		for (size_t i = 0; i < n; i++)
			greatest = at[i] > greatest ? at[i] : greatest;
		most = greatest;
	})
	return most < limit;
}

static void look_up(void *out, unsigned size, const void *dictionary, const void *index, unsigned index_size, size_t n)
{
	BY_SIZE(T, size, {
		const T *from = dictionary;
		T *to = out;
		BY_SIZE(I, index_size, {
			const I *at = index;
			for (size_t i = 0; i < n; i++)
				to[i] = from[at[i]];
		})
	})
}

bool KN(lookup)(const struct kn_args *args)
{
	const size_t block = lookup_block(args->imm, args->n), entries = args->src_n[0] / lookup_nblocks(args->imm, args->n);
	const unsigned size = word_nbytes(args->width), index_size = word_nbytes(args->src_width[1]);
	const uint8_t *dictionary = args->src[0], *index = args->src[1];
	uint8_t *out = args->dst;

	for (size_t from = 0; from < args->n; from += block, dictionary += entries * size) {
		const size_t end = MIN(from + block, args->n);
		for (size_t at = from, n; at < end; at += n) {
			n = MIN(end - at, (size_t)PIECE);
			if (!all_below(index + at * index_size, index_size, n, entries))
				return false;
#ifdef KN_SET_avx512
			if (lookup512_piece(out + at * size, size, dictionary, entries, index + at * index_size, index_size, n))
				continue;
#endif
			look_up(out + at * size, size, dictionary, index + at * index_size, index_size, n);
		}
	}
	return true;
}

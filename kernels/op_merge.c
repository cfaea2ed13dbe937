/* op_merge.c: merge: bit fields side by side (docs/FORMAT.md, 5.2). Two fields at a time in plain loops that compilers vectorise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

enum { BLOCK = 4096 };  /* words between the passes over one block: it stays in the first-level cache */

/* dst = a | b << shift, in one pass: the first two fields. */
static void first_two(const struct kn_args *args, size_t at, size_t n)
{
	const unsigned shift = args->src_width[0];

	BY_SIZE(T, word_nbytes(args->width), {
		T *out = (T *)args->dst + at;
		BY_SIZE(A, word_nbytes(args->src_width[0]), {
			const A *a = (const A *)args->src[0] + at;
			BY_SIZE(B, word_nbytes(args->src_width[1]), {
				const B *b = (const B *)args->src[1] + at;
				for (size_t i = 0; i < n; i++)
					out[i] = (T)((T)a[i] | (T)((T)b[i] << shift));
			})
		})
	})
}

static void add_field(const struct kn_args *args, unsigned k, unsigned shift, size_t at, size_t n)
{
	BY_SIZE(T, word_nbytes(args->width), {
		T *out = (T *)args->dst + at;
		BY_SIZE(A, word_nbytes(args->src_width[k]), {
			const A *a = (const A *)args->src[k] + at;
			for (size_t i = 0; i < n; i++)
				out[i] |= (T)((T)a[i] << shift);
		})
	})
}

bool KN(merge)(const struct kn_args *args)
{
	for (size_t at = 0; at < args->n; at += BLOCK) {
		const size_t n = MIN(args->n - at, (size_t)BLOCK);
		unsigned shift = (unsigned)args->src_width[0] + args->src_width[1];
		first_two(args, at, n);
		for (unsigned k = 2; k < args->nsrc; shift += args->src_width[k], k++)
			add_field(args, k, shift, at, n);
	}
	return true;
}

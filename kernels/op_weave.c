/* op_weave.c: weave: records made of runs of the arguments in turn.
 *
 * Runs are short (a scale and its block of weights), and a call of memcpy for each would cost more than the copy: while there is room behind
 * it, a run of up to 32 bytes is copied as 32, and what follows it overwrites the excess. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

enum { WILD_NBYTES = 32 };
static_assert(WILD_NBYTES <= (int)KN_PAD, "sources may be read that far beyond their end");

/* Records of a few words each: word by word, one argument after the other. */
static void weave_words(const struct kn_args *args, const size_t *run, size_t period)
{
	const size_t records = args->n / period;

	BY_SIZE(T, word_nbytes(args->width), {
		T *out = args->dst;
		for (unsigned k = 0; k < args->nsrc; out += run[k++])
			for (size_t j = 0; j < run[k]; j++) {
				const T *from = (const T *)args->src[k] + j;
				const size_t step = run[k];
				for (size_t r = 0; r < records; r++)
					out[r * period + j] = from[r * step];
			}
	})
}

static void weave_runs(const struct kn_args *args, const size_t *run, size_t period)
{
	const size_t size = word_nbytes(args->width), records = args->n / period;
	uint8_t *out = args->dst, *const end = out + args->n * size;
	const uint8_t *from[4] = { args->src[0], args->src[1], args->src[2], args->src[3] };

	for (size_t r = 0; r < records; r++)
		for (unsigned k = 0; k < args->nsrc; k++) {
			const size_t nbytes = run[k] * size;
			if (nbytes <= WILD_NBYTES && (size_t)(end - out) >= WILD_NBYTES)
				memcpy(out, from[k], WILD_NBYTES);
			else
				memcpy(out, from[k], nbytes);
			out += nbytes, from[k] += nbytes;
		}
}

bool KN(weave)(const struct kn_args *args)
{
	size_t run[4], period = 0;

	for (unsigned k = 0; k < args->nsrc; k++)
		period += run[k] = args->imm >> (16 * k) & 0xffff;
	if (period * word_nbytes(args->width) <= 8)
		weave_words(args, run, period);
	else
		weave_runs(args, run, period);
	return true;
}

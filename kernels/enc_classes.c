/* enc_classes.c: what lines of words would cost in each class: the inner loop of finding row and column classes (synth/classes.c).
 *
 * Costs of 16 symbols in a class fit a vector of bytes, and a shuffle looks them up; it gives 0 for the other half of the symbols, whose index is made too
 * large. Two rows are added as bytes (a cost is at most 127), then widened
 * to 16 bits, of which 512 rows fill what there is. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

enum { ROWS = 512 };    /* before sums of 16 bits could overflow */

#if defined(KN_SET_avx512) || defined(KN_SET_avx2)
#include "kernels/x86/classes_x86.h"
#define VECTORS
#elif defined(KN_SET_neon)
#include "kernels/arm/classes_neon.h"
#define VECTORS
#endif

#ifdef VECTORS
/* What the symbols cost by a table of 32, of which the second half is used only `both`. */
static inline __attribute__((always_inline)) vec look(const uint8_t *cost, vec first, vec second, const bool both)
{
	const vec v = LOOK(TABLE(cost), first);
	return both ? ADD8(v, LOOK(TABLE(cost + 16), second)) : v;
}

/* `classes` classes of one vector of lines, over at most ROWS rows. Lanes of 16 bytes are halved one by one: sums of the low halves lie in low. */
static inline __attribute__((always_inline)) void vector_costs(const struct kn_class_args *a, size_t at, size_t first, size_t n, unsigned from,
							       const unsigned classes, const bool both)
{
	enum { LANES = sizeof(vec) / 16 };
	const size_t step = (size_t)a->classes * 32;
	const uint8_t *symbol = a->symbol + first * a->stride + at, *cost = a->cost + 32 * from;
	vec low[4], high[4];
	uint16_t sum[2][sizeof(vec) / 2];
	size_t r = 0;

	for (unsigned k = 0; k < classes; k++)
		low[k] = high[k] = ZERO;
	for (; r + 2 <= n; r += 2, symbol += 2 * a->stride) {
		const vec v = LOAD(symbol), w = LOAD(symbol + a->stride);
		const uint8_t *p = cost + a->label[first + r] * step, *q = cost + a->label[first + r + 1] * step;
		const vec v1 = FIRST(v), v2 = SECOND(v), w1 = FIRST(w), w2 = SECOND(w);
		for (unsigned k = 0; k < classes; k++) {
			const vec two = ADD8(look(p + 32 * k, v1, v2, both), look(q + 32 * k, w1, w2, both));
			low[k] = ADD16(low[k], LOW(two)), high[k] = ADD16(high[k], HIGH(two));
		}
	}
	if (r < n)
		for (unsigned k = 0; k < classes; k++) {
			const vec v = LOAD(symbol), one = look(cost + a->label[first + r] * step + 32 * k, FIRST(v), SECOND(v), both);
			low[k] = ADD16(low[k], LOW(one)), high[k] = ADD16(high[k], HIGH(one));
		}
	for (unsigned k = 0; k < classes; k++) {
		uint32_t *out = a->sum + (from + k) * a->stride + at;
		STORE(sum[0], low[k]);
		STORE(sum[1], high[k]);
		for (unsigned lane = 0; lane < LANES; lane++)
			for (unsigned i = 0; i < 8; i++) {
				out[lane * 16 + i] += sum[0][lane * 8 + i];
				out[lane * 16 + 8 + i] += sum[1][lane * 8 + i];
			}
	}
}

static inline __attribute__((always_inline)) void all_costs(const struct kn_class_args *a, const bool both)
{
	for (size_t first = 0; first < a->n; first += ROWS)
		for (size_t at = 0; at < a->stride; at += sizeof(vec)) {
			const size_t n = MIN(a->n - first, (size_t)ROWS);
			unsigned k = 0;
			for (; k + 4 <= a->classes; k += 4)
				vector_costs(a, at, first, n, k, 4, both);
			for (; k < a->classes; k++)
				vector_costs(a, at, first, n, k, 1, both);
		}
}

void KN(class_costs)(const struct kn_class_args *a)
{
	if (a->both)
		all_costs(a, true);
	else
		all_costs(a, false);
}
#else
/* Four classes in the quarters of a word of 64 bits. */
static void four_costs(const struct kn_class_args *a, size_t first, size_t n, unsigned from)
{
	const unsigned classes = MIN(a->classes - from, 4u);

	for (size_t at = 0; at < a->stride; at += 64) {
		uint64_t sum[64] = { 0 };
		for (size_t r = first; r < first + n; r++) {
			const uint8_t *symbol = a->symbol + r * a->stride + at, *cost = a->cost + ((size_t)a->label[r] * a->classes + from) * 32;
			uint64_t table[32] = { 0 };
			for (unsigned k = 0; k < classes; k++)
				for (unsigned s = 0; s < 32; s++)
					table[s] |= (uint64_t)cost[32 * k + s] << (16 * k);
			for (unsigned i = 0; i < 64; i++)
				sum[i] += table[symbol[i] & 31];
		}
		for (unsigned k = 0; k < classes; k++)
			for (unsigned i = 0; i < 64; i++)
				a->sum[(from + k) * a->stride + at + i] += sum[i] >> (16 * k) & 0xffff;
	}
}

void KN(class_costs)(const struct kn_class_args *a)
{
	for (size_t first = 0; first < a->n; first += ROWS)
		for (unsigned k = 0; k < a->classes; k += 4)
			four_costs(a, first, MIN(a->n - first, (size_t)ROWS), k);
}
#endif

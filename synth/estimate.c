/* estimate.c: costs of tables that are not made (estimate.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "synth/log2i.h"
#include "synth/quantise.h"

enum { RANS_TOTAL = 256, ROUNDED_UP = 4, WIDE_TOTAL = 1 << WIDE_BITS, WIDE_TABLE_SYMBOLS = 256 };
enum { NIBBLE_BITS = 4, LITERAL_BITS = 8 };     /* of an escape, beside its code: and of one that the tail has not got */
static const double patch_bits = 56;            /* a patch, and the symbol it replaces */

/* The counts as totals of all pairs, which the caller frees. NULL: no memory. */
static uint64_t *make_totals(unsigned width, const uint32_t *counts)
{
	const size_t symbols = (size_t)1 << width;
	uint64_t *total = malloc(symbols * sizeof(*total));

	for (size_t s = 0; total && s < symbols; s++)
		total[s] = counts[s];
	return total;
}

bool estimator_make(struct estimator *out, unsigned width, const uint32_t *counts)
{
	const size_t symbols = (size_t)1 << width;
	uint64_t *total = make_totals(width, counts);

	*out = (struct estimator){ .width = width };
	if (!total)
		return false;
	out->rans = rans_alphabet(width, 6, total, &out->alphabet);
	for (size_t v = 0; out->rans && v < MIN(256u, symbols); v++)
		out->window[v] = total[(out->alphabet.base + v) & (symbols - 1)];
	free(total);
	return true;
}

bool estimator_widen(struct estimator *e, const uint32_t *counts)
{
	uint64_t *total = e->widened ? NULL : make_totals(e->width, counts);

	if (!total)
		return e->widened;
	e->nvalues = wide_values(e->width, WIDE_TABLE_SYMBOLS, total, e->value, &e->wide_escape);
	e->wide = e->nvalues >= 2, e->widened = true;
	for (unsigned i = 0; i < e->nvalues; i++)
		e->total[i] = total[e->value[i]], e->values_nbytes += i && e->value[i] - e->value[i - 1] > 128 ? 2 : 1;
	free(total);
	return true;
}

/* A frequency of `total` for a share of `scale` * count; at least 1. */
static inline unsigned rounded(double count, double scale)
{
	const unsigned f = (unsigned)(count * scale + .5);
	return f ? f : 1;
}

static uint64_t sum_of(const uint32_t *counts, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += counts[i];
	return sum;
}

double estimate_rans(const struct estimator *e, unsigned log2_nb, size_t pairs, const uint32_t *counts, double *body_nbytes)
{
	const struct rans_alphabet *a = &e->alphabet;
	const unsigned nb = 1u << log2_nb, symbols = 1u << e->width, n = a->nsymbols > nb ? nb - 1 : a->nsymbols;
	const bool escape = n < nb;
	uint64_t escaped[256];
	uint8_t tail[RANS_TAIL];
	double bits = 0;

	*body_nbytes = (double)(8 + nb + RANS_TAIL + pairs * nb);
	if (!e->rans)
		return HUGE_VAL;
	memcpy(escaped, e->window, sizeof(escaped));
	for (unsigned i = 0; i < n; i++)
		escaped[a->byte[i]] = 0;
	for (size_t p = 0; p < pairs; p++, counts += symbols) {
		/* The window of 256 values that bytes above the base can say; what lies beyond it is patched. */
		const size_t first = MIN(256u, symbols - a->base);
		const double window = (double)sum_of(counts + a->base, first) + (double)sum_of(counts, MIN(256u, symbols) - first);
		const double beyond = e->width > 8 ? (double)sum_of(counts, symbols) - window : 0, scale = RANS_TOTAL / window;
		double weight[RANS_MAX_SYMBOLS + 1], rest = window;
		unsigned freq[RANS_MAX_SYMBOLS + 1], m = 0, sum = 0;
		bits += beyond * patch_bits;
		if (window <= 0)
			continue;
		for (unsigned i = 0; i < n; i++) {
			const uint32_t c = counts[(a->base + a->byte[i]) & (symbols - 1)];
			if (c * scale < .5 && (escape || !c)) {
				escaped[a->byte[i]] += c;
				continue;
			}
			weight[m] = c, freq[m] = rounded(c, scale), sum += freq[m++], rest -= c;
		}
		if (escape) {
			bits += rest * (NIBBLE_BITS + LITERAL_BITS);
			weight[m] = MAX(rest, 1e-3), freq[m] = rounded(rest, scale), sum += freq[m++];
		}
		/* Many rare symbols, each rounded up, take from the others what only exact rounding tells. */
		if (sum > RANS_TOTAL + ROUNDED_UP)
			quantise(weight, m, RANS_TOTAL, freq), sum = RANS_TOTAL;
		for (unsigned i = 0; i < m; i++)
			bits -= weight[i] * log2i(freq[i]);
		bits += window * log2i(sum);
	}
	for (unsigned v = commonest_bytes(escaped, RANS_TAIL, tail); v-- > 0;)
		bits -= (double)escaped[tail[v]] * LITERAL_BITS;
	return bits;
}

/* Bits that say a frequency in a table: how many it has in 4 bits, or, in steps, by the difference to the one before (docs/FORMAT.md, 6.3 and 6.4). */
static unsigned frequency_bits(unsigned f, bool steps, unsigned *before)
{
	const unsigned k = f ? 32 - (unsigned)__builtin_clz(f) : 0, step = k > *before ? k - *before : *before - k;

	*before = k;
	return (steps ? step + 1 + (step > 0) : 4) + (k ? k - 1 : 0);
}

/* With n values that have a symbol, and an escape or none. */
static double estimate_values(unsigned width, const uint16_t *value, unsigned n, bool escape, bool steps, size_t pairs, const uint32_t *counts,
			      uint64_t *table_bits)
{
	const unsigned symbols = 1u << width;
	double bits = 0;

	*table_bits = 0;
	for (size_t p = 0; p < pairs; p++, counts += symbols) {
		const double all = (double)sum_of(counts, symbols), scale = all > 0 ? WIDE_TOTAL / all : 0;
		double rest = all;
		unsigned sum = 0, before = 0;
		for (unsigned i = 0; i < n; i++) {
			const uint32_t c = counts[value[i]];
			const unsigned f = c ? rounded(c, scale) : 0;
			*table_bits += frequency_bits(f, steps, &before);
			if (c)
				bits -= c * log2i(f), sum += f, rest -= c;
		}
		if (escape) {
			const unsigned f = rounded(rest, scale);
			bits += rest * ((width <= 8 ? 8 : 16) - log2i(f)), sum += f;
			*table_bits += frequency_bits(f, steps, &before);
		}
		if (all > 0)
			bits += all * log2i(sum);
	}
	return bits;
}

double estimate_wide(const struct estimator *e, size_t pairs, const uint32_t *counts, double *body_nbytes)
{
	uint64_t body_bits;

	if (!e->wide)
		return HUGE_VAL;
	const double bits = estimate_values(e->width, e->value, e->nvalues, e->wide_escape, false, pairs, counts, &body_bits);
	*body_nbytes = 5 + e->values_nbytes + (double)body_bits / 8;
	return bits;
}

static int by_count(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? 1 : x > y ? -1 : 0;
}

double estimate_alias(const struct estimator *e, unsigned log2_nb, size_t pairs, const uint32_t *counts, double *body_nbytes)
{
	const unsigned nb = 1u << log2_nb;
	const bool escape = e->wide_escape || e->nvalues > nb;
	uint64_t sorted[256], least = 0;        /* values with more than this have a symbol */
	uint16_t value[256];
	unsigned n = 0;
	uint64_t body_bits;

	if (!e->wide)
		return HUGE_VAL;
	if (e->nvalues >= nb && escape) {
		memcpy(sorted, e->total, e->nvalues * sizeof(sorted[0]));
		qsort(sorted, e->nvalues, sizeof(sorted[0]), by_count);
		least = sorted[nb - 1];
	}
	for (unsigned i = 0; i < e->nvalues; i++)
		if (e->total[i] > least)
			value[n++] = e->value[i];
	if (n < 2)
		return HUGE_VAL;
	const double bits = estimate_values(e->width, value, n, escape, true, pairs, counts, &body_bits);
	*body_nbytes = 6 + e->values_nbytes * n / e->nvalues + (double)body_bits / 8;
	return bits + (double)sum_of(counts, pairs << e->width) * alias_loss_bits;
}

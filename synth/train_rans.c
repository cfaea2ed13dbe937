/* train_rans.c: tables of lit.rans from counts: alphabet, 8-bit frequencies, alias buckets.
 *
 * The alphabet is shared by all class pairs: the symbols that are commonest in all. What it leaves out, and what is too
 * rare in a pair to be worth 1/256 there, goes through the escape. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "synth/log2i.h"
#include "synth/quantise.h"
#include "synth/train.h"

enum { MAX_SYMBOLS = RANS_MAX_SYMBOLS, TOTAL = 256, TAIL = RANS_TAIL };
/* A nibble, and now and then a literal; where the tail is full of symbols about as common as the last that have an index, nearly
 * always. */
static const double escape_bits = 5, rare_escape_bits = 12;

/* Bits per occurrence of frequency f of 256, f > 0. */
static inline double bits_of(unsigned f) { return 8 - log2i(f); }

/* Frequencies of one class pair: nsymbols of the alphabet, then the escape. `outside`: occurrences that the alphabet has no index for. */
static void pair_frequencies(const struct rans_alphabet *a, const double *count, double outside, unsigned *freq)
{
	unsigned order[MAX_SYMBOLS], used = 0, best_k = 0, best[MAX_SYMBOLS + 1];
	double least = HUGE_VAL;

	memset(freq, 0, (a->nsymbols + 1) * sizeof(*freq));
	for (unsigned i = 0; i < a->nsymbols; i++) {
		unsigned at = used;
		if (count[i] <= 0)
			continue;
		for (; at && count[order[at - 1]] < count[i]; at--)
			order[at] = order[at - 1];
		order[at] = i, used++;
	}
	if (used == 0 && a->nsymbols >= 1)
		order[used++] = 0; /* an unused pair: anything valid */
	/* The k commonest get a frequency; the rest joins the escape where there is one. Worth a try: to drop those that would be rounded
	 * up to 1/256 from less than half or less than all of it. */
	double all = outside;
	unsigned half = 0, whole = 0;
	for (unsigned i = 0; i < used; i++)
		all += count[order[i]];
	for (unsigned i = 0; i < used; i++)
		half += count[order[i]] * TOTAL >= .5 * all, whole += count[order[i]] * TOTAL >= all;
	const unsigned tries[3] = { used, a->escape ? MAX(half, 1) : used, a->escape ? MAX(whole, 1) : used };
	for (unsigned t = 0; t < 3; t++) {
		const unsigned k = tries[t];
		if (t && k == tries[t - 1])
			continue;
		double p[MAX_SYMBOLS + 1], rest = outside;
		unsigned m = k, f[MAX_SYMBOLS + 1];
		for (unsigned i = 0; i < used; i++)
			if (i < k)
				p[i] = count[order[i]] > 0 ? count[order[i]] : 1;
			else
				rest += count[order[i]];
		if (a->escape)
			p[m++] = rest > 1e-3 ? rest : 1e-3;
		if (m < 2)
			p[m++] = 1e-3; /* the neighbour takes one position */
		quantise(p, m, TOTAL, f);
		double cost = a->escape ? rest * (a->crowded ? rare_escape_bits : escape_bits) : 0;
		for (unsigned i = 0; i < m; i++)
			cost += p[i] * bits_of(f[i]);
		if (cost < least) {
			least = cost, best_k = k;
			memcpy(best, f, sizeof(f));
			if (m == k)
				best[k] = 0;
		}
	}
	for (unsigned i = 0; i < best_k; i++)
		freq[order[i]] = best[i];
	if (a->escape)
		freq[a->nsymbols] = best[best_k];
	else if (best[best_k] && best_k == used && used < 2)
		freq[order[0] ? 0 : 1] = best[best_k];
}

/* Vose's method on integers: bucket b keeps threshold positions for symbol b and gives the rest to an alias. */
static void put_buckets(unsigned nb, const unsigned *freq, uint8_t *bucket)
{
	const unsigned c = TOTAL / nb, log2_c = (unsigned)__builtin_ctz(c);
	unsigned rest[MAX_SYMBOLS], small[MAX_SYMBOLS], large[MAX_SYMBOLS], nsmall = 0, nlarge = 0;

	for (unsigned b = 0; b < nb; b++) {
		rest[b] = freq[b];
		if (rest[b] < c)
			small[nsmall++] = b;
		else
			large[nlarge++] = b;
		bucket[b] = (uint8_t)((c - 1) | b << log2_c);
	}
	while (nsmall) {
		const unsigned s = small[--nsmall], l = large[nlarge - 1];
		bucket[s] = (uint8_t)(rest[s] | l << log2_c);
		rest[l] -= c - rest[s];
		if (rest[l] < c)
			nlarge--, small[nsmall++] = l;
	}
}

/* The window of 256 consecutive values (mod 2^width) that holds most; its first value. */
static unsigned best_base(unsigned width, const uint64_t *total)
{
	unsigned low = 0, high = (1u << width) - 1, base;
	uint64_t sum = 0, most;

	while (low < high && !total[low])
		low++;
	while (high > low && !total[high])
		high--;
	if (high < 256)
		return 0;
	if (high - low < 256)
		return high - 255;
	low = low > 255 ? low - 255 : 0;
	for (unsigned s = low; s < low + 256; s++)
		sum += total[s];
	most = sum, base = low;
	for (unsigned s = low + 1; s + 255 <= high; s++) {
		sum += total[s + 255] - total[s - 1];
		if (sum > most)
			most = sum, base = s;
	}
	return base;
}

unsigned commonest_bytes(const uint64_t *count, unsigned n, uint8_t *out)
{
	unsigned used = 0;

	for (unsigned i = 0; i < 256; i++) {
		unsigned at;
		if (!count[i] || (used == n && count[i] <= count[out[n - 1]]))
			continue;
		used += used < n;
		for (at = used - 1; at && count[out[at - 1]] < count[i]; at--)
			out[at] = out[at - 1];
		out[at] = (uint8_t)i;
	}
	return used;
}

bool rans_alphabet(unsigned width, unsigned log2_nb, const uint64_t *total, struct rans_alphabet *a)
{
	const unsigned window = width < 8 ? 1u << width : 256;
	uint64_t left[256] = { 0 }, sum = 0;
	unsigned present = 0;

	*a = (struct rans_alphabet){ .nb = 1u << log2_nb, .base = best_base(width, total) };
	for (size_t s = 0; s < (size_t)1 << width; s++)
		sum += total[s];
	for (unsigned i = 0; i < window; i++) {
		left[i] = total[(a->base + i) & (unsigned)mask_bits(width)];
		present += left[i] > 0;
	}
	if (present < 2)
		return false;
	a->escape = present > a->nb;
	a->nsymbols = a->escape ? a->nb - 1 : present;
	uint8_t ranked[RANS_MAX_SYMBOLS + TAIL];
	const unsigned n = commonest_bytes(left, a->nsymbols + TAIL, ranked);
	memcpy(a->byte, ranked, a->nsymbols);
	/* Then what a pair drops is no commoner than what fills the tail. */
	a->crowded = n == a->nsymbols + TAIL && left[ranked[n - 1]] * 8 >= left[ranked[a->nsymbols - 1]];
	/* Room for an escape that rare symbols of a pair can use. */
	if (!a->escape && a->nsymbols < a->nb)
		a->escape = true;
	return sum > 0;
}

/* The commonest bytes that need the escape, over all pairs. */
static void choose_tail(struct rans_alphabet *a, const uint64_t *escaped)
{
	for (unsigned v = commonest_bytes(escaped, TAIL, a->tail); v < TAIL; v++)
		a->tail[v] = a->tail[0];
}

bool train_rans(unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body)
{
	const size_t symbols = (size_t)1 << width, pairs = (size_t)kr * kc;
	const unsigned window = width < 8 ? 1u << width : 256;
	uint64_t *total = calloc(symbols, sizeof(*total)), escaped[256] = { 0 };
	struct rans_alphabet a;
	bool ok = total != NULL;

	for (size_t p = 0; ok && p < pairs; p++)
		for (size_t s = 0; s < symbols; s++)
			total[s] += counts[p * symbols + s];
	ok = ok && rans_alphabet(width, log2_nb, total, &a);
	free(total);
	if (!ok)
		return false;
	const size_t head = 8 + a.nb + TAIL;
	uint8_t *out = buffer_grow(body, head + pairs * a.nb);
	if (!out)
		return false;
	for (size_t p = 0; p < pairs; p++) {
		const uint32_t *count = counts + p * symbols;
		double inside[MAX_SYMBOLS], outside = 0;
		unsigned freq[MAX_SYMBOLS + 1] = { 0 };
		uint8_t index[256];
		memset(index, 255, sizeof(index));
		for (unsigned i = 0; i < a.nsymbols; i++)
			index[a.byte[i]] = (uint8_t)i, inside[i] = count[(a.base + a.byte[i]) & mask_bits(width)];
		for (unsigned i = 0; i < window; i++)
			if (index[i] == 255)
				outside += count[(a.base + i) & mask_bits(width)];
		pair_frequencies(&a, inside, outside, freq);
		put_buckets(a.nb, freq, out + head + p * a.nb);
		for (unsigned i = 0; i < window; i++)
			if (index[i] == 255 || !freq[index[i]])
				escaped[i] += count[(a.base + i) & mask_bits(width)];
	}
	choose_tail(&a, escaped);
	memset(out, 0, head);
	out[0] = (uint8_t)log2_nb, out[1] = (uint8_t)width, out[2] = (uint8_t)kr, out[3] = (uint8_t)kc;
	store_u16(out + 4, (uint16_t)a.base);
	out[6] = a.escape ? (uint8_t)a.nsymbols : 255;
	memcpy(out + 8, a.byte, a.nsymbols);
	memcpy(out + 8 + a.nb, a.tail, TAIL);
	return true;
}

/* train_wide.c: tables of lit.wide from counts: up to 256 symbols, 12-bit frequencies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "synth/quantise.h"
#include "synth/train.h"

enum { TOTAL = 1 << WIDE_BITS, MAX_SYMBOLS = 256 };

/* A string of bits, least significant bit of each byte first. */
struct bits {
	struct buffer *out;
	uint64_t held;
	unsigned count;
};

static void put_bits(struct bits *bits, unsigned value, unsigned n)
{
	bits->held |= (uint64_t)value << bits->count;
	for (bits->count += n; bits->count >= 8; bits->count -= 8, bits->held >>= 8)
		buffer_put_u8(bits->out, (uint8_t)bits->held);
}

unsigned wide_values(unsigned width, const uint64_t *total, uint16_t value[MAX_SYMBOLS], bool *escape)
{
	const unsigned symbols = 1u << width;
	unsigned present = 0, n = 0;
	uint64_t low = 1, high = 0;

	for (unsigned s = 0; s < symbols; s++)
		present += total[s] > 0, high = MAX(high, total[s]);
	*escape = present > MAX_SYMBOLS;
	if (*escape) {
		/* The least count that at most 255 values reach. */
		for (low = 1, high++; low < high;) {
			const uint64_t middle = low + (high - low) / 2;
			unsigned reach = 0;
			for (unsigned s = 0; s < symbols; s++)
				reach += total[s] >= middle;
			if (reach <= MAX_SYMBOLS - 1)
				high = middle;
			else
				low = middle + 1;
		}
	}
	for (unsigned s = 0; s < symbols; s++)
		if (total[s] >= low)
			value[n++] = (uint16_t)s;
	return n;
}

/* Frequencies of one class pair; a pair without words gets anything valid. */
static void pair_frequencies(const uint32_t *count, unsigned width, const uint16_t *value, unsigned nvalues, bool escape, unsigned *freq)
{
	double p[MAX_SYMBOLS], inside = 0, all = 0;
	unsigned positive = 0;
	const unsigned m = nvalues + escape;

	for (unsigned s = 0; s < 1u << width; s++)
		all += count[s];
	for (unsigned i = 0; i < nvalues; i++)
		p[i] = count[value[i]], inside += p[i], positive += p[i] > 0;
	if (escape)
		p[nvalues] = MAX(all - inside, .5), positive++;
	for (unsigned i = 0; positive < 2 && i < m; i++)
		if (p[i] <= 0)
			p[i] = .01, positive++;
	quantise(p, m, TOTAL, freq);
}

bool train_wide(unsigned width, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body)
{
	const size_t symbols = (size_t)1 << width, pairs = (size_t)kr * kc;
	uint64_t *total = calloc(symbols, sizeof(*total));
	uint16_t value[MAX_SYMBOLS];
	unsigned freq[MAX_SYMBOLS];
	bool escape;

	if (!total)
		return false;
	for (size_t p = 0; p < pairs; p++)
		for (size_t s = 0; s < symbols; s++)
			total[s] += counts[p * symbols + s];
	const unsigned nvalues = wide_values(width, total, value, &escape);
	free(total);
	if (nvalues < 2)
		return false;
	buffer_put_u8(body, (uint8_t)width);
	buffer_put_u8(body, (uint8_t)kr);
	buffer_put_u8(body, (uint8_t)kc);
	buffer_put_u8(body, escape);
	buffer_put_u8(body, (uint8_t)(nvalues + escape - 1));
	for (unsigned i = 0; i < nvalues; i++)
		buffer_put_varint(body, i ? value[i] - value[i - 1] - 1u : value[0]);
	struct bits bits = { .out = body };
	for (size_t p = 0; p < pairs; p++) {
		pair_frequencies(counts + p * symbols, width, value, nvalues, escape, freq);
		for (unsigned i = 0; i < nvalues + escape; i++) {
			const unsigned k = freq[i] ? 32 - (unsigned)__builtin_clz(freq[i]) : 0;
			put_bits(&bits, k, 4);
			if (k)
				put_bits(&bits, freq[i] - (1u << (k - 1)), k - 1);
		}
	}
	if (bits.count)
		buffer_put_u8(body, (uint8_t)bits.held);
	return !body->failed;
}

/* train_wide.c: tables of lit.wide from counts: up to 256 symbols, 12-bit frequencies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "synth/quantise.h"
#include "synth/train_wide.h"

enum { TOTAL = 1 << WIDE_BITS };

void put_bits(struct bits_out *bits, unsigned value, unsigned n)
{
	bits->held |= (uint64_t)value << bits->count;
	for (bits->count += n; bits->count >= 8; bits->count -= 8, bits->held >>= 8)
		buffer_put_u8(bits->out, (uint8_t)bits->held);
}

void put_last_bits(struct bits_out *bits)
{
	if (bits->count)
		buffer_put_u8(bits->out, (uint8_t)bits->held);
}

unsigned wide_values(unsigned width, unsigned most, const uint64_t *total, uint16_t value[WIDE_MAX_SYMBOLS], bool *escape)
{
	const unsigned symbols = 1u << width;
	unsigned present = 0, n = 0;
	uint64_t low = 1, high = 0;

	for (unsigned s = 0; s < symbols; s++)
		present += total[s] > 0, high = MAX(high, total[s]);
	*escape = present > most;
	if (*escape) {
		/* The least count that at most `most` - 1 values reach. */
		for (low = 1, high++; low < high;) {
			const uint64_t middle = low + (high - low) / 2;
			unsigned reach = 0;
			for (unsigned s = 0; s < symbols; s++)
				reach += total[s] >= middle;
			if (reach <= most - 1)
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

void wide_frequencies(const uint32_t *count, unsigned width, const struct wide_symbols *symbols, unsigned *freq)
{
	const uint16_t *value = symbols->value;
	const unsigned nvalues = symbols->nvalues, escape = symbols->escape;
	double p[WIDE_MAX_SYMBOLS], inside = 0, all = 0;
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

bool wide_symbols(unsigned width, unsigned most, size_t pairs, const uint32_t *counts, struct wide_symbols *out)
{
	const size_t symbols = (size_t)1 << width;
	uint64_t *total = calloc(symbols, sizeof(*total));

	if (!total)
		return false;
	for (size_t p = 0; p < pairs; p++)
		for (size_t s = 0; s < symbols; s++)
			total[s] += counts[p * symbols + s];
	out->nvalues = wide_values(width, most, total, out->value, &out->escape);
	free(total);
	return out->nvalues >= 2;
}

void put_wide_head(struct buffer *body, unsigned width, unsigned kr, unsigned kc, const struct wide_symbols *s)
{
	buffer_put_u8(body, (uint8_t)width);
	buffer_put_u8(body, (uint8_t)kr);
	buffer_put_u8(body, (uint8_t)kc);
	buffer_put_u8(body, s->escape);
	buffer_put_u8(body, (uint8_t)(s->nvalues + s->escape - 1));
	for (unsigned i = 0; i < s->nvalues; i++)
		buffer_put_varint(body, i ? s->value[i] - s->value[i - 1] - 1u : s->value[0]);
}

bool train_wide(unsigned width, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body)
{
	const size_t pairs = (size_t)kr * kc;
	struct wide_symbols s;
	unsigned freq[WIDE_MAX_SYMBOLS];

	if (!wide_symbols(width, WIDE_MAX_SYMBOLS, pairs, counts, &s))
		return false;
	put_wide_head(body, width, kr, kc, &s);
	struct bits_out bits = { .out = body };
	for (size_t p = 0; p < pairs; p++) {
		wide_frequencies(counts + (p << width), width, &s, freq);
		for (unsigned i = 0; i < s.nvalues + s.escape; i++) {
			const unsigned k = freq[i] ? 32 - (unsigned)__builtin_clz(freq[i]) : 0;
			put_bits(&bits, k, 4);
			if (k)
				put_bits(&bits, freq[i] - (1u << (k - 1)), k - 1);
		}
	}
	put_last_bits(&bits);
	return !body->failed;
}

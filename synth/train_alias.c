/* train_alias.c: tables of lit.alias from counts: up to 256 symbols, 12-bit frequencies (docs/FORMAT.md, 6.4). Which positions a symbol has
 * follows from the frequencies. SPDX-License-Identifier: Apache-2.0 */
#include "synth/train_wide.h"

/* The bits of a frequency's length are said by the difference to the one before: d zeros, a one, and if d is not 0 whether it is less. */
static void put_frequency(struct bits_out *bits, unsigned freq, unsigned *before)
{
	const unsigned k = freq ? 32 - (unsigned)__builtin_clz(freq) : 0, step = k > *before ? k - *before : *before - k;

	put_bits(bits, 1u << step, step + 1);
	if (step)
		put_bits(bits, k < *before, 1);
	if (k)
		put_bits(bits, freq - (1u << (k - 1)), k - 1);
	*before = k;
}

bool train_alias(unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body)
{
	const size_t pairs = (size_t)kr * kc;
	struct wide_symbols s;
	unsigned freq[WIDE_MAX_SYMBOLS];

	if (kc << log2_nb > ALIAS_MAX_ENTRIES || !wide_symbols(width, 1u << log2_nb, pairs, counts, &s))
		return false;
	buffer_put_u8(body, (uint8_t)log2_nb);
	put_wide_head(body, width, kr, kc, &s);
	struct bits_out bits = { .out = body };
	for (size_t p = 0; p < pairs; p++) {
		unsigned before = 0;
		wide_frequencies(counts + (p << width), width, &s, freq);
		for (unsigned i = 0; i < s.nvalues + s.escape; i++)
			put_frequency(&bits, freq[i], &before);
	}
	put_last_bits(&bits);
	return !body->failed;
}

bool train_table(uint8_t op, unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body)
{
	switch (op) {
	case OP_LIT_HUFF: return train_huff(width, counts, body);
	case OP_LIT_RANS: return train_rans(width, log2_nb, kr, kc, counts, body);
	case OP_LIT_WIDE: return train_wide(width, kr, kc, counts, body);
	case OP_LIT_ALIAS: return train_alias(width, log2_nb, kr, kc, counts, body);
	default: return false;
	}
}

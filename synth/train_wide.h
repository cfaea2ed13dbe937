/* train_wide.h: what the tables of lit.wide and lit.alias are made of alike: symbols, 12-bit frequencies, a string of bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_TRAIN_WIDE_H
#define SYNTH_TRAIN_WIDE_H

#include "synth/train.h"

enum { WIDE_MAX_SYMBOLS = 256 };

/* The values that have a symbol, ascending; escape: whether others occur, which then is the symbol after them. */
struct wide_symbols {
	unsigned nvalues;
	bool escape;
	uint16_t value[WIDE_MAX_SYMBOLS];
};

/* All values that occur in any pair, or the commonest: at most `most` symbols. False if there are fewer than two values or memory is short. */
bool wide_symbols(unsigned width, unsigned most, size_t pairs, const uint32_t *counts, struct wide_symbols *out);

/* Frequencies of one class pair from its counts; a pair without words gets anything valid. */
void wide_frequencies(const uint32_t *count, unsigned width, const struct wide_symbols *symbols, unsigned *freq);

/* Width, classes, escape, symbols: the beginning of a body (docs/FORMAT.md, 6.3). */
void put_wide_head(struct buffer *body, unsigned width, unsigned kr, unsigned kc, const struct wide_symbols *symbols);

/* A string of bits, least significant bit of each byte first; put_last_bits() fills up the last byte. */
struct bits_out {
	struct buffer *out;
	uint64_t held;
	unsigned count;
};
void put_bits(struct bits_out *bits, unsigned value, unsigned n);
void put_last_bits(struct bits_out *bits);

#endif

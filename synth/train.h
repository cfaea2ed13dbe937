/* train.h: entropy tables made from counts, and what coding with a table costs.
 *
 * Counts are laid out [class pair][symbol]: counts[(r * kc + c) * symbols + s], with symbols = 1 << width.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_TRAIN_H
#define SYNTH_TRAIN_H

#include "common/archive.h"
#include "kernels/kernel.h"

/* Append the body of a table (docs/FORMAT.md, 6) to `body`. False if these counts cannot have such a table (fewer than two
 * different symbols in all; for lit.rans: nothing that 8-bit frequencies could say) or memory is short; body is then unchanged.
 *
 * Deterministic. Length-limited codes by package-merge (Larmore and Hirschberg 1990); rANS alias tables by Vose's method (1991)
 * on frequencies rounded so that the expected code length is least. log2_nb is 4, 5 or 6. Symbols that are rare or do not fit become escapes. */
bool train_huff(unsigned width, const uint32_t *counts, struct buffer *body);
bool train_rans(unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body);
bool train_wide(unsigned width, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body);
/* log2_nb from 4 to 8, kc << log2_nb at most 256. */
bool train_alias(unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body);

/* The table of any op that has one; what its kind does not know of the parameters is not looked at. */
bool train_table(uint8_t op, unsigned width, unsigned log2_nb, unsigned kr, unsigned kc, const uint32_t *counts, struct buffer *body);

/* The alphabet of lit.rans: bytes above base that get an index, commonest first; the escape, if any, is the index after them. A smaller alphabet is the
 * beginning of a larger one. tail is not set. total: counts over all pairs. False: nothing that 8-bit frequencies could say. */
enum { RANS_MAX_SYMBOLS = 64, RANS_TAIL = 15 };
struct rans_alphabet {
	unsigned nb, base, nsymbols;
	bool escape, crowded;           /* crowded: the tail is full of symbols about as common as the last with an index */
	uint8_t byte[RANS_MAX_SYMBOLS], tail[RANS_TAIL];
};
bool rans_alphabet(unsigned width, unsigned log2_nb, const uint64_t *total, struct rans_alphabet *out);

/* The n bytes with the largest counts (256 of them), largest first, the smaller byte first where they are equal; fewer if fewer occur. Returns how many. */
unsigned commonest_bytes(const uint64_t *count, unsigned n, uint8_t *out);

/* The values of lit.wide or lit.alias that get one of at most `most` <= 256 symbols: all that occur, or, with a symbol for the escape, the commonest;
 * ascending. Returns how many. *escape: whether some are left out. */
unsigned wide_values(unsigned width, unsigned most, const uint64_t *total, uint16_t value[256], bool *escape);

/* Bits that a word of lit.alias loses because its states are no longer than its probabilities, as measured; those of lit.wide are by 4 bits. */
static const double alias_loss_bits = .001;

/* Expected bits of coding symbols with these counts, escapes, literals and patches included; without per-item overhead (see below). HUGE_VAL
 * if the table cannot code one of them (lit.huff). */
double table_cost_bits(const struct kn_table *table, const uint32_t *counts);

/* Bytes of an item beyond those bits: states, headers; u32 length included. carry: whether the end of a raw field is hidden in it. */
double item_overhead_nbytes(enum bc_table kind, bool carry);

#endif

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

/* The values of lit.wide that get a symbol: all that occur, or the 255 commonest; ascending. Returns how many. *escape: whether some are left out. */
unsigned wide_values(unsigned width, const uint64_t *total, uint16_t value[256], bool *escape);

/* Expected bits of coding symbols with these counts, escapes, literals and patches included; without per-item overhead (see below). HUGE_VAL
 * if the table cannot code one of them (lit.huff). */
double table_cost_bits(const struct kn_table *table, const uint32_t *counts);

/* Bytes of an item beyond those bits: states, headers; u32 length included. carry: whether 128 bytes are hidden in it. */
double item_overhead_nbytes(enum bc_table kind, bool carry);

#endif

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

/* Expected bits of coding symbols with these counts, escapes, literals and patches included; without per-item overhead (see below). HUGE_VAL
 * if the table cannot code one of them (lit.huff). */
double table_cost_bits(const struct kn_table *table, const uint32_t *counts);

/* Bytes of an item beyond those bits: states, headers; u32 length included. carry: whether 128 bytes are hidden in it. */
double item_overhead_nbytes(enum bc_table kind, bool carry);

#endif

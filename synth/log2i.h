/* log2i.h: log2 of small integers from a table: what training and judging spend most of their time on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_LOG2I_H
#define SYNTH_LOG2I_H

#include <math.h>
#include <stdint.h>

enum { LOG2I_TABLE = 4097 };

extern double log2i_table[LOG2I_TABLE]; /* [0] is 0; filled before main() */

static inline double log2i(uint32_t n) { return n < LOG2I_TABLE ? log2i_table[n] : log2((double)n); }

/* Bits of ideal codes for symbols that occur count[0..n-1] times, `sum` in all. */
double ideal_bits(const uint32_t *count, unsigned n, double sum);

#endif

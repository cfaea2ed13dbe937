/* log2i.c: the table of log2i.h. SPDX-License-Identifier: Apache-2.0 */
#include "synth/log2i.h"

double log2i_table[LOG2I_TABLE];

__attribute__((constructor)) static void fill(void)
{
	for (unsigned n = 1; n < LOG2I_TABLE; n++)
		log2i_table[n] = log2((double)n);
}

double ideal_bits(const uint32_t *count, unsigned n, double sum)
{
	const double whole = log2(sum);
	double bits = 0;

	for (unsigned s = 0; s < n; s++)
		bits += count[s] ? count[s] * (whole - log2i(count[s])) : 0;
	return bits;
}

/* quantise.h: frequencies of a code from counts. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_QUANTISE_H
#define SYNTH_QUANTISE_H

enum { QUANTISE_MAX_SYMBOLS = 256 };

/* Frequencies of m symbols with weights p that add up to total, each 1..total - 1 and 0 where p is 0, so that the code length is least: rounded, then corrected one
 * by one where it costs least. At least two weights are above 0, and no more than total. */
void quantise(const double *p, unsigned m, unsigned total, unsigned *f);

#endif

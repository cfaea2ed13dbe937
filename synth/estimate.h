/* estimate.h: what tables would cost, close enough to choose among them, without making them: rounded frequencies that need not add up.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_ESTIMATE_H
#define SYNTH_ESTIMATE_H

#include "synth/train.h"

/* What the tables of one target have in common, whatever the classes: made once from its counts over all pairs. */
struct estimator {
	unsigned width;
	bool rans, wide, wide_escape;   /* whether there can be such a table */
	bool widened;                   /* what is about lit.wide and lit.alias is there */
	struct rans_alphabet alphabet;  /* the largest */
	uint64_t window[256];           /* counts of the values that bytes above its base can say */
	unsigned nvalues;
	uint16_t value[256];
	uint64_t total[256];            /* their counts */
	double values_nbytes;           /* of the list in the table */
};

/* counts: 1 << width of them. False: no memory. */
bool estimator_make(struct estimator *out, unsigned width, const uint32_t *counts);

/* Adds what estimate_wide() and estimate_alias() need, from the same counts: apart, because it takes long and is not wanted where 12 bits are too slow. Once; then
 * nothing. */
bool estimator_widen(struct estimator *e, const uint32_t *counts);

/* Bits of coding symbols with these counts (as in train.h) with the table that would be trained on them, and the bytes of its body. HUGE_VAL: there is none. */
double estimate_rans(const struct estimator *e, unsigned log2_nb, size_t pairs, const uint32_t *counts, double *body_nbytes);
double estimate_wide(const struct estimator *e, size_t pairs, const uint32_t *counts, double *body_nbytes);
double estimate_alias(const struct estimator *e, unsigned log2_nb, size_t pairs, const uint32_t *counts, double *body_nbytes);

#endif

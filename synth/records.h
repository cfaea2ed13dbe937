/* records.h: quantised blocks stored as bytes: records of scales and of weights in a few bits each, recognised by their bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_RECORDS_H
#define SYNTH_RECORDS_H

#include "common/base.h"

enum { RECORD_RUNS = 4 };

/* A layout. Runs are those of a weave; one of them holds the weights. */
struct record_type {
	uint8_t period;                 /* bytes of a record: the sum of the runs */
	uint8_t run[RECORD_RUNS];       /* 0 ends */
	uint8_t slot;                   /* the run of the weights */
	uint8_t bits;                   /* of a weight; 8: bytes of the run are weights, signed; less: they are dealt, the middle stands for 0 */
	uint8_t look[6];                /* runs of bytes that are alike, by which records are told from others; 0 ends */
	uint64_t deal;                  /* operand of the deal; 0: none */
};

extern const struct record_type record_types[];
extern const unsigned nrecord_types;

/* The layout that divides the bytes best, whose records make up rows of row_nbytes; NULL if none says much about them. */
const struct record_type *record_find(const uint8_t *bytes, size_t nbytes, uint64_t row_nbytes);

/* Operand of the weave, and how many arguments it has. */
uint64_t record_runs(const struct record_type *record, unsigned *nargs);

/* Weights of a record. */
unsigned record_weights(const struct record_type *record);

/* The weights of all records as signed bytes, the top bits of each being the weight's: nbytes / period * record_weights() of them, in memory that the
 * caller frees. NULL: no memory. */
uint8_t *record_make_weights(const struct record_type *record, const uint8_t *bytes, size_t nbytes);

#endif

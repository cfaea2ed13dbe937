/* records.c: layouts of quantised blocks (records.h): those of ggml (ggml-common.h, in whose names q5_0 and so on stand beside each row). A layout is
 * never taken by a tensor's name: several sizes divide most rows, and random bytes have them all.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/records.h"

#include <stdlib.h>

#include "common/deal.h"
#include "synth/invert.h"
#include "synth/log2i.h"

#define FIELD DEAL_FIELD

const struct record_type record_types[] = {
	{ 18, { 2, 16 }, 1, 4, { 1, 1, 16 }, 32 | FIELD(0, 4, 0, 16) },                                       /* q4_0, iq4_nl */
	{ 20, { 2, 2, 16 }, 2, 4, { 1, 1, 1, 1, 16 }, 32 | FIELD(0, 4, 0, 16) },                              /* q4_1 */
	{ 22, { 2, 20 }, 1, 5, { 1, 1, 4, 16 }, 32 | FIELD(0, 1, 4, 1) | FIELD(1, 4, 0, 16) },                /* q5_0 */
	{ 24, { 2, 2, 20 }, 2, 5, { 1, 1, 1, 1, 4, 16 }, 32 | FIELD(0, 1, 4, 1) | FIELD(1, 4, 0, 16) },       /* q5_1 */
	{ 34, { 2, 32 }, 1, 8, { 1, 1, 32 }, 0 },                                                             /* q8_0 */
	{ 84, { 16, 64, 2, 2 }, 1, 2, { 16, 64, 1, 1, 1, 1 }, 256 | FIELD(0, 2, 0, 32) },                     /* q2_K */
	{ 110, { 96, 12, 2 }, 0, 3, { 32, 64, 12, 1, 1 }, 256 | FIELD(0, 1, 2, 32) | FIELD(1, 2, 0, 32) },    /* q3_K */
	{ 144, { 2, 2, 12, 128 }, 3, 4, { 1, 1, 1, 1, 12, 128 }, 256 | FIELD(0, 4, 0, 32) },                  /* q4_K */
	{ 176, { 2, 2, 12, 160 }, 3, 5, { 2, 2, 12, 32, 128 }, 256 | FIELD(0, 1, 4, 32) | FIELD(1, 4, 0, 32) }, /* q5_K */
	{ 210, { 192, 16, 2 }, 0, 6, { 128, 64, 16, 1, 1 }, 256 | FIELD(0, 4, 0, 64) | FIELD(1, 2, 4, 32) },  /* q6_K */
};
const unsigned nrecord_types = ARRAY_LEN(record_types);

/* Bits of ideal codes for every run of a record, each run with a code of its own. */
static double record_bits(const uint8_t *bytes, size_t n, unsigned period, const uint8_t *run, unsigned nruns)
{
	const size_t nrecords = n / period;
	double bits = 0;

	for (unsigned k = 0, at = 0; k < nruns && run[k]; at += run[k], k++) {
		uint32_t counts[256] = { 0 };
		for (size_t i = 0; i < nrecords; i++)
			for (unsigned j = 0; j < run[k]; j++)
				counts[bytes[i * period + at + j]]++;
		bits += ideal_bits(counts, 256, (double)(nrecords * run[k]));
	}
	return bits;
}

const struct record_type *record_find(const uint8_t *bytes, size_t nbytes, uint64_t row_nbytes)
{
	enum { LOOK = 65536, FEW = 4096 };
	static const uint8_t none[1] = { 1 };
	const size_t n = MIN(nbytes, (size_t)LOOK);
	const struct record_type *found = NULL;

	if (n < FEW || !row_nbytes)
		return NULL;
	double best = record_bits(bytes, n, 1, none, 1) / (double)n * (1 - 1 / 256.);
	for (unsigned i = 0; i < nrecord_types; i++) {
		const struct record_type *t = &record_types[i];
		if (row_nbytes % t->period)
			continue;
		const double bits = record_bits(bytes, n, t->period, t->look, ARRAY_LEN(t->look)) / (double)(n - n % t->period);
		if (bits < best)
			best = bits, found = t;
	}
	return found;
}

uint64_t record_runs(const struct record_type *record, unsigned *nargs)
{
	uint64_t imm = 0;

	for (*nargs = 0; *nargs < RECORD_RUNS && record->run[*nargs]; ++*nargs)
		imm |= (uint64_t)record->run[*nargs] << (16 * *nargs);
	return imm;
}

unsigned record_weights(const struct record_type *record)
{
	struct deal deal = { 0 };

	return record->deal && deal_parse(record->deal, 8, record->bits, &deal) ? record->run[record->slot] / deal.nwords * deal.block : record->run[record->slot];
}

uint8_t *record_make_weights(const struct record_type *record, const uint8_t *bytes, size_t nbytes)
{
	const size_t nrecords = nbytes / record->period, run = record->run[record->slot], each = record_weights(record);
	uint8_t *weights = malloc(nrecords * each + 1);
	size_t at = 0;

	if (!weights)
		return NULL;
	for (unsigned k = 0; k < record->slot; k++)
		at += record->run[k];
	for (size_t i = 0; i < nrecords; i++) {
		uint8_t *out = weights + i * each;
		const uint8_t *from = bytes + i * record->period + at;
		struct words_out words = { out, 0, record->bits };
		if (!record->deal)
			memcpy(out, from, run);
		else if (!invert(OP_DEAL, record->deal, (struct words){ from, run, 8 }, NULL, &words, 1))
			memset(out, 0, each);
		for (size_t j = 0; record->bits < 8 && j < each; j++)
			out[j] = (uint8_t)(out[j] << (8 - record->bits) ^ 0x80);
	}
	return weights;
}

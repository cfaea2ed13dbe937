/* test_records.c: quantised blocks of every layout are recognised by their bytes, and their weights joined.
 *
 * Records are made by the definition (tests/model.h) from weights whose columns differ in scale. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "common/deal.h"
#include "synth/program_for.h"
#include "tests/gen.h"
#include "tests/model.h"

enum { ROWS = 1024, ROW_RECORDS = 4 };

/* A weight of so many bits, about 0: a sum of small numbers, twice as wide in every other column. */
static uint64_t weight(uint64_t *state, unsigned bits, bool wide)
{
	const int64_t reach = MAX((1 << bits) / (wide ? 6 : 14), 1 + wide), half = 1 << (bits - 1);
	int64_t v = 0;

	for (unsigned i = 0; i < 4; i++)
		v += (int64_t)gen_between(state, 0, (uint64_t)(2 * reach)) - reach;
	v = MAX(MIN(v / 2, half - 1), -half);
	return (uint64_t)(bits == 8 ? v : v + half) & mask_bits(bits);
}

struct made {
	uint8_t *bytes, *weights;       /* weights: as they are coded */
	size_t nbytes, nweights;
};

static struct made make_records(const struct record_type *t, uint64_t state)
{
	const size_t nrecords = (size_t)ROWS * ROW_RECORDS, each = record_weights(t);
	struct made m = { malloc(nrecords * t->period), malloc(nrecords * each), nrecords * t->period, nrecords * each };
	uint8_t *run[RECORD_RUNS];
	struct kn_args weave = { .op = OP_WEAVE, .n = m.nbytes, .width = 8 };
	unsigned nargs;

	for (size_t i = 0; i < m.nweights; i++)
		m.weights[i] = (uint8_t)weight(&state, t->bits, i % 2);
	weave.imm = record_runs(t, &nargs);
	for (unsigned k = 0; k < nargs; k++) {
		const size_t n = nrecords * t->run[k];
		run[k] = malloc(n);
		if (k != t->slot) {
			for (size_t i = 0; i < n; i++)
				run[k][i] = (uint8_t)(t->run[k] == 2 && i % 2 ? 0x1c + gen_between(&state, 0, 3) : gen_random(&state));
		} else if (t->deal) {
			const struct kn_args deal = { .op = OP_DEAL, .n = n, .width = 8, .nsrc = 1, .imm = t->deal, .src = { m.weights },
						      .src_n = { m.nweights }, .src_width = { t->bits } };
			model_op(&deal, run[k]);
		} else {
			memcpy(run[k], m.weights, n);
		}
		weave.src[k] = run[k], weave.src_n[k] = n, weave.src_width[k] = 8;
	}
	weave.nsrc = (uint8_t)nargs;
	model_op(&weave, m.bytes);
	for (unsigned k = 0; k < nargs; k++)
		free(run[k]);
	return m;
}

static struct source source_of_records(const struct record_type *t, const struct made *m)
{
	return (struct source){ .words = m->bytes, .nwords = m->nbytes, .width = 8, .dtype = dtype_by_name("U8", 2)->code, .rows = ROWS,
				.row_words = (uint64_t)t->period * ROW_RECORDS };
}

Test(records, layouts_are_sound)
{
	for (unsigned i = 0; i < nrecord_types; i++) {
		const struct record_type *t = &record_types[i];
		unsigned sum = 0, look = 0;
		struct deal deal;
		for (unsigned k = 0; k < RECORD_RUNS; k++)
			sum += t->run[k];
		for (unsigned k = 0; k < ARRAY_LEN(t->look); k++)
			look += t->look[k];
		cr_expect(sum == t->period && look == t->period, "layout %u", i);
		cr_expect(t->deal ? deal_parse(t->deal, 8, t->bits, &deal) && deal.nwords == t->run[t->slot] : t->bits == 8, "layout %u", i);
	}
}

Test(records, are_recognised_by_their_bytes)
{
	for (unsigned i = 0; i < nrecord_types; i++) {
		const struct record_type *t = &record_types[i];
		struct made m = make_records(t, i + 1);
		cr_expect_eq(record_find(m.bytes, m.nbytes, (uint64_t)t->period * ROW_RECORDS), t, "records of %u bytes", t->period);
		cr_expect_neq(record_find(m.bytes, m.nbytes, (uint64_t)t->period * ROW_RECORDS + 1), t);
		uint8_t *weights = record_make_weights(t, m.bytes, m.nbytes);
		for (size_t k = 0; k < m.nweights; k++) {
			const uint8_t want = (uint8_t)(t->bits == 8 ? m.weights[k] : m.weights[k] << (8 - t->bits) ^ 0x80);
			cr_assert_eq(weights[k], want, "records of %u bytes, weight %zu", t->period, k);
		}
		free(weights);
		uint64_t state = i;
		for (size_t k = 0; k < m.nbytes; k++)
			m.bytes[k] = (uint8_t)gen_random(&state);
		cr_expect_null(record_find(m.bytes, m.nbytes, t->period), "noise in records of %u bytes", t->period);
		free(m.bytes);
		free(m.weights);
	}
}

/* Bits of ideal codes for the weights of even and of odd columns. */
static double weight_bits(const struct made *m)
{
	uint32_t counts[2][256] = { { 0 } };
	double bits = 0;

	for (size_t i = 0; i < m->nweights; i++)
		counts[i % 2][m->weights[i]]++;
	for (unsigned c = 0; c < 512; c++)
		if (counts[c / 256][c % 256])
			bits -= counts[c / 256][c % 256] * log2(counts[c / 256][c % 256] / (double)(m->nweights / 2));
	return bits;
}

/* With classes, weights take hardly more than ideal codes for columns of each kind would. */
Test(records, weights_are_joined_and_classed)
{
	struct prior *uniform = alloc_prior();

	for (unsigned i = 0; i < nrecord_types; i++) {
		const struct record_type *t = &record_types[i];
		const struct synth_plan plan = { .model = cost_model(COST_SIZE, COST_AVX512), .limits = { 8, 32, 1024, 4, HUGE_VAL }, .prior = uniform,
						 .sample_words = 65536, .class_budget = 1 << 20, .kr = 4, .kc = 4, .pair_words = 2048, .chunk_nbytes = 32 << 10 };
		struct made m = make_records(t, i + 1);
		struct source source = source_of_records(t, &m);
		struct coded_stream stream = { 0 };
		struct encoder encoder = { 0 };
		uint64_t nbytes = 0;
		char text[256];

		source_look(&source);
		cr_assert_eq(program_for(&plan, &source, &stream, NULL, NULL, NULL), BRV_OK);
		program_print(&stream.variant[0].program, text, sizeof(text));
		cr_expect(!strncmp(text, "weave(", 6) && (!t->deal || strstr(text, "deal(")) && strstr(text, "classed"), "records of %u bytes: %s", t->period, text);
		cr_expect(stream.nchunks > 1 && stream.chunk_words % t->period == 0);
		for (uint64_t k = 0; k < stream.nchunks; k++) {
			cr_assert_eq(encode_chunk(&encoder, &stream, k, m.bytes + k * stream.chunk_words), BRV_OK);
			/* The last one may be too short for a carry. */
			cr_expect(k + 1 == stream.nchunks || stream.chunk[k].variant + 1u < stream.ncoded, "records of %u bytes: chunk %u of %s is raw", t->period, (unsigned)k, text);
			nbytes += stream.chunk[k].payload_nbytes;
		}
		/* Scales: random but for the high byte of two, which has two bits. */
		const double scales = (double)ROWS * ROW_RECORDS * (t->period - t->run[t->slot]);
		cr_expect_leq((double)nbytes, scales + weight_bits(&m) / 8 * 1.02 + 400. * (double)stream.nchunks, "records of %u bytes: %s takes %llu bytes, %.0f of them scales, %.0f ideal",
			      t->period, text, (unsigned long long)nbytes, scales, weight_bits(&m) / 8);
		encoder_free(&encoder);
		coded_stream_free(&stream);
		free(m.bytes);
		free(m.weights);
	}
	free_prior(uniform);
}

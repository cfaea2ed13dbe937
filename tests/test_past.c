/* test_past.c: outputs so large that they go past the caches: by a kernel's drain, through the arena, and misaligned behind what is small.
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "runtime/brevis.h"
#include "synth/train.h"
#include "tests/handmade.h"

enum { CHUNK = 1 << 20, CODED_WORDS = 16 * CHUNK + 12345, PLAIN_WORDS = 300001, ODD = 3 };

/* A tensor of 3 bytes, one of bytes that a literal of two 8-bit fields codes, and one of raw words. */
struct large {
	struct buffer archive;
	uint8_t *data;
	uint64_t nbytes;
};

static struct kn_table *table_of(struct handmade *hm, const uint8_t *high)
{
	uint32_t counts[256] = { 0 };
	struct buffer body = { 0 };
	struct kn_table *table;

	for (size_t i = 0; i < CODED_WORDS; i++)
		counts[high[i]]++;
	cr_assert(train_rans(8, 4, 1, 1, counts, &body));
	cr_assert_eq(table_expand(TABLE_RANS, (struct span){ body.data, body.nbytes }, &table, NULL), BRV_OK);
	hm_table(hm, TABLE_RANS, body.data, body.nbytes);
	buffer_free(&body);
	return table;
}

/* The payload of each chunk: low bytes as they are, high bytes coded. */
static void put_chunks(struct hm_stream *stream, const struct kn_table *table, const uint8_t *low, const uint8_t *high)
{
	uint8_t *item = malloc(kn_encode_bound(CHUNK)), *scratch = malloc(kn_encode_bound(CHUNK));

	for (size_t k = 0, at = 0; at < CODED_WORDS; k++, at += CHUNK) {
		const size_t n = MIN((size_t)CODED_WORDS - at, (size_t)CHUNK);
		const struct kn_enc_args args = { .dst = item, .src = high + at, .n = n, .table = table, .scratch = scratch };
		hm_packed(&stream->chunks[k].payload, 8, low + at, n);
		hm_item(&stream->chunks[k].payload, item, kn_sets[0]->enc[TABLE_RANS](&args));
		stream->chunks[k].noperands = 1;
	}
	free(item);
	free(scratch);
}

static void tensor(struct hm_stream *stream, const char *name, const char *dtype, uint64_t n) { hm_tensor(stream, name, dtype, 1, &n); }

static struct large make_large(void)
{
	static const struct bc_instr raw8 = { .op = OP_LIT_RAW, .width = 8 }, raw16 = { .op = OP_LIT_RAW, .width = 16 };
	static const struct bc_instr merged[] = { { .op = OP_LIT_RAW, .width = 8 }, { .op = OP_LIT_RANS, .width = 8 },
						  { .op = OP_MERGE, .width = 16, .nargs = 2 }, { .op = OP_MAP_ROT, .width = 16, .nargs = 1, .imm = 1 } };
	struct handmade *hm = alloc_handmade();
	struct large out = { .nbytes = ODD + 2 * (uint64_t)(CODED_WORDS + PLAIN_WORDS) };
	uint8_t *low = malloc(CODED_WORDS), *high = malloc(CODED_WORDS);
	uint16_t *words = malloc(2 * (size_t)CODED_WORDS);
	uint32_t state = 1;

	for (size_t i = 0; i < CODED_WORDS; i++) {
		state = state * 1664525u + 1013904223u;
		low[i] = (uint8_t)(state >> 8), high[i] = (uint8_t)(120 + __builtin_ctz(state >> 16 | 1 << 9));
		const unsigned v = low[i] | high[i] << 8;
		words[i] = (uint16_t)(v >> 1 | v << 15);
	}
	out.data = malloc(out.nbytes);
	memcpy(out.data, "odd", ODD);
	memcpy(out.data + ODD, words, 2 * (size_t)CODED_WORDS);
	memcpy(out.data + ODD + 2 * (size_t)CODED_WORDS, words, 2 * (size_t)PLAIN_WORDS);
	const unsigned p8 = hm_program(hm, 1, &raw8), p16 = hm_program(hm, 1, &raw16), pm = hm_program(hm, ARRAY_LEN(merged), merged);
	hm_packed(&hm_stream(hm, AR_HEADER, 8, "{}", 2, 0, p8)->chunks[0].payload, 8, "{}", 2);
	struct hm_stream *odd = hm_stream(hm, AR_TENSOR, 8, "odd", ODD, 0, p8);
	tensor(odd, "a", "U8", ODD);
	hm_packed(&odd->chunks[0].payload, 8, "odd", ODD);
	struct hm_stream *coded = hm_stream(hm, AR_TENSOR, 16, words, CODED_WORDS, CHUNK, pm);
	tensor(coded, "b", "BF16", CODED_WORDS);
	struct kn_table *table = table_of(hm, high);
	put_chunks(coded, table, low, high);
	struct hm_stream *plain = hm_stream(hm, AR_TENSOR, 16, words, PLAIN_WORDS, 0, p16);
	tensor(plain, "c", "BF16", PLAIN_WORDS);
	hm_packed(&plain->chunks[0].payload, 16, words, PLAIN_WORDS);
	hm_write(hm, &out.archive);
	free(table);
	free_handmade(hm);
	free(low);
	free(high);
	free(words);
	return out;
}

static void free_large(struct large *large)
{
	buffer_free(&large->archive);
	free(large->data);
}

static brv_status_code decode(const struct large *large, uint8_t *dst, unsigned threads, int no_checksums, brv_error *error)
{
	const brv_options options = { .struct_nbytes = sizeof options, .no_checksums = no_checksums };
	brv_archive *archive;
	brv_pool *pool;

	cr_assert_eq(brv_open_memory(large->archive.data, large->archive.nbytes, &options, &archive, error), BRV_SUCCESS, "%s", error->text);
	cr_assert_eq(brv_pool_create(threads, &pool, error), BRV_SUCCESS);
	const brv_call call = { .struct_nbytes = sizeof call, .pool = pool };
	const brv_status_code status = brv_decode_data(archive, 0, dst, large->nbytes, &call, error);
	brv_pool_free(pool);
	brv_close(archive);
	return status;
}

Test(past, all_bytes_at_any_alignment)
{
	struct large large = make_large();
	uint8_t *dst = malloc(large.nbytes + 64);
	brv_error error;

	memset(dst, 0xa5, large.nbytes + 64); /* memory never written to would not go past the caches */
	for (unsigned turn = 0; turn < 4; turn++) {
		uint8_t *at = dst + turn * 21;
		memset(dst, 0xa5, large.nbytes + 64);
		cr_assert_eq(decode(&large, at, 1 + turn / 2, turn % 2, &error), BRV_SUCCESS, "%s", error.text);
		cr_assert_eq(memcmp(at, large.data, large.nbytes), 0, "turn %u", turn);
		cr_assert((at == dst || at[-1] == 0xa5) && (at == dst + 64 || at[large.nbytes] == 0xa5));
	}
	free(dst);
	free_large(&large);
}

Test(past, damage_is_found)
{
	struct large large = make_large();
	uint8_t *dst = malloc(large.nbytes);
	brv_error error;

	/* The last bytes are those of the raw tensor; in the middle are those of the coded one. */
	memset(dst, 0xa5, large.nbytes);
	for (unsigned where = 1; where <= 2; where++) {
		uint8_t *byte = &large.archive.data[where == 1 ? large.archive.nbytes / 2 : large.archive.nbytes - 5000];
		*byte ^= 4;
		cr_expect_eq(decode(&large, dst, 1, 0, &error), BRV_E_DAMAGED, "where %u", where);
		*byte ^= 4;
	}
	free(dst);
	free_large(&large);
}

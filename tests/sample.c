/* sample.c: one small archive that uses every op (sample.h).
 *
 * Words are chosen, and payloads made from them by the inverse of each op written out here, entropy coders excepted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/sample.h"

#include <stdlib.h>
#include <xxhash.h>

#include "kernels/kernel.h"

#define I(op_, width_, nargs_, flags_, aux_, imm_) \
	{ .op = OP_##op_, .width = width_, .nargs = nargs_, .flags = flags_, .aux = aux_, .imm = imm_ }
#define PROGRAM(number, ...)                                                                    \
	do {                                                                                    \
		static const struct bc_instr instr_[] = { __VA_ARGS__ };                        \
		unsigned got_ = hm_program(hm, ARRAY_LEN(instr_), instr_);                      \
		assert(got_ == (number));                                                       \
		(void)got_;                                                                     \
	} while (0)

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static void make_programs(struct handmade *hm)
{
	PROGRAM(P_RAW8, I(LIT_RAW, 8, 0, 0, 0, 0));
	PROGRAM(P_CLASSES2, I(LIT_RAW, 2, 0, 0, 0, 0));
	PROGRAM(P_CLASSES1, I(LIT_RAW, 1, 0, 0, 0, 0));
	PROGRAM(P_CLASSED, I(LIT_RAW, 8, 0, 0, 0, 0), I(LIT_RANS, 8, 0, BC_CARRY | BC_CLASSED, 0, 0), I(MERGE, 16, 2, 0, 0, 0),
		I(MAP_ROT, 16, 1, 0, 0, 1));
	PROGRAM(P_REF, I(REF, 16, 0, 0, 0, 0));
	PROGRAM(P_GATE, I(LIT_RAW, 8, 0, 0, 0, 0), I(GATE, 8, 1, BC_CLASSED, 0, 2));
	PROGRAM(P_SCALAR, I(CONST, 64, 0, 0, 0, 0x1122334455667788ull));
	PROGRAM(P_OTHER, I(CONST, 8, 0, 0, 0, 9), I(LIT_RAW, 8, 0, 0, 0, 0), I(REPEAT, 8, 1, 0, 0, 7), I(CONCAT, 8, 2, 0, 0, 5));
	PROGRAM(P_WEAVE, I(LIT_PACK, 16, 0, 0, 0, 0), I(SCAN_ADD, 16, 1, 0, 0, 0), I(LIT_RAW, 16, 0, 0, 0, 0), I(MAP_GRAY, 16, 1, 0, 0, 0),
		I(MAP_ZIGZAG, 16, 1, 0, 0, 0), I(MAP_ADD, 16, 1, 0, 0, 77), I(MAP_XOR, 16, 1, 0, 0, 0x5555),
		I(WEAVE, 16, 2, 0, 0, 1 | 2 << 16));
	PROGRAM(P_HUFF, I(LIT_HUFF, 8, 0, 0, 0, 0));
	PROGRAM(P_WIDE, I(LIT_RAW, 6, 0, 0, 0, 0), I(LIT_WIDE, 10, 0, BC_CARRY, 0, 0), I(MERGE, 16, 2, 0, 0, 0));
	PROGRAM(P_SCAN, I(LIT_RAW, 64, 0, 0, 0, 0), I(SCAN_XOR, 64, 1, 0, 0, 0));
	PROGRAM(P_LOOKUP, I(LIT_RAW, 32, 0, 0, 0, 0), I(LIT_RAW, 3, 0, 0, 0, 0), I(LOOKUP, 32, 2, 0, 0, 8));
	PROGRAM(P_SCATTER, I(LIT_RAW, 8, 0, 0, 0, 0), I(LIT_RAW, 4, 0, 0, 0, 0), I(CUT, 1, 1, 0, 0, 0), I(SCATTER, 8, 2, 0, 0, 7));
}

static void make_tables(struct handmade *hm)
{
	/* 16 symbols of 16 positions each, all held as aliases, for 3 x 2 classes; in odd class pairs symbol b stands in bucket 15 - b. */
	uint8_t rans[8 + 16 + 15 + 6 * 16] = { 4, 8, 3, 2, 100, 0, 15, 0 };
	for (unsigned i = 0; i < 16; i++)
		rans[8 + i] = (uint8_t)i;
	for (unsigned i = 0; i < 15; i++)
		rans[24 + i] = (uint8_t)(20 + i);
	for (unsigned pair = 0; pair < 6; pair++)
		for (unsigned b = 0; b < 16; b++)
			rans[39 + 16 * pair + b] = (uint8_t)((pair % 2 ? 15 - b : b) << 4);
	hm_table(hm, TABLE_RANS, rans, sizeof rans);
	static const uint8_t huff[] = { 0, 3, 0x21, 0x33 };
	hm_table(hm, TABLE_HUFF, huff, sizeof huff);
	/* Values 5 and 700 and an escape, with frequencies 2000 = 2^10 + 976, 2000 and 96 = 2^6 + 32. */
	uint8_t wide[8 + 5] = { 10, 1, 1, 1, 2, 5, 694 % 128 | 128, 694 / 128 };
	uint64_t bits = 11 | 976ull << 4 | 11ull << 14 | 976ull << 18 | 7ull << 28 | 32ull << 32;
	memcpy(wide + 8, &bits, 5);
	hm_table(hm, TABLE_WIDE, wide, sizeof wide);
}

/* Puts an entropy-coded item of n words into the payload. */
static void put_coded(struct handmade *hm, struct buffer *payload, unsigned table, struct kn_enc_args args)
{
	struct kn_table *expanded;
	struct span body = { hm->table[table].data, hm->table[table].nbytes };
	enum brv_status status = table_expand(hm->table_kind[table], body, &expanded, NULL);
	assert(status == BRV_OK);
	(void)status;
	kn_enc_fn *encode = kn_sets[0]->enc[expanded->kind];
	args.table = expanded;
	args.dst = malloc(kn_encode_bound(args.n));
	args.scratch = malloc(kn_encode_bound(args.n));
	hm_item(payload, args.dst, encode(&args));
	free(args.dst);
	free(args.scratch);
	free(expanded);
}

static struct hm_stream *add(struct sample *s, const char *name, const char *dtype, unsigned width, const void *words, uint64_t n,
			     uint64_t chunk, unsigned program, uint64_t ndim, uint64_t d0, uint64_t d1)
{
	struct hm_stream *stream = hm_stream(s->hm, AR_TENSOR, width, words, n, chunk, program);
	hm_tensor(stream, name, dtype, ndim, (const uint64_t[]){ d0, d1 });
	s->data_offset[s->hm->nstreams - 1] = s->data.nbytes;
	buffer_put(&s->data, words, n * word_nbytes(width));
	s->data_offset[s->hm->nstreams] = s->data.nbytes;
	return stream;
}

static const uint8_t row_class[8] = { 0, 1, 2, 1, 0, 2, 1, 0 };

static void add_classes(struct sample *s, uint8_t columns[32 + KN_CLASS_PAD])
{
	for (unsigned i = 0; i < 32 + KN_CLASS_PAD; i++)
		columns[i] = i % 32 % 5 == 0;
	struct hm_stream *rows = hm_stream(s->hm, AR_CLASS, 2, row_class, 8, 0, P_CLASSES2);
	hm_packed(&rows->chunks[0].payload, 2, row_class, 8);
	struct hm_stream *cols = hm_stream(s->hm, AR_CLASS, 1, columns, 32, 20, P_CLASSES1);
	hm_packed(&cols->chunks[0].payload, 1, columns, 20);
	hm_packed(&cols->chunks[1].payload, 1, columns + 20, 12);
}

/* BF16 words under classes, and the tensor that refers to them. Some exponents need escapes, some of these literals. */
static void add_classed(struct sample *s, const uint8_t *columns)
{
	uint32_t state = 1;
	uint8_t raw[256], coded[256];
	uint16_t words[256];
	for (unsigned i = 0; i < 256; i++) {
		uint32_t r = next_random(&state);
		raw[i] = (uint8_t)r;
		coded[i] = (uint8_t)(r % 16 == 0 ? r >> 8 : r % 16 == 1 ? 100 + 20 + r / 16 % 15 : 100 + (r >> 8) % 15);
		uint16_t merged = (uint16_t)(raw[i] | coded[i] << 8);
		words[i] = (uint16_t)(merged >> 1 | merged << 15);
	}
	struct hm_stream *stream = add(s, "h.classed", "BF16", 16, words, 256, 128, P_CLASSED, 2, 8, 32);
	stream->geometry = 32;
	stream->rows = S_ROWS + 1;
	stream->kr = 3;
	stream->columns = S_COLUMNS + 1;
	stream->kc = 2;
	for (unsigned k = 0; k < 2; k++) {
		stream->chunks[k].noperands = 1;
		stream->chunks[k].operand[0] = T_RANS;
		put_coded(s->hm, &stream->chunks[k].payload, T_RANS,
			  (struct kn_enc_args){ .src = coded + 128 * k,
						.n = 128,
						.row_class = row_class,
						.col_class = columns,
						.row_words = 32,
						.first = 128 * k,
						.carry = raw + 128 * k });
	}
	stream = add(s, "h.tied", "BF16", 16, words, 256, 0, P_REF, 1, 256, 0);
	stream->chunks[0].noperands = 2;
	stream->chunks[0].operand[0] = S_CLASSED;
}

static void add_gate(struct sample *s)
{
	uint8_t words[128];
	for (unsigned i = 0; i < 128; i++)
		words[i] = row_class[i / 16] == 1 ? 0 : (uint8_t)(i + 1);
	struct hm_stream *stream = add(s, "gated", "U8", 8, words, 128, 48, P_GATE, 2, 8, 16);
	stream->geometry = 16;
	stream->rows = S_ROWS + 1;
	stream->kr = 3;
	for (unsigned i = 0; i < 128; i++)
		if (words[i])
			buffer_put_u8(&stream->chunks[i / 48].payload, words[i]);
}

static void add_small(struct sample *s)
{
	add(s, "empty", "F32", 32, "", 0, 64, 0, 2, 0, 7);
	static const uint64_t scalar = 0x1122334455667788ull;
	add(s, "step", "I64", 64, &scalar, 1, 0, P_SCALAR, 0, 0, 0);
	static const uint8_t other[12] = { 9, 9, 9, 9, 9, 200, 200, 200, 200, 200, 200, 200 };
	struct hm_stream *stream = add(s, "odd", "X3", 8, other, 12, 0, P_OTHER, 1, 24, 0);
	buffer_put_u8(&stream->chunks[0].payload, 200);
}

static void add_weave(struct sample *s)
{
	uint16_t words[60], sum = 1000, packed[19], raw[40], first = 1000;
	uint32_t state = 7;
	for (unsigned i = 0; i < 20; i++) {
		packed[i ? i - 1 : 0] = i ? (uint16_t)(next_random(&state) % 31) : 0; /* the base is 65530: -6 */
		sum = (uint16_t)(i ? sum + packed[i - 1] + 65530 : sum);
		words[3 * i] = sum;
	}
	for (unsigned i = 0; i < 40; i++) {
		uint16_t v = (uint16_t)next_random(&state), g = v;
		words[i / 2 * 3 + 1 + i % 2] = v;
		g = (uint16_t)((g ^ 0x5555) - 77);
		g = (uint16_t)(g << 1 ^ (uint16_t)-(g >> 15));
		raw[i] = (uint16_t)(g ^ g >> 1);
	}
	struct hm_stream *stream = add(s, "woven", "U16", 16, words, 60, 0, P_WEAVE, 1, 60, 0);
	struct buffer item = { 0 }, *payload = &stream->chunks[0].payload;
	static const uint8_t head[3] = { 5, 0xfa, 0xff };
	buffer_put(&item, head, 3);
	for (unsigned at = 0; at < 19; at++) { /* 5 bits each */
		size_t bit = 5 * at;
		while (item.nbytes < 3 + (bit + 5 + 7) / 8)
			buffer_put_u8(&item, 0);
		item.data[3 + bit / 8] |= (uint8_t)(packed[at] << (bit % 8));
		if (bit % 8 > 3)
			item.data[3 + bit / 8 + 1] |= (uint8_t)(packed[at] >> (8 - bit % 8));
	}
	hm_item(payload, item.data, item.nbytes);
	buffer_free(&item);
	buffer_put(payload, &first, 2);
	hm_packed(payload, 16, raw, 40);
}

static void add_coded(struct sample *s)
{
	uint8_t words[300], raw[200], packed_raw[150] = { 0 };
	uint16_t wide[200], coded[200];
	uint32_t state = 3;
	for (unsigned i = 0; i < 300; i++)
		words[i] = i < 256 ? (uint8_t)(next_random(&state) % 4) : (uint8_t)i;
	struct hm_stream *stream = add(s, "h.huff", "U8", 8, words, 300, 256, P_HUFF, 1, 300, 0);
	stream->nvariants = 2;
	stream->program[1] = P_RAW8;
	stream->chunks[0].noperands = 1;
	stream->chunks[0].operand[0] = T_HUFF;
	stream->chunks[1].variant = 1;
	put_coded(s->hm, &stream->chunks[0].payload, T_HUFF, (struct kn_enc_args){ .src = words, .n = 256 });
	hm_packed(&stream->chunks[1].payload, 8, words + 256, 44);

	for (unsigned i = 0; i < 200; i++) {
		uint32_t r = next_random(&state);
		raw[i] = (uint8_t)(r & 63);
		coded[i] = r >> 8 & 31 ? (r >> 13 & 1 ? 5 : 700) : r >> 14 & 1023;
		wide[i] = (uint16_t)(raw[i] | coded[i] << 6);
	}
	stream = add(s, "h.wide", "U16", 16, wide, 200, 0, P_WIDE, 1, 200, 0);
	struct buffer packed = { 0 };
	hm_packed(&packed, 6, raw, 200);
	memcpy(packed_raw, packed.data, sizeof packed_raw);
	buffer_free(&packed);
	stream->chunks[0].noperands = 1;
	stream->chunks[0].operand[0] = T_WIDE;
	buffer_put(&stream->chunks[0].payload, packed_raw, 150 - BC_CARRY_NBYTES);
	put_coded(s->hm, &stream->chunks[0].payload, T_WIDE,
		  (struct kn_enc_args){ .src = coded, .n = 200, .carry = packed_raw + 150 - BC_CARRY_NBYTES });
}

static void add_scan(struct sample *s)
{
	static const uint64_t words[3] = { 1, 0xff00ff00ff00ff00ull, 5 };
	uint64_t raw[3] = { words[0], words[1] ^ words[0], words[2] ^ words[1] };
	struct hm_stream *stream = add(s, "quo\"ted\n", "U64", 64, words, 3, 0, P_SCAN, 1, 3, 0);
	/* The payload of the child comes first: instruction order. */
	buffer_put(&stream->chunks[0].payload, raw + 1, 16);
	buffer_put(&stream->chunks[0].payload, raw, 8);
}

/* Dictionaries for 8 words each: 3 of 2 words in the first chunk, 2 of 3 in the second; every third word of the other tensor is not 7. */
static void add_chosen(struct sample *s)
{
	uint32_t words[30], dictionary[2][6];
	uint8_t index[30], sparse[21], values[7], mask[6] = { 0 };
	for (unsigned i = 0; i < 30; i++) {
		const unsigned chunk = i / 20, at = i % 20, entries = 2 + chunk;
		index[i] = (uint8_t)(i % entries);
		words[i] = 1000 * (at / 8) + 50 * chunk + index[i];
		dictionary[chunk][at / 8 * entries + index[i]] = words[i];
	}
	struct hm_stream *stream = add(s, "h.chosen", "F32", 32, words, 30, 20, P_LOOKUP, 1, 30, 0);
	for (unsigned k = 0; k < 2; k++) {
		stream->chunks[k].noperands = 1;
		stream->chunks[k].operand[0] = 6;
		hm_packed(&stream->chunks[k].payload, 32, dictionary[k], 6);
		hm_packed(&stream->chunks[k].payload, 3, index + 20 * k, k ? 10 : 20);
	}
	for (unsigned i = 0; i < 21; i++) {
		sparse[i] = i % 3 ? 7 : (uint8_t)(100 + i);
		if (i % 3 == 0)
			values[i / 3] = sparse[i], mask[i / 4] |= (uint8_t)(1 << i % 4);
	}
	stream = add(s, "h.sparse", "U8", 8, sparse, 21, 0, P_SCATTER, 1, 21, 0);
	stream->chunks[0].noperands = 1;
	stream->chunks[0].operand[0] = 7;
	hm_packed(&stream->chunks[0].payload, 8, values, 7);
	hm_packed(&stream->chunks[0].payload, 4, mask, 6);
}

/* Names that stand in the header are given by their distance. */
static void place_names(struct sample *s)
{
	int64_t end = 0;
	for (unsigned i = S_CLASSED; i < S_COUNT; i++) {
		struct hm_stream *stream = &s->hm->stream[i];
		const uint8_t *found = memmem(s->header.data, s->header.nbytes, stream->name, stream->name_nbytes);
		if (!found)
			continue;
		stream->name_in_header = true;
		stream->name_distance = (found - s->header.data) - end;
		end = found - s->header.data + (int64_t)stream->name_nbytes;
	}
}

void sample_make(struct sample *s)
{
	static const char header[] =
		"{\"h.wide\":0,\"h.classed\":1,\"h.tied\":2,\"gated\":3,\"empty\":4,\"step\":5,\"odd\":6,\"woven\":7,\"h.huff\":8,"
		"\"quo\\\"ted\\n\":9,\"h.chosen\":10,\"h.sparse\":11}  ";
	uint8_t columns[32 + KN_CLASS_PAD];
	*s = (struct sample){ .hm = alloc_handmade() };
	make_programs(s->hm);
	make_tables(s->hm);
	buffer_put(&s->header, header, sizeof header - 1);
	struct hm_stream *stream = hm_stream(s->hm, AR_HEADER, 8, header, sizeof header - 1, 0, P_RAW8);
	hm_packed(&stream->chunks[0].payload, 8, header, sizeof header - 1);
	add_classes(s, columns);
	add_classed(s, columns);
	add_gate(s);
	add_small(s);
	add_weave(s);
	add_coded(s);
	add_scan(s);
	add_chosen(s);
	place_names(s);
	assert(s->hm->nstreams == S_COUNT && s->hm->nprograms == P_COUNT);
}

void sample_free(struct sample *s)
{
	free_handmade(s->hm);
	buffer_free(&s->header);
	buffer_free(&s->data);
}

/* handmade.c: archives made by hand (handmade.h). SPDX-License-Identifier: Apache-2.0 */
#include "tests/handmade.h"

#include <stdlib.h>
#include <xxhash.h>

#include "common/lzp.h"
#include "kernels/kernel.h"

struct handmade *alloc_handmade(void) { return calloc(1, sizeof(struct handmade)); }

void free_handmade(struct handmade *hm)
{
	for (unsigned i = 0; i < HM_TABLES; i++)
		buffer_free(&hm->table[i]);
	for (unsigned i = 0; i < HM_STREAMS; i++)
		for (unsigned k = 0; k < HM_CHUNKS; k++)
			buffer_free(&hm->stream[i].chunks[k].payload);
	for (unsigned i = 0; i < AR_SECTIONS; i++)
		buffer_free(&hm->section[i].extra);
	buffer_free(&hm->payload_extra);
	free(hm);
}

unsigned hm_program(struct handmade *hm, unsigned ninstr, const struct bc_instr *instr)
{
	memcpy(hm->instr[hm->nprograms], instr, ninstr * sizeof *instr);
	hm->ninstr[hm->nprograms] = ninstr;
	return hm->nprograms++;
}

unsigned hm_table(struct handmade *hm, uint8_t kind, const void *body, size_t nbytes)
{
	hm->table_kind[hm->ntables] = kind;
	buffer_put(&hm->table[hm->ntables], body, nbytes);
	return hm->ntables++;
}

struct hm_stream *hm_stream(struct handmade *hm, uint8_t kind, unsigned width, const void *words, uint64_t n, uint64_t chunk,
			    unsigned program)
{
	struct hm_stream *stream = &hm->stream[hm->nstreams++];
	unsigned size = word_nbytes(width);
	*stream = (struct hm_stream){ .kind = kind, .width = (uint8_t)width, .nwords = n, .chunk = chunk };
	stream->nvariants = n > 0;
	stream->program[0] = program;
	for (uint64_t at = 0; at < n; at += chunk ? chunk : n) {
		uint64_t part = chunk ? MIN(chunk, n - at) : n;
		stream->chunks[stream->nchunks++].sum = XXH3_64bits((const uint8_t *)words + at * size, part * size);
	}
	return stream;
}

void hm_tensor(struct hm_stream *stream, const char *name, const char *dtype, uint64_t ndim, const uint64_t *dim)
{
	const struct ar_dtype *known = dtype_by_name(dtype, strlen(dtype));
	stream->name = name;
	stream->name_nbytes = strlen(name);
	stream->dtype = known ? known->code : AR_DTYPE_OTHER;
	stream->dtype_name = dtype;
	stream->dtype_nbytes = strlen(dtype);
	stream->data_nbytes = stream->nwords * word_nbytes(stream->width);
	stream->ndim = ndim;
	for (uint64_t i = 0; i < ndim; i++)
		stream->dim[i] = dim[i];
}

void hm_packed(struct buffer *payload, unsigned width, const void *words, uint64_t n)
{
	unsigned __int128 bits = 0;
	unsigned held = 0;
	for (uint64_t i = 0; i < n; i++) {
		bits |= (unsigned __int128)get_word(words, word_nbytes(width), i) << held;
		for (held += width; held >= 8; held -= 8, bits >>= 8)
			buffer_put_u8(payload, (uint8_t)bits);
	}
	if (held)
		buffer_put_u8(payload, (uint8_t)bits);
}

void hm_item(struct buffer *payload, const void *bytes, size_t nbytes)
{
	uint8_t length[4];
	store_u32(length, (uint32_t)nbytes);
	buffer_put(payload, length, 4);
	buffer_put(payload, bytes, nbytes);
}

static void put_count(struct buffer *out, const struct handmade *hm, enum ar_section section, unsigned count)
{
	buffer_put_varint(out, (uint64_t)((int64_t)count + hm->section[section].count_change));
}

static void put_code(const struct handmade *hm, struct buffer *out)
{
	put_count(out, hm, AR_CODE, hm->nprograms);
	for (unsigned i = 0; i < hm->nprograms; i++) {
		buffer_put_varint(out, hm->ninstr[i]);
		buffer_put(out, hm->instr[i], MIN(hm->ninstr[i], (unsigned)HM_INSTR) * sizeof hm->instr[i][0]);
	}
}

static unsigned lowest_version(const struct handmade *hm)
{
	unsigned version = hm->flags ? 2 : 1;
	for (unsigned i = 0; i < AR_SECTIONS; i++)
		version = hm->section[i].predicted ? 2 : version;
	for (unsigned i = 0; i < hm->nprograms; i++) {
		struct bc_program program = { .ninstr = (uint16_t)MIN(hm->ninstr[i], (unsigned)HM_INSTR) };
		for (unsigned k = 0; k < program.ninstr; k++) {
			const struct bc_opinfo *info = bc_opinfo(hm->instr[i][k].op);
			program.instr[k] = hm->instr[i][k];
			version = info ? MAX(version, info->since) : version;
		}
		if (program_link(&program, NULL) == BRV_OK)
			version = MAX(version, program_since(&program));
	}
	return version;
}

static void put_tables(const struct handmade *hm, struct buffer *out)
{
	put_count(out, hm, AR_TABL, hm->ntables);
	for (unsigned i = 0; i < hm->ntables; i++) {
		buffer_put_u8(out, hm->table_kind[i]);
		buffer_put_varint(out, hm->table[i].nbytes + (uint64_t)hm->table_change[i]);
		buffer_put(out, hm->table[i].data, hm->table[i].nbytes);
	}
}

static void put_name(const struct hm_stream *stream, struct buffer *out)
{
	buffer_put_zigzag(out, stream->name_distance);
	buffer_put_varint(out, stream->name_nbytes * 2 + !stream->name_in_header);
	if (!stream->name_in_header)
		buffer_put(out, stream->name, stream->name_nbytes);
}

static void put_tensor(const struct hm_stream *stream, struct buffer *out)
{
	buffer_put_u8(out, stream->dtype);
	if (stream->dtype == AR_DTYPE_OTHER) {
		buffer_put_varint(out, stream->dtype_nbytes);
		buffer_put(out, stream->dtype_name, stream->dtype_nbytes);
		buffer_put_varint(out, stream->data_nbytes);
	}
	buffer_put_varint(out, stream->ndim);
	for (uint64_t i = 0; i < MIN(stream->ndim, 4); i++)
		buffer_put_varint(out, stream->dim[i]);
}

static void put_geometry(const struct hm_stream *stream, struct buffer *out)
{
	buffer_put_varint(out, stream->geometry);
	if (stream->geometry == 0)
		return;
	buffer_put_varint(out, stream->rows);
	if (stream->rows)
		buffer_put_u8(out, stream->kr);
	buffer_put_varint(out, stream->columns);
	if (stream->columns)
		buffer_put_u8(out, stream->kc);
}

static void put_stream(const struct hm_stream *stream, bool named, struct buffer *out)
{
	buffer_put_u8(out, stream->kind);
	if (stream->kind == AR_TENSOR && named)
		put_name(stream, out);
	if (stream->kind == AR_TENSOR)
		put_tensor(stream, out);
	else
		buffer_put_varint(out, stream->nwords);
	buffer_put_u8(out, stream->width);
	buffer_put_varint(out, stream->chunk);
	if (stream->kind == AR_TENSOR)
		put_geometry(stream, out);
	buffer_put_varint(out, stream->nvariants);
	for (uint64_t i = 0; i < MIN(stream->nvariants, (uint64_t)HM_VARIANTS); i++)
		buffer_put_varint(out, stream->program[i]);
	for (unsigned k = 0; k < stream->nchunks; k++) {
		const struct hm_chunk *chunk = &stream->chunks[k];
		if (stream->nvariants > 1)
			buffer_put_u8(out, chunk->variant);
		for (unsigned i = 0; i < chunk->noperands; i++)
			buffer_put_varint(out, chunk->operand[i]);
		buffer_put_varint(out, chunk->claims ? chunk->payload_claim : chunk->payload.nbytes);
	}
}

static void put_index(const struct handmade *hm, struct buffer *indx, struct buffer *sums, struct buffer *payload)
{
	put_count(indx, hm, AR_INDX, hm->nstreams);
	for (unsigned i = 0; i < hm->nstreams; i++) {
		const struct hm_stream *stream = &hm->stream[i];
		put_stream(stream, !(hm->flags & AR_FLAG_ENTRIES), indx);
		for (unsigned k = 0; k < stream->nchunks; k++) {
			buffer_put_u64(sums, stream->chunks[k].sum);
			buffer_put(payload, stream->chunks[k].payload.data, stream->chunks[k].payload.nbytes);
		}
	}
}

/* A section as form 1: a code of 8 bits for each byte value. */
static void code_section(struct buffer *section)
{
	uint8_t body[130] = { 0, 255 };
	struct kn_table *table;
	memset(body + 2, 0x88, 128);
	enum brv_status status = table_expand(TABLE_HUFF, (struct span){ body, sizeof body }, &table, NULL);
	assert(status == BRV_OK);
	(void)status;
	size_t bound = kn_encode_bound(section->nbytes);
	const struct kn_enc_args args = {
		.dst = malloc(bound), .src = section->data, .n = section->nbytes, .table = table, .scratch = malloc(bound)
	};
	size_t nbytes = kn_sets[0]->enc[TABLE_HUFF](&args);
	section->nbytes = 0;
	buffer_put(section, body, sizeof body);
	buffer_put(section, args.dst, nbytes);
	free(args.dst);
	free(args.scratch);
	free(table);
}

/* A section as form 2; an empty one stays as it is, and is wrong. */
static void predict_section(struct buffer *section)
{
	struct buffer coded = { 0 };
	if (section->nbytes)
		lzp_encode(section->data, section->nbytes, &coded);
	buffer_free(section);
	*section = coded;
}

void hm_write(const struct handmade *hm, struct buffer *out)
{
	struct buffer section[AR_SECTIONS] = { 0 }, payload = { 0 };
	struct ar_prelude prelude = { .version = (uint16_t)(hm->version ? hm->version : lowest_version(hm)), .flags = hm->flags };
	uint8_t bytes[AR_PRELUDE_NBYTES] = { 0 };

	put_code(hm, &section[AR_CODE]);
	put_tables(hm, &section[AR_TABL]);
	put_index(hm, &section[AR_INDX], &section[AR_SUMS], &payload);
	buffer_put(&payload, hm->payload_extra.data, hm->payload_extra.nbytes);
	*out = (struct buffer){ 0 };
	buffer_put(out, bytes, sizeof bytes);
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		const struct hm_section *how = &hm->section[i];
		buffer_put(&section[i], how->extra.data, how->extra.nbytes);
		prelude.section[i].form = how->form + how->huffman + 2 * how->predicted;
		prelude.section[i].decoded_nbytes = section[i].nbytes + (uint64_t)how->decoded_change;
		if (how->huffman)
			code_section(&section[i]);
		if (how->predicted)
			predict_section(&section[i]);
		prelude.section[i].stored_nbytes = section[i].nbytes + (uint64_t)how->stored_change;
		buffer_put(out, section[i].data, section[i].nbytes);
		buffer_free(&section[i]);
	}
	prelude.sections_sum = XXH3_64bits(out->data + AR_PRELUDE_NBYTES, out->nbytes - AR_PRELUDE_NBYTES) + hm->bad_sections_sum;
	buffer_put(out, payload.data, payload.nbytes);
	prelude.payload_nbytes = payload.nbytes + (uint64_t)hm->payload_change;
	prelude.archive_nbytes = out->nbytes + (uint64_t)hm->archive_change;
	buffer_free(&payload);
	prelude_write(&prelude, out->data);
}

void hm_fix_sums(uint8_t *archive, size_t nbytes)
{
	uint64_t stored = 0;
	for (unsigned i = 0; i < AR_SECTIONS; i++)
		stored += load_u64(archive + 32 + 24 * i + 8);
	if (stored <= nbytes - AR_PRELUDE_NBYTES)
		store_u64(archive + 128, XXH3_64bits(archive + AR_PRELUDE_NBYTES, stored));
	store_u64(archive + 136, XXH3_64bits(archive, 136));
}

/* emit.c: the archive writer. Programs and tables that are equal are stored once. SPDX-License-Identifier: Apache-2.0 */
#include "synth/emit.h"

#include <stdlib.h>
#include <xxhash.h>

#include "common/lzp.h"
#include "synth/spool.h"

/* Byte strings, each stored once, found again by hash. */
struct pool_of_bytes {
	struct buffer bytes;            /* serialised entries */
	uint32_t count, capacity, slots;
	uint32_t *slot;                 /* hash table of entry + 1 */
	uint64_t *hash;                 /* by entry: hashes of 64 bits are taken as identity together with the size */
};

struct record {
	enum ar_kind kind;
	const struct tensor *tensor;
	uint8_t width, kr, kc, nvariants;
	uint64_t nwords, chunk_words, row_words, row_stream, col_stream, nchunks, ref_tensor;
	uint16_t program[ENCODE_MAX_VARIANTS];
	uint8_t ntables[ENCODE_MAX_VARIANTS], ncounts[ENCODE_MAX_VARIANTS];
	uint16_t table[ENCODE_MAX_VARIANTS][ENCODE_MAX_TABLES];
	bool is_ref[ENCODE_MAX_VARIANTS];
	struct coded_chunk *chunk;
};

struct records {
	struct record *at;
	size_t count, capacity;
};

struct emitter {
	struct pool_of_bytes programs, tables;
	unsigned version;               /* the lowest that has all ops of the programs, and the flags */
	uint16_t flags;
	struct records header, classes, tensors;
	struct buffer header_payload, class_payload;
	struct spool payload;
};

static bool rehash(struct pool_of_bytes *pool)
{
	const uint32_t slots = pool->slots ? 2 * pool->slots : 256;
	uint32_t *slot = calloc(slots, sizeof(*slot));
	uint64_t *hash = realloc(pool->hash, slots / 2 * sizeof(*hash));

	if (hash)
		pool->hash = hash;
	if (!slot || !hash) {
		free(slot);
		return false;
	}
	free(pool->slot);
	pool->slot = slot, pool->slots = slots, pool->capacity = slots / 2;
	for (uint32_t i = 0; i < pool->count; i++) {
		uint32_t at = (uint32_t)pool->hash[i] & (slots - 1);
		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = i + 1;
	}
	return true;
}

/* The number of an entry, added if it is new. */
static enum brv_status intern(struct pool_of_bytes *pool, const struct buffer *entry, uint32_t limit, uint16_t *number, struct error *err)
{
	const uint64_t hash = XXH3_64bits_withSeed(entry->data, entry->nbytes, entry->nbytes);

	if (entry->failed || (pool->count == pool->capacity && !rehash(pool)))
		return fail(err, BRV_MEMORY, "no memory for the archive's tables");
	uint32_t at = (uint32_t)hash & (pool->slots - 1);
	for (; pool->slot[at]; at = (at + 1) & (pool->slots - 1))
		if (pool->hash[pool->slot[at] - 1] == hash) {
			*number = (uint16_t)(pool->slot[at] - 1);
			return BRV_OK;
		}
	if (pool->count == limit)
		return fail(err, BRV_LIMIT, "more than %u different tables or programs", limit);
	pool->slot[at] = pool->count + 1;
	pool->hash[pool->count] = hash;
	*number = (uint16_t)pool->count++;
	buffer_put(&pool->bytes, entry->data, entry->nbytes);
	return pool->bytes.failed ? fail(err, BRV_MEMORY, "no memory for the archive's tables") : BRV_OK;
}

static void pool_free(struct pool_of_bytes *pool)
{
	buffer_free(&pool->bytes);
	free(pool->slot);
	free(pool->hash);
}

struct emitter *alloc_emitter(const char *directory, uint64_t spool_nbytes)
{
	struct emitter *e = calloc(1, sizeof(*e));
	if (e)
		e->version = 1, spool_init(&e->payload, directory, spool_nbytes);
	return e;
}

static void free_records(struct records *records)
{
	for (size_t i = 0; i < records->count; i++)
		free(records->at[i].chunk);
	free(records->at);
}

void free_emitter(struct emitter *e)
{
	if (!e)
		return;
	pool_free(&e->programs);
	pool_free(&e->tables);
	free_records(&e->header);
	free_records(&e->classes);
	free_records(&e->tensors);
	buffer_free(&e->header_payload);
	buffer_free(&e->class_payload);
	spool_free(&e->payload);
	free(e);
}

static enum brv_status intern_program(struct emitter *e, const struct bc_program *program, uint16_t *number, struct error *err)
{
	struct buffer entry = { 0 };

	buffer_put_varint(&entry, program->ninstr);
	buffer_put(&entry, program->instr, program->ninstr * sizeof(program->instr[0]));
	enum brv_status status = intern(&e->programs, &entry, BC_MAX_PROGRAMS, number, err);
	buffer_free(&entry);
	return status;
}

static enum brv_status intern_table(struct emitter *e, uint8_t kind, const struct buffer *body, uint16_t *number, struct error *err)
{
	struct buffer entry = { 0 };

	buffer_put_u8(&entry, kind);
	buffer_put_varint(&entry, body->nbytes);
	buffer_put(&entry, body->data, body->nbytes);
	enum brv_status status = intern(&e->tables, &entry, AR_MAX_TABLES, number, err);
	buffer_free(&entry);
	return status;
}

static enum brv_status add_record(struct emitter *e, struct records *records, struct coded_stream *s, struct record **out, struct error *err)
{
	if (records->count == records->capacity) {
		size_t capacity = records->capacity ? 2 * records->capacity : 64;
		struct record *at = realloc(records->at, capacity * sizeof(*at));
		if (!at)
			return fail(err, BRV_MEMORY, "no memory for %zu streams", capacity);
		records->at = at, records->capacity = capacity;
	}
	struct record *r = &records->at[records->count];
	*r = (struct record){ .width = (uint8_t)s->width, .nwords = s->nwords, .chunk_words = s->chunk_words, .nchunks = s->nchunks,
			      .nvariants = s->nwords ? (uint8_t)s->nvariants : 0, .ref_tensor = s->ref_tensor };
	for (unsigned v = 0; v < r->nvariants; v++) {
		const struct bc_program *program = &s->variant[v].program;
		TRY(intern_program(e, program, &r->program[v], err));
		e->version = MAX(e->version, program_since(program));
		r->is_ref[v] = program->instr[0].op == OP_REF, r->ncounts[v] = (uint8_t)program->ncounts;
		for (unsigned i = 0; i < program->ninstr; i++) {
			const uint8_t kind = bc_opinfo(program->instr[i].op)->table;
			if (kind == TABLE_NONE)
				continue;
			TRY(intern_table(e, kind, &s->table_body[s->variant[v].table[i]], &r->table[v][r->ntables[v]++], err));
		}
	}
	r->chunk = s->chunk, s->chunk = NULL;
	records->count++;
	*out = r;
	return BRV_OK;
}

enum brv_status emit_header(struct emitter *e, struct coded_stream *stream, uint16_t flags, const struct buffer *payload, struct error *err)
{
	struct record *r;

	TRY(add_record(e, &e->header, stream, &r, err));
	r->kind = AR_HEADER;
	e->flags = flags, e->version = MAX(e->version, flags ? 2u : 1u);
	buffer_put(&e->header_payload, payload->data, payload->nbytes);
	return e->header_payload.failed ? fail(err, BRV_MEMORY, "no memory for the header") : BRV_OK;
}

enum brv_status emit_class(struct emitter *e, struct coded_stream *stream, const struct buffer *payload, uint64_t *number, struct error *err)
{
	struct record *r;

	TRY(add_record(e, &e->classes, stream, &r, err));
	r->kind = AR_CLASS;
	*number = e->classes.count;
	buffer_put(&e->class_payload, payload->data, payload->nbytes);
	return e->class_payload.failed ? fail(err, BRV_MEMORY, "no memory for class streams") : BRV_OK;
}

enum brv_status emit_tensor(struct emitter *e, const struct tensor *tensor, struct coded_stream *stream, uint64_t row_stream,
			    uint64_t col_stream, struct error *err)
{
	struct record *r;

	TRY(add_record(e, &e->tensors, stream, &r, err));
	r->kind = AR_TENSOR, r->tensor = tensor;
	r->row_stream = row_stream, r->col_stream = col_stream;
	r->row_words = row_stream || col_stream ? stream->classes.row_words : 0;
	r->kr = stream->classes.kr, r->kc = stream->classes.kc;
	return BRV_OK;
}

enum brv_status emit_payload(struct emitter *e, struct buffer *payload, struct error *err) { return spool_take(&e->payload, payload, err); }

uint64_t emit_payload_nbytes(const struct emitter *e) { return e->header_payload.nbytes + e->class_payload.nbytes + e->payload.nbytes; }

/* *name_end: where the previous name taken from the header ended. */
static void put_name(struct buffer *index, const struct tensor *t, int64_t *name_end)
{
	if (t->name_offset >= 0) {
		buffer_put_zigzag(index, t->name_offset - *name_end);
		buffer_put_varint(index, (uint64_t)t->name_nbytes << 1);
		*name_end = t->name_offset + (int64_t)t->name_nbytes;
	} else {
		buffer_put_zigzag(index, 0);
		buffer_put_varint(index, (uint64_t)t->name_nbytes << 1 | 1);
		buffer_put(index, t->name, t->name_nbytes);
	}
}

static void put_dtype_and_shape(struct buffer *index, const struct tensor *t)
{
	buffer_put_u8(index, t->dtype->code);
	if (t->dtype->code == AR_DTYPE_OTHER) {
		buffer_put_varint(index, strlen(t->dtype_name));
		buffer_put(index, t->dtype_name, strlen(t->dtype_name));
		buffer_put_varint(index, t->nbytes);
	}
	buffer_put_varint(index, t->ndim);
	for (size_t i = 0; i < t->ndim; i++)
		buffer_put_varint(index, t->shape[i]);
}

static void put_chunk(const struct emitter *e, struct buffer *index, const struct record *r, const struct coded_chunk *chunk)
{
	if (r->nvariants > 1)
		buffer_put_u8(index, chunk->variant);
	for (unsigned t = 0; t < r->ntables[chunk->variant]; t++)
		buffer_put_varint(index, r->table[chunk->variant][t]);
	if (r->is_ref[chunk->variant]) {
		buffer_put_varint(index, 1 + e->classes.count + r->ref_tensor);
		buffer_put_varint(index, chunk->ref_first);
	}
	for (unsigned i = 0; i < r->ncounts[chunk->variant]; i++)
		buffer_put_varint(index, chunk->count[i]);
	buffer_put_varint(index, chunk->payload_nbytes);
}

/* Programs that no chunk uses are left out of the record. */
static void drop_unused_variants(struct record *r)
{
	bool used[ENCODE_MAX_VARIANTS] = { false };
	uint8_t to[ENCODE_MAX_VARIANTS], kept = 0;

	for (uint64_t i = 0; i < r->nchunks; i++)
		used[r->chunk[i].variant] = true;
	for (unsigned v = 0; v < r->nvariants; v++) {
		to[v] = kept;
		if (!used[v])
			continue;
		r->program[kept] = r->program[v], r->ntables[kept] = r->ntables[v], r->is_ref[kept] = r->is_ref[v];
		r->ncounts[kept] = r->ncounts[v];
		memmove(r->table[kept], r->table[v], sizeof(r->table[v]));
		kept++;
	}
	for (uint64_t i = 0; i < r->nchunks; i++)
		r->chunk[i].variant = to[r->chunk[i].variant];
	r->nvariants = kept;
}

static void put_record(const struct emitter *e, struct buffer *index, struct buffer *sums, struct record *r, int64_t *name_end)
{
	drop_unused_variants(r);
	buffer_put_u8(index, (uint8_t)r->kind);
	if (r->kind == AR_TENSOR) {
		if (!(e->flags & AR_FLAG_ENTRIES)) /* where the header marks names */
			put_name(index, r->tensor, name_end);
		put_dtype_and_shape(index, r->tensor);
	} else {
		buffer_put_varint(index, r->nwords);
	}
	buffer_put_u8(index, r->width);
	buffer_put_varint(index, r->nchunks <= 1 ? 0 : r->chunk_words);
	if (r->kind == AR_TENSOR) {
		buffer_put_varint(index, r->row_words);
		if (r->row_words) {
			buffer_put_varint(index, r->row_stream ? r->row_stream + 1 : 0);
			if (r->row_stream)
				buffer_put_u8(index, r->kr);
			buffer_put_varint(index, r->col_stream ? r->col_stream + 1 : 0);
			if (r->col_stream)
				buffer_put_u8(index, r->kc);
		}
	}
	buffer_put_varint(index, r->nvariants);
	for (unsigned v = 0; v < r->nvariants; v++)
		buffer_put_varint(index, r->program[v]);
	for (uint64_t i = 0; i < r->nchunks; i++) {
		put_chunk(e, index, r, &r->chunk[i]);
		buffer_put_u64(sums, r->chunk[i].sum);
	}
}

/* A section Huffman-coded; empty if there is no code for it. */
static void huff_section(const struct buffer *plain, struct buffer *coded)
{
	uint32_t counts[256] = { 0 };
	struct kn_table *table = NULL;
	const struct kn_set *set;

	for (size_t i = 0; i < plain->nbytes; i++)
		counts[plain->data[i]]++;
	if (train_huff(8, counts, coded) && kn_choose(&set, NULL) == BRV_OK &&
	    table_expand(TABLE_HUFF, (struct span){ coded->data, coded->nbytes }, &table, NULL) == BRV_OK) {
		const size_t bound = kn_encode_bound(plain->nbytes), head = coded->nbytes;
		uint8_t *scratch = malloc(bound), *dst = buffer_grow(coded, bound);
		const struct kn_enc_args args = { .dst = dst, .src = plain->data, .n = plain->nbytes, .table = table, .scratch = scratch };
		const size_t nbytes = dst && scratch ? set->enc[TABLE_HUFF](&args) : 0;
		coded->nbytes = nbytes ? head + nbytes : 0;
		free(scratch);
	} else {
		coded->nbytes = 0;
	}
	free(table);
}

/* A section as it is stored: in the form that costs least, opening included. Takes over plain. */
static void store_section(struct buffer *plain, const struct cost_model *model, struct buffer *out, uint64_t *form)
{
	struct buffer forms[] = { [AR_FORM_PLAIN] = *plain, [AR_FORM_HUFF] = { 0 }, [AR_FORM_LZP] = { 0 } };

	huff_section(plain, &forms[AR_FORM_HUFF]);
	if (plain->nbytes && plain->nbytes <= AR_MAX_LZP_NBYTES)
		lzp_encode(plain->data, plain->nbytes, &forms[AR_FORM_LZP]);
	double best = (double)plain->nbytes;
	*form = AR_FORM_PLAIN;
	for (unsigned i = AR_FORM_HUFF; i <= AR_FORM_LZP; i++) {
		const double cost = (double)forms[i].nbytes + model->lambda * cost_form_cycles(i) * (double)plain->nbytes;
		if (!forms[i].failed && forms[i].nbytes && cost < best)
			best = cost, *form = i;
	}
	*out = forms[*form];
	for (unsigned i = AR_FORM_PLAIN; i <= AR_FORM_LZP; i++)
		if (i != *form)
			buffer_free(&forms[i]);
}

/* The four sections, decoded. */
static void build_sections(struct emitter *e, struct buffer section[AR_SECTIONS])
{
	int64_t name_end = 0;

	buffer_put_varint(&section[AR_CODE], e->programs.count);
	buffer_put(&section[AR_CODE], e->programs.bytes.data, e->programs.bytes.nbytes);
	buffer_put_varint(&section[AR_TABL], e->tables.count);
	buffer_put(&section[AR_TABL], e->tables.bytes.data, e->tables.bytes.nbytes);
	buffer_put_varint(&section[AR_INDX], e->header.count + e->classes.count + e->tensors.count);
	struct records *const kinds[] = { &e->header, &e->classes, &e->tensors };
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
		for (size_t i = 0; i < kinds[k]->count; i++)
			put_record(e, &section[AR_INDX], &section[AR_SUMS], &kinds[k]->at[i], &name_end);
}

enum brv_status emit_finish(struct emitter *e, int fd, const struct cost_model *model, uint64_t *nbytes, struct error *err)
{
	struct buffer section[AR_SECTIONS] = { { 0 } }, all = { 0 };
	struct ar_prelude prelude = { .version = (uint16_t)e->version, .flags = e->flags, .payload_nbytes = emit_payload_nbytes(e) };
	uint8_t head[AR_PRELUDE_NBYTES];

	build_sections(e, section);
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		struct buffer stored = { 0 };
		if (section[i].failed)
			all.failed = true;
		prelude.section[i].decoded_nbytes = section[i].nbytes;
		store_section(&section[i], model, &stored, &prelude.section[i].form);
		prelude.section[i].stored_nbytes = stored.nbytes;
		prelude.version = MAX(prelude.version, (uint16_t)(prelude.section[i].form == AR_FORM_LZP ? 2 : 1));
		buffer_put(&all, stored.data, stored.nbytes);
		buffer_free(&stored);
	}
	enum brv_status status = all.failed ? fail(err, BRV_MEMORY, "no memory for the index") : BRV_OK;
	prelude.sections_sum = XXH3_64bits(all.data, all.nbytes);
	prelude.archive_nbytes = *nbytes = AR_PRELUDE_NBYTES + all.nbytes + prelude.payload_nbytes;
	prelude_write(&prelude, head);
	if (status == BRV_OK)
		status = write_all(fd, head, sizeof(head), err);
	if (status == BRV_OK)
		status = write_all(fd, all.data, all.nbytes, err);
	if (status == BRV_OK)
		status = write_all(fd, e->header_payload.data, e->header_payload.nbytes, err);
	if (status == BRV_OK)
		status = write_all(fd, e->class_payload.data, e->class_payload.nbytes, err);
	buffer_free(&all);
	return status == BRV_OK ? spool_copy(&e->payload, fd, err) : status;
}

/* parse.c: sections -> arrays; structure only (docs/FORMAT.md, 3, 4 and 6).
 *
 * Every count is compared with the bytes that are left before memory is taken for it. Chunks are counted by SUMS, which has 8 bytes
 * for each. What has no count up front (dims, operands) goes into arrays that grow. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/parse.h"

#include <stdlib.h>

#include "runtime/sections.h"

enum { MIN_PROGRAM_NBYTES = 1 + BC_INSTR_NBYTES, MIN_TABLE_NBYTES = 2, MIN_STREAM_NBYTES = 5 };

/* An array that grows while a section is read. */
struct grown {
	size_t count, capacity;
};

struct parser {
	struct view *view;
	struct cursor at;
	uint64_t limit;
	struct grown dims, variants, operands, text;
	struct error *err;
};

static enum brv_status damaged_index(const struct parser *p, const char *what)
{
	return fail(p->err, BRV_DAMAGED, "stream %u of the index: %s", p->view->nstreams, what);
}

static enum brv_status take(struct view *view, uint64_t limit, uint64_t nbytes, struct error *err)
{
	if (nbytes > limit || view->nbytes > limit - nbytes)
		return fail(err, BRV_LIMIT, "the archive's index needs more than the memory limit of %llu bytes", (unsigned long long)limit);
	view->nbytes += nbytes;
	return BRV_OK;
}

/* Memory for count elements, counted; at least 1 byte, so that NULL always means failure. */
static enum brv_status allocate(struct parser *p, uint64_t count, size_t size, void *out)
{
	TRY(take(p->view, p->limit, count * size, p->err));
	void *memory = malloc(MAX(count * size, 1));
	if (!memory)
		return fail(p->err, BRV_MEMORY, "no memory for %llu bytes of index", (unsigned long long)(count * size));
	memcpy(out, &memory, sizeof memory);
	return BRV_OK;
}

/* Room for `more` elements at the end of *array. */
static enum brv_status grow(struct parser *p, void *array, struct grown *grown, size_t more, size_t size)
{
	void *memory;
	if (more <= grown->capacity - grown->count)
		return BRV_OK;
	size_t capacity = MAX(grown->count + more, grown->capacity * 2);
	TRY(take(p->view, p->limit, (capacity - grown->capacity) * size, p->err));
	memcpy(&memory, array, sizeof memory);
	memory = realloc(memory, capacity * size);
	if (!memory)
		return fail(p->err, BRV_MEMORY, "no memory for %zu bytes of index", capacity * size);
	memcpy(array, &memory, sizeof memory);
	grown->capacity = capacity;
	return BRV_OK;
}

static enum brv_status start_section(struct parser *p, enum ar_section section, const char *name, uint64_t max, uint64_t min_nbytes,
				     uint64_t *count)
{
	struct span bytes = p->view->section[section];
	p->at = (struct cursor){ .at = bytes.ptr, .end = bytes.ptr + bytes.nbytes };
	*count = cursor_varint(&p->at);
	if (p->at.bad || *count > cursor_left(&p->at) / min_nbytes)
		return fail(p->err, BRV_DAMAGED, "section %s is too short for what it says it holds", name);
	if (*count > max)
		return fail(p->err, BRV_LIMIT, "section %s: expected at most %llu entries, found %llu", name, (unsigned long long)max,
			    (unsigned long long)*count);
	return BRV_OK;
}

static enum brv_status end_section(struct parser *p, const char *name)
{
	if (p->at.bad || cursor_left(&p->at) > 0)
		return fail(p->err, BRV_DAMAGED, "section %s is %s", name, p->at.bad ? "cut short" : "longer than what it holds");
	return BRV_OK;
}

static enum brv_status parse_code(struct parser *p)
{
	struct view *view = p->view;
	uint64_t count;
	TRY(start_section(p, AR_CODE, "CODE", BC_MAX_PROGRAMS, MIN_PROGRAM_NBYTES, &count));
	TRY(allocate(p, count, sizeof *view->program, &view->program));
	for (uint64_t i = 0; i < count; i++) {
		struct bc_program *program = &view->program[i];
		uint64_t n = cursor_varint(&p->at);
		if (n == 0 || n > BC_MAX_INSTR)
			return fail(p->err, BRV_DAMAGED, "program %u: expected 1 to %d instructions, found %llu", view->nprograms, BC_MAX_INSTR,
				    (unsigned long long)n);
		const uint8_t *bytes = cursor_bytes(&p->at, n * BC_INSTR_NBYTES);
		if (!bytes)
			return fail(p->err, BRV_DAMAGED, "program %u is cut short", view->nprograms);
		memcpy(program->instr, bytes, n * BC_INSTR_NBYTES);
		program->ninstr = (uint16_t)n;
		view->nprograms++;
	}
	return end_section(p, "CODE");
}

static enum brv_status parse_tables(struct parser *p)
{
	struct view *view = p->view;
	uint64_t count;
	TRY(start_section(p, AR_TABL, "TABL", AR_MAX_TABLES, MIN_TABLE_NBYTES, &count));
	TRY(allocate(p, count, sizeof *view->table, &view->table));
	for (uint64_t i = 0; i < count; i++) {
		uint8_t kind = cursor_u8(&p->at);
		uint64_t nbytes = cursor_varint(&p->at);
		const uint8_t *bytes = cursor_bytes(&p->at, nbytes);
		if (!bytes)
			return fail(p->err, BRV_DAMAGED, "table %u is cut short", view->ntables);
		view->table[view->ntables++] = (struct table_body){ kind, { bytes, nbytes } };
	}
	return end_section(p, "TABL");
}

static enum brv_status parse_text(struct parser *p, uint64_t nbytes, uint64_t *at)
{
	const uint8_t *bytes = cursor_bytes(&p->at, nbytes);
	if (!bytes)
		return damaged_index(p, "a name is cut short");
	TRY(grow(p, &p->view->text, &p->text, nbytes + 1, 1));
	*at = p->text.count;
	memcpy(p->view->text + *at, bytes, nbytes);
	p->view->text[*at + nbytes] = 0;
	p->text.count += nbytes + 1;
	return BRV_OK;
}

static enum brv_status parse_name(struct parser *p, struct stream *stream)
{
	if (p->view->prelude.flags & AR_FLAG_ENTRIES) {
		stream->name_in_header = true; /* where, the header itself marks */
		return BRV_OK;
	}
	stream->name_at = cursor_zigzag(&p->at);
	uint64_t m = cursor_varint(&p->at);
	if (m / 2 > AR_MAX_NAME_NBYTES)
		return damaged_index(p, "its name is longer than 2^24 bytes");
	stream->name_nbytes = (uint32_t)(m / 2);
	stream->name_in_header = m % 2 == 0;
	if (stream->name_in_header)
		return BRV_OK;
	if (stream->name_at != 0)
		return damaged_index(p, "a name of its own has a place in the header");
	uint64_t at;
	TRY(parse_text(p, m / 2, &at));
	stream->name_at = (int64_t)at;
	return BRV_OK;
}

static enum brv_status parse_dtype(struct parser *p, struct stream *stream)
{
	stream->dtype = cursor_u8(&p->at);
	if (stream->dtype != AR_DTYPE_OTHER)
		return dtype_by_code(stream->dtype) ? BRV_OK : damaged_index(p, "unknown element type");
	uint64_t nbytes = cursor_varint(&p->at);
	if (nbytes == 0 || nbytes > 64)
		return damaged_index(p, "the name of its element type is not 1 to 64 bytes");
	TRY(parse_text(p, nbytes, &stream->dtype_at));
	stream->data_nbytes = cursor_varint(&p->at);
	if (stream->data_nbytes >= 1ull << 63)
		return damaged_index(p, "its size is 2^63 bytes or more");
	return BRV_OK;
}

static enum brv_status parse_shape(struct parser *p, struct stream *stream)
{
	uint64_t ndim = cursor_varint(&p->at);
	if (ndim > AR_MAX_NDIM || ndim > cursor_left(&p->at))
		return damaged_index(p, "it has too many dimensions");
	stream->ndim = (uint32_t)ndim;
	stream->dims_at = p->dims.count;
	TRY(grow(p, &p->view->dim, &p->dims, ndim, sizeof *p->view->dim));
	for (uint64_t i = 0; i < ndim; i++)
		p->view->dim[p->dims.count++] = cursor_varint(&p->at);
	return BRV_OK;
}

/* data_nbytes from shape and type. An element has 4 bits at least, so the elements of what is below 2^66 bits can be counted in 64; a dimension of 0
 * makes it 0 whatever the others are. */
static enum brv_status measure(struct parser *p, struct stream *stream)
{
	const uint64_t *dim = p->view->dim + stream->dims_at, bits = dtype_by_code(stream->dtype)->bits;
	uint64_t nwords = 1, nbytes;
	bool over = false;
	for (uint32_t i = 0; i < stream->ndim; i++) {
		if (dim[i] == 0) {
			stream->data_nbytes = 0;
			return BRV_OK;
		}
		over = !mul_u64(nwords, dim[i], &nwords) || over;
	}
	over = !mul_u64(nwords / 8, bits, &nbytes) || over;
	nbytes += nwords % 8 * bits / 8;
	if (over || nbytes >= 1ull << 63)
		return damaged_index(p, "its shape is too large");
	if (nwords % 8 * bits % 8)
		return damaged_index(p, "its elements do not fill whole bytes");
	stream->data_nbytes = nbytes;
	return BRV_OK;
}

static enum brv_status parse_size(struct parser *p, struct stream *stream)
{
	if (stream->kind != AR_TENSOR) {
		stream->nwords = cursor_varint(&p->at);
		stream->width = cursor_u8(&p->at);
		return BRV_OK;
	}
	TRY(parse_name(p, stream));
	TRY(parse_dtype(p, stream));
	TRY(parse_shape(p, stream));
	if (stream->dtype != AR_DTYPE_OTHER)
		TRY(measure(p, stream));
	stream->width = cursor_u8(&p->at);
	if (stream->width != 8 && stream->width != 16 && stream->width != 32 && stream->width != 64)
		return damaged_index(p, "the width of its words is not 8, 16, 32 or 64");
	if (stream->data_nbytes % (stream->width / 8))
		return damaged_index(p, "its size is no multiple of its words'");
	stream->nwords = stream->data_nbytes / (stream->width / 8);
	return BRV_OK;
}

static void parse_geometry(struct parser *p, struct stream *stream)
{
	stream->geometry = cursor_varint(&p->at);
	if (stream->geometry == 0)
		return;
	/* An index is below 2^32, so a larger one is as wrong as UINT32_MAX. */
	stream->rows = (uint32_t)MIN(cursor_varint(&p->at), UINT32_MAX);
	stream->kr = stream->rows ? cursor_u8(&p->at) : 0;
	stream->columns = (uint32_t)MIN(cursor_varint(&p->at), UINT32_MAX);
	stream->kc = stream->columns ? cursor_u8(&p->at) : 0;
}

static enum brv_status parse_variants(struct parser *p, struct stream *stream)
{
	uint64_t count = cursor_varint(&p->at);
	if (count > AR_MAX_VARIANTS || (count == 0) != (stream->nwords == 0))
		return damaged_index(p, "its number of programs is wrong");
	stream->nvariants = (uint8_t)count;
	stream->variants_at = (uint32_t)p->variants.count;
	TRY(grow(p, &p->view->variant, &p->variants, count, sizeof *p->view->variant));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t program = cursor_varint(&p->at);
		if (program >= p->view->nprograms)
			return damaged_index(p, "it names a program that is not there");
		p->view->variant[p->variants.count++] = (uint16_t)program;
	}
	return BRV_OK;
}

static enum brv_status parse_chunk(struct parser *p, const struct stream *stream, uint64_t *payload_at)
{
	struct view *view = p->view;
	struct chunk *chunk = &view->chunk[view->nchunks];
	*chunk = (struct chunk){ .operands_at = (uint32_t)p->operands.count, .refs_before = view->nrefs, .payload_offset = *payload_at };
	chunk->variant = stream->nvariants > 1 ? cursor_u8(&p->at) : 0;
	if (chunk->variant >= stream->nvariants)
		return damaged_index(p, "a chunk names a program that the stream does not have");
	const struct bc_program *program = chunk_program(view, stream, chunk);
	unsigned noperands = program->ntables + 2u * program->nrefs + program->ncounts;
	if (noperands) {
		TRY(grow(p, &view->operand, &p->operands, noperands, sizeof *view->operand));
		for (unsigned i = 0; i < noperands; i++)
			view->operand[p->operands.count++] = cursor_varint(&p->at);
	}
	uint64_t nbytes = cursor_varint(&p->at);
	if (p->at.bad)
		return damaged_index(p, "it is cut short");
	if (nbytes > UINT32_MAX)
		return damaged_index(p, "a chunk's payload is 2^32 bytes or more");
	chunk->payload_nbytes = (uint32_t)nbytes;
	if (nbytes > view->prelude.payload_nbytes - *payload_at)
		return damaged_index(p, "the chunks' payloads are more than there is");
	*payload_at += nbytes;
	view->nrefs += program->nrefs;
	view->nchunks++;
	return BRV_OK;
}

static enum brv_status parse_stream(struct parser *p, uint64_t nchunks, uint64_t *payload_at)
{
	struct view *view = p->view;
	struct stream *stream = &view->stream[view->nstreams];
	const uint8_t *start = p->at.at;
	*stream = (struct stream){ .kind = cursor_u8(&p->at), .chunk_at = view->nchunks };
	if (stream->kind > AR_TENSOR)
		return damaged_index(p, "unknown kind");
	TRY(parse_size(p, stream));
	uint64_t chunk_words = cursor_varint(&p->at);
	if (chunk_words > BC_MAX_CHUNK_WORDS || (chunk_words == 0 && stream->nwords > BC_MAX_CHUNK_WORDS))
		return damaged_index(p, "its chunks are larger than 2^20 words");
	stream->chunk_words = chunk_words ? chunk_words : MAX(stream->nwords, 1);
	stream->nchunks = stream->nwords / stream->chunk_words + (stream->nwords % stream->chunk_words != 0);
	if (stream->kind == AR_TENSOR)
		parse_geometry(p, stream);
	TRY(parse_variants(p, stream));
	if (p->at.bad)
		return damaged_index(p, "it is cut short");
	if (stream->nchunks > nchunks - view->nchunks)
		return damaged_index(p, "there are more chunks than checksums");
	for (uint64_t k = 0; k < stream->nchunks; k++)
		TRY(parse_chunk(p, stream, payload_at));
	stream->record_nbytes = (uint32_t)(p->at.at - start);
	view->nclasses += stream->kind == AR_CLASS;
	view->ntensors += stream->kind == AR_TENSOR;
	view->nstreams++;
	return BRV_OK;
}

static enum brv_status parse_index(struct parser *p)
{
	struct view *view = p->view;
	uint64_t nstreams, nchunks = view->section[AR_SUMS].nbytes / 8, payload_at = 0;
	TRY(start_section(p, AR_INDX, "INDX", UINT32_MAX - 1, MIN_STREAM_NBYTES, &nstreams));
	if (view->section[AR_SUMS].nbytes % 8 || nchunks > cursor_left(&p->at))
		return fail(p->err, BRV_DAMAGED, "sections SUMS and INDX disagree about the number of chunks");
	TRY(allocate(p, nstreams, sizeof *view->stream, &view->stream));
	TRY(allocate(p, nchunks, sizeof *view->chunk, &view->chunk));
	for (uint64_t i = 0; i < nstreams; i++)
		TRY(parse_stream(p, nchunks, &payload_at));
	if (view->nchunks != nchunks)
		return fail(p->err, BRV_DAMAGED, "expected %llu chunks for the checksums, found %llu", (unsigned long long)nchunks,
			    (unsigned long long)view->nchunks);
	if (payload_at != view->prelude.payload_nbytes)
		return fail(p->err, BRV_DAMAGED, "expected %llu bytes of payload, found %llu", (unsigned long long)payload_at,
			    (unsigned long long)view->prelude.payload_nbytes);
	return end_section(p, "INDX");
}

/* ntables, nrefs and ncounts decide how long a chunk record is, so programs are linked before the index is read. */
static enum brv_status link_programs(struct view *view, struct error *err)
{
	struct error why;
	for (uint32_t i = 0; i < view->nprograms; i++) {
		enum brv_status status = program_link(&view->program[i], &why);
		if (status != BRV_OK)
			return fail(err, status, "program %u: %.200s", i, why.text);
	}
	return BRV_OK;
}

enum brv_status parse(struct view *view, struct source *source, uint64_t limit, struct error *err)
{
	struct parser p = { .view = view, .limit = limit, .err = err };
	*view = (struct view){ 0 };
	enum brv_status status = sections_read(view, source, limit, err);
	if (status == BRV_OK)
		status = parse_code(&p);
	if (status == BRV_OK)
		status = link_programs(view, err);
	if (status == BRV_OK)
		status = parse_tables(&p);
	if (status == BRV_OK)
		status = parse_index(&p);
	if (status != BRV_OK)
		view_free(view);
	return status;
}

void view_free(struct view *view)
{
	free(view->section_bytes);
	free(view->program);
	free(view->table);
	free(view->stream);
	free(view->chunk);
	free(view->dim);
	free(view->variant);
	free(view->operand);
	free(view->text);
	*view = (struct view){ 0 };
}

/* verify.c: proves every operand, number and size of a parsed archive (verify.h).
 *
 * Work per chunk is a few comparisons: what a program makes of n words is found once for each n that differs from the one before, and
 * whether a range holds a `ref` is one subtraction. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/verify.h"

#include "kernels/kernel.h"

#include <stdlib.h>

/* What the first bytes of a table's body say; the rest is checked when the table is expanded. */
struct table_head {
	uint8_t width, kr, kc;          /* HUFF: width is the smallest that holds its last symbol */
};

struct verifier {
	struct view *view;
	struct table_head *table;
	uint64_t *seen;                 /* by program: the n it was last checked for */
	uint32_t stream;                /* being checked: index and record */
	const struct stream *record;
	struct error *err;
};

static enum brv_status damaged(const struct verifier *v, const char *what)
{
	return fail(v->err, BRV_DAMAGED, "stream %u: %s", v->stream, what);
}

static unsigned bits_of(unsigned value)
{
	unsigned n = 1;
	while (value >> n)
		n++;
	return n;
}

/* Column classes of lit.rans and lit.alias: 1, 2 or 4; of lit.wide: up to 16. */
static bool classes_ok(uint8_t kr, uint8_t kc, uint8_t max_kc)
{
	return kr >= 1 && kr <= KN_MAX_ROWS && kc >= 1 && kc <= max_kc && !(kc & (kc - 1));
}

static enum brv_status verify_table(const struct verifier *v, uint32_t i)
{
	struct span body = v->view->table[i].body;
	struct table_head *head = &v->table[i];
	bool ok = false;
	switch (v->view->table[i].kind) {
	case TABLE_HUFF:
		ok = body.nbytes >= 2 && body.ptr[0] <= body.ptr[1];
		if (ok)
			*head = (struct table_head){ (uint8_t)bits_of(body.ptr[1]), 1, 1 };
		break;
	case TABLE_RANS:
		ok = body.nbytes >= 8 && body.ptr[0] >= 4 && body.ptr[0] <= 6;
		if (ok)
			*head = (struct table_head){ body.ptr[1], body.ptr[2], body.ptr[3] };
		break;
	case TABLE_WIDE:
		ok = body.nbytes >= 5;
		if (ok)
			*head = (struct table_head){ body.ptr[0], body.ptr[1], body.ptr[2] };
		break;
	case TABLE_ALIAS:
		ok = body.nbytes >= 6 && body.ptr[0] >= 4 && body.ptr[0] <= 8 && (unsigned)body.ptr[3] << body.ptr[0] <= ALIAS_MAX_ENTRIES;
		if (ok)
			*head = (struct table_head){ body.ptr[1], body.ptr[2], body.ptr[3] };
		break;
	default: return fail(v->err, BRV_VERSION, "table %u has the unknown kind %u", i, v->view->table[i].kind);
	}
	if (bc_table_since(v->view->table[i].kind) > v->view->prelude.version)
		return fail(v->err, BRV_DAMAGED, "table %u is of a kind that format version %u has not", i, v->view->prelude.version);
	const uint8_t max_kc = v->view->table[i].kind == TABLE_WIDE ? KN_MAX_COLS : RANS_MAX_COLS;
	return ok && classes_ok(head->kr, head->kc, max_kc) ? BRV_OK : fail(v->err, BRV_DAMAGED, "table %u is damaged", i);
}

/* kinds in order: the header, classes, tensors. */
static enum brv_status verify_kind(const struct verifier *v)
{
	const struct stream *stream = v->record;
	if ((stream->kind == AR_HEADER) != (v->stream == 0))
		return damaged(v, "the header is stream 0, and no other is");
	if (stream->kind == AR_CLASS && v->stream > v->view->nclasses)
		return damaged(v, "a class stream behind a tensor");
	if (stream->kind == AR_HEADER && stream->nwords > AR_MAX_HEADER_NBYTES)
		return fail(v->err, BRV_LIMIT, "expected a header of at most %d bytes, found %llu", AR_MAX_HEADER_NBYTES,
			    (unsigned long long)stream->nwords);
	if ((stream->kind == AR_HEADER && stream->width != 8) || (stream->kind == AR_CLASS && (stream->width < 1 || stream->width > 8)))
		return damaged(v, "wrong width");
	return BRV_OK;
}

/* Whether stream `axis` - 1 holds classes, or axis is 0. */
static bool axis_ok(const struct view *view, uint32_t axis)
{
	return axis == 0 || (axis - 1 < view->nstreams && view->stream[axis - 1].kind == AR_CLASS);
}

static enum brv_status verify_geometry(const struct verifier *v)
{
	const struct stream *stream = v->record;
	if (stream->geometry == 0)
		return BRV_OK;
	if (!axis_ok(v->view, stream->rows) || !axis_ok(v->view, stream->columns))
		return damaged(v, "a class stream that is none");
	if (stream->columns && v->view->stream[stream->columns - 1].nwords != stream->geometry)
		return damaged(v, "column classes that do not fit its rows");
	/* Before version 2 rows could only be the tensor's own. */
	if (v->view->prelude.version < 2 && (stream->nwords % stream->geometry ||
					     (stream->rows && v->view->stream[stream->rows - 1].nwords != stream->nwords / stream->geometry)))
		return damaged(v, "its rows do not divide it");
	if (stream->rows && (stream->kr < 2 || stream->kr > 8))
		return damaged(v, "expected 2 to 8 row classes");
	if (stream->columns && (stream->kc < 2 || stream->kc > KN_MAX_COLS || stream->kc & (stream->kc - 1)))
		return damaged(v, "expected 2, 4, 8 or 16 column classes");
	return BRV_OK;
}

static enum brv_status verify_variant(const struct verifier *v, const struct bc_program *program)
{
	const struct stream *stream = v->record;
	if (program->instr[program->ninstr - 1].width != stream->width)
		return damaged(v, "a program produces words of another width");
	if (program->nrefs && stream->kind != AR_TENSOR)
		return damaged(v, "a ref outside tensors");
	for (unsigned i = 0; i < program->ninstr; i++) {
		const struct bc_instr *instr = &program->instr[i];
		if (instr->flags & BC_CLASSED && stream->kind == AR_CLASS)
			return damaged(v, "a class stream that needs classes");
		if (instr->op == OP_GATE && (stream->rows == 0 || instr->imm >> stream->kr))
			return damaged(v, "a gate over row classes that it does not have");
	}
	return BRV_OK;
}

static enum brv_status verify_operand(const struct verifier *v, const struct bc_instr *instr, enum bc_table kind, uint64_t table)
{
	const struct view *view = v->view;
	if (table >= view->ntables || view->table[table].kind != kind)
		return damaged(v, "a chunk names a table that is not there or of another kind");
	const struct table_head *head = &v->table[table];
	if (kind == TABLE_HUFF ? head->width > instr->width : head->width != instr->width)
		return damaged(v, "a chunk names a table of another width");
	unsigned kr = instr->flags & BC_CLASSED ? v->record->kr : 1, kc = instr->flags & BC_CLASSED ? v->record->kc : 1;
	if ((head->kr != 1 && head->kr != kr) || (head->kc != 1 && head->kc != kc))
		return damaged(v, "a chunk names a table with other classes");
	return BRV_OK;
}

enum brv_status verify_refs(const struct view *view, const struct stream *stream, const struct chunk *chunk, const uint64_t *nwords,
			    struct error *err)
{
	const struct bc_program *program = chunk_program(view, stream, chunk);
	const uint64_t *ref = view->operand + chunk->operands_at + program->ntables;
	for (unsigned i = 0; i < program->ninstr; i++) {
		uint64_t end;
		if (program->instr[i].op != OP_REF)
			continue;
		uint64_t index = ref[0], first = ref[1];
		ref += 2;
		if (index >= (uint64_t)(stream - view->stream) || view->stream[index].kind != AR_TENSOR)
			return fail(err, BRV_DAMAGED, "a ref to what is no tensor before it");
		const struct stream *from = &view->stream[index];
		if (from->width != program->instr[i].width || !add_u64(first, nwords[i], &end) || end > from->nwords)
			return fail(err, BRV_DAMAGED, "a ref that does not fit the tensor it names");
		if (nwords[i] == 0)
			continue;
		/* chunk[nchunks] does not exist: behind the last chunk all refs have been counted. */
		uint64_t low = from->chunk_at + first / from->chunk_words, high = from->chunk_at + (end - 1) / from->chunk_words + 1;
		uint32_t before = high < view->nchunks ? view->chunk[high].refs_before : view->nrefs;
		if (before != view->chunk[low].refs_before)
			return fail(err, BRV_DAMAGED, "a ref to a ref");
	}
	return BRV_OK;
}

static bool has_gate(const struct bc_program *program)
{
	for (unsigned i = 0; i < program->ninstr; i++)
		if (program->instr[i].op == OP_GATE)
			return true;
	return false;
}

/* Sizes of all registers for n words with the chunk's counts, and the refs, which need them. Below a gate they are the executor's to check. */
static enum brv_status verify_words(struct verifier *v, const struct chunk *chunk, uint64_t n)
{
	const struct bc_program *program = chunk_program(v->view, v->record, chunk);
	uint64_t *seen = &v->seen[program - v->view->program], nwords[BC_MAX_INSTR];
	if ((*seen == n && program->nrefs == 0 && program->ncounts == 0) || has_gate(program))
		return BRV_OK;
	const struct bc_rows rows = { NULL, NULL };
	struct error why;
	enum brv_status status = program_words(program, n, &rows, chunk_counts(v->view, program, chunk), nwords, &why);
	if (status == BRV_OK && program->nrefs)
		status = verify_refs(v->view, v->record, chunk, nwords, &why);
	if (status != BRV_OK)
		return fail(v->err, status, "stream %u: %.200s", v->stream, why.text);
	*seen = n;
	return BRV_OK;
}

/* Whether CLASSED instruction i of chunk k, of n words, has a place among its words in all chunks, and that lies in rows that have classes. */
static bool has_place(const struct verifier *v, const struct bc_program *program, unsigned i, uint64_t k, uint64_t n)
{
	const struct stream *stream = v->record;
	uint64_t each = 0, end = 0, rows = UINT64_MAX;

	if ((k && !program_path_words(program, i, stream->chunk_words, &each)) || !program_path_words(program, i, n, &n))
		return false;
	if (stream->rows && !mul_u64(v->view->stream[stream->rows - 1].nwords, stream->geometry, &rows))
		rows = UINT64_MAX;
	return mul_u64(each, k, &each) && add_u64(each, n, &end) && end <= rows;
}

static enum brv_status verify_chunk(struct verifier *v, uint64_t k)
{
	const struct view *view = v->view;
	const struct chunk *chunk = &view->chunk[v->record->chunk_at + k];
	const struct bc_program *program = chunk_program(view, v->record, chunk);
	const uint64_t *table = view->operand + chunk->operands_at;
	for (unsigned i = 0; program->ntables && i < program->ninstr; i++) {
		enum bc_table kind = bc_opinfo(program->instr[i].op)->table;
		if (kind != TABLE_NONE)
			TRY(verify_operand(v, &program->instr[i], kind, *table++));
	}
	for (unsigned i = 0; v->record->geometry && i < program->ninstr; i++)
		if (program->instr[i].flags & BC_CLASSED && !has_place(v, program, i, k, chunk_nwords(v->record, k)))
			return damaged(v, "a chunk beyond its rows of classes");
	return verify_words(v, chunk, chunk_nwords(v->record, k));
}

static enum brv_status verify_streams(struct verifier *v)
{
	struct view *view = v->view;
	uint64_t data_offset = 0;
	for (v->stream = 0; v->stream < view->nstreams; v->stream++) {
		struct stream *stream = &view->stream[v->stream];
		v->record = stream;
		TRY(verify_kind(v));
		stream->data_offset = data_offset;
		if (stream->kind == AR_TENSOR && !add_u64(data_offset, stream->data_nbytes, &data_offset))
			return damaged(v, "the tensors' sizes add up to more than 2^63 bytes");
		TRY(verify_geometry(v));
		for (unsigned i = 0; i < stream->nvariants; i++)
			TRY(verify_variant(v, &view->program[view->variant[stream->variants_at + i]]));
		for (uint64_t k = 0; k < stream->nchunks; k++)
			TRY(verify_chunk(v, k));
	}
	if (view->nstreams == 0)
		return fail(v->err, BRV_DAMAGED, "the archive has no header");
	if (data_offset >= (1ull << 63) - view->stream[0].nwords)
		return fail(v->err, BRV_DAMAGED, "the tensors' sizes add up to more than 2^63 bytes");
	return BRV_OK;
}

enum brv_status verify(struct view *view, struct error *err)
{
	struct verifier v = { .view = view, .err = err };
	enum brv_status status = BRV_OK;
	v.table = calloc(view->ntables + 1u, sizeof *v.table);
	v.seen = calloc(view->nprograms + 1u, sizeof *v.seen); /* a chunk has at least one word, so 0 is none */
	if (!v.table || !v.seen)
		status = fail(err, BRV_MEMORY, "no memory to check the archive");
	for (uint32_t i = 0; status == BRV_OK && i < view->ntables; i++)
		status = verify_table(&v, i);
	for (uint32_t i = 0; status == BRV_OK && i < view->nprograms; i++)
		if (program_since(&view->program[i]) > view->prelude.version)
			status = fail(err, BRV_DAMAGED, "program %u has an op that format version %u has not", i, view->prelude.version);
	if (status == BRV_OK)
		status = verify_streams(&v);
	free(v.table);
	free(v.seen);
	return status;
}

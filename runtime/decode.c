/* decode.c: from ranges of the data region to chunks, and chunks to threads.
 *
 * The range is cut into cells of about 1 MiB; a cell is the chunks that begin in it, whichever tensors they belong to, so one huge
 * tensor and ten thousand tiny ones spread alike. A cell's payload is one read, since chunks that follow each other have payloads that do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/decode.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "common/cpus.h"
#include "common/text.h"
#include "runtime/sum.h"
#include "runtime/verify.h"

enum { CELL_NBYTES = 1 << 20, MIN_CELL_NBYTES = 1 << 16, HELD_TABLES = 2 * BC_MAX_INSTR, HUGE_NBYTES = 2 << 20 };

struct scratch {
	uint8_t *ptr;
	uint64_t nbytes;
};

struct decoder {
	struct brv_archive *archive;
	struct decoder *next;           /* in archive->idle */
	struct decoder *ref;            /* decodes what a ref names: one level, since that has no refs */
	struct scratch arena, payload, out;
	struct span loaded;             /* payload of the chunks being decoded, KN_PAD readable behind it */
	uint64_t loaded_at;             /* its offset in the payload region */
	unsigned nheld;
	struct {
		uint32_t number;
		const struct kn_table *table;
	} held[HELD_TABLES];
	struct exec exec;
	struct error ref_err;
};

/* At least nbytes of memory whose contents do not matter. */
static enum brv_status scratch_reserve(struct brv_archive *archive, struct scratch *scratch, uint64_t nbytes, struct error *err)
{
	if (nbytes <= scratch->nbytes)
		return BRV_OK;
	free(scratch->ptr);
	memory_give(archive, scratch->nbytes);
	*scratch = (struct scratch){ NULL, 0 };
	TRY(memory_take(archive, nbytes, "decoding", err));
	uint64_t align = nbytes >= HUGE_NBYTES ? HUGE_NBYTES : 64;
	scratch->ptr = aligned_alloc(align, (nbytes + align - 1) / align * align);
	if (!scratch->ptr) {
		memory_give(archive, nbytes);
		return fail(err, BRV_MEMORY, "no memory for %llu bytes", (unsigned long long)nbytes);
	}
	scratch->nbytes = nbytes;
	if (align == HUGE_NBYTES)
		madvise(scratch->ptr, nbytes, MADV_HUGEPAGE);
	return BRV_OK;
}

static void scratch_free(struct brv_archive *archive, struct scratch *scratch)
{
	free(scratch->ptr);
	memory_give(archive, scratch->nbytes);
}

static enum brv_status alloc_decoder(struct brv_archive *archive, struct decoder **out, struct error *err)
{
	*out = NULL;
	TRY(memory_take(archive, sizeof **out, "decoding", err));
	*out = calloc(1, sizeof **out);
	if (!*out) {
		memory_give(archive, sizeof **out);
		return fail(err, BRV_MEMORY, "no memory to decode");
	}
	(*out)->archive = archive;
	enum brv_status status = scratch_reserve(archive, &(*out)->arena, archive->arena_nbytes, err);
	if (status != BRV_OK) {
		free(*out);
		memory_give(archive, sizeof **out);
		*out = NULL;
	}
	return status;
}

static void free_decoder(struct decoder *decoder)
{
	while (decoder) {
		struct brv_archive *archive = decoder->archive;
		struct decoder *ref = decoder->ref;
		scratch_free(archive, &decoder->arena);
		scratch_free(archive, &decoder->payload);
		scratch_free(archive, &decoder->out);
		free(decoder);
		memory_give(archive, sizeof *decoder);
		decoder = ref;
	}
}

void decoders_free(struct brv_archive *archive)
{
	while (archive->idle) {
		struct decoder *decoder = archive->idle;
		archive->idle = decoder->next;
		free_decoder(decoder);
	}
}

static enum brv_status take_decoder(struct brv_archive *archive, struct decoder **out, struct error *err)
{
	pthread_mutex_lock(&archive->lock);
	*out = archive->idle;
	if (*out)
		archive->idle = (*out)->next;
	pthread_mutex_unlock(&archive->lock);
	return *out ? BRV_OK : alloc_decoder(archive, out, err);
}

static void release_tables(struct decoder *decoder)
{
	while (decoder->nheld > 0)
		table_put(decoder->archive, decoder->held[--decoder->nheld].number);
}

static void give_decoder(struct decoder *decoder)
{
	struct brv_archive *archive = decoder->archive;
	release_tables(decoder);
	if (decoder->ref)
		release_tables(decoder->ref);
	pthread_mutex_lock(&archive->lock);
	decoder->next = archive->idle;
	archive->idle = decoder;
	pthread_mutex_unlock(&archive->lock);
}

static enum brv_status hold_table(struct decoder *decoder, uint32_t number, const struct kn_table **out, struct error *err)
{
	for (unsigned i = decoder->nheld; i-- > 0;)
		if (decoder->held[i].number == number) {
			*out = decoder->held[i].table;
			return BRV_OK;
		}
	TRY(table_get(decoder->archive, number, out, err));
	decoder->held[decoder->nheld].number = number;
	decoder->held[decoder->nheld++].table = *out;
	return BRV_OK;
}

/* Reads the payload of chunks first .. end - 1, which lies in one piece. */
static enum brv_status load_payload(struct decoder *decoder, uint64_t first, uint64_t end, struct error *err)
{
	struct brv_archive *archive = decoder->archive;
	const struct chunk *last = &archive->view.chunk[end - 1];
	uint64_t at = archive->view.chunk[first].payload_offset, nbytes = last->payload_offset + last->payload_nbytes - at;
	uint64_t offset = archive->view.payload_offset + at;

	decoder->loaded_at = at;
	if (archive->source.memory && archive->source.nbytes - offset - nbytes >= KN_PAD) {
		decoder->loaded = (struct span){ archive->source.memory + offset, nbytes };
		return BRV_OK;
	}
	/* Up to a cell's worth it at least doubles, so that it grows a few times and then no more. */
	uint64_t doubled = MIN(2 * decoder->payload.nbytes, (uint64_t)CELL_NBYTES);
	TRY(scratch_reserve(archive, &decoder->payload, MAX(nbytes, doubled) + KN_PAD, err));
	decoder->loaded = (struct span){ decoder->payload.ptr, nbytes };
	TRY(source_read(&archive->source, offset, decoder->payload.ptr, nbytes, err));
	memset(decoder->payload.ptr + nbytes, 0, KN_PAD);
	return BRV_OK;
}

/* "tensor NAME, chunk 2 of 7: what". */
static enum brv_status fail_chunk(const struct brv_archive *archive, const struct stream *stream, uint64_t k, enum brv_status status, const char *what,
				  struct error *err)
{
	char name[96] = "the header";
	if (stream->kind == AR_CLASS)
		memcpy(name, "a class stream", sizeof "a class stream");
	if (stream->kind == AR_TENSOR) {
		struct span full = stream_name(&archive->view, archive->header, stream);
		memcpy(name, "tensor ", 8);
		text_safe(full.ptr, full.nbytes, name + 7, sizeof name - 7);
	}
	return fail(err, status, "%s, chunk %llu of %llu: %.120s", name, (unsigned long long)k + 1, (unsigned long long)stream->nchunks, what);
}

static enum brv_status set_operand(struct decoder *decoder, const struct stream *stream, const struct bc_instr *instr, uint64_t table,
				   struct exec_operand *operand, struct error *err)
{
	TRY(hold_table(decoder, (uint32_t)table, &operand->table, err));
	if (!(instr->flags & BC_CLASSED))
		return BRV_OK;
	bool rans = operand->table->kind == TABLE_RANS;
	if ((rans ? operand->table->rans.kr : operand->table->wide.kr) > 1)
		TRY(rows_get(decoder->archive, stream, &operand->row_class, err));
	if ((rans ? operand->table->rans.kc : operand->table->wide.kc) > 1)
		TRY(columns_get(decoder->archive, stream, rans ? operand->table->rans.log2_nb : 0, &operand->col_class, err));
	return BRV_OK;
}

static enum brv_status run_ref(void *context, uint64_t stream, uint64_t first, uint64_t n, void *dst);

/* Fills decoder->exec for chunk k of a stream, whose payload is loaded. */
static enum brv_status prepare(struct decoder *decoder, const struct stream *stream, uint64_t k, struct error *err)
{
	struct brv_archive *archive = decoder->archive;
	const struct chunk *chunk = &archive->view.chunk[stream->chunk_at + k];
	const struct bc_program *program = chunk_program(&archive->view, stream, chunk);
	const uint64_t *table = archive->view.operand + chunk->operands_at;
	struct exec *exec = &decoder->exec;

	exec->kernels = archive->kernels;
	exec->program = program;
	exec->plan = &archive->plan[program - archive->view.program];
	exec->arena = decoder->arena.ptr;
	exec->n = chunk_nwords(stream, k);
	exec->first = k * stream->chunk_words;
	exec->payload = (struct span){ decoder->loaded.ptr + (chunk->payload_offset - decoder->loaded_at), chunk->payload_nbytes };
	exec->row_class = NULL;
	exec->row_words = stream->geometry;
	exec->refs = table + program->ntables;
	exec->ref = run_ref;
	exec->ref_context = decoder;
	if (exec->plan->has_gate)
		TRY(rows_get(archive, stream, &exec->row_class, err));
	if (decoder->nheld + program->ntables > HELD_TABLES)
		release_tables(decoder);
	for (unsigned i = 0; i < program->ninstr; i++) {
		const struct bc_instr *instr = &program->instr[i];
		exec->operand[i] = (struct exec_operand){ NULL, NULL, NULL };
		if (instr->op == OP_GATE)
			exec->operand[i].row_class = exec->row_class;
		else if (bc_opinfo(instr->op)->table != TABLE_NONE)
			TRY(set_operand(decoder, stream, instr, *table++, &exec->operand[i], err));
	}
	if (exec->plan->has_gate && program->nrefs) {
		TRY(exec_layout(exec));
		TRY(verify_refs(&archive->view, stream, chunk, exec->nwords, err));
	}
	return BRV_OK;
}

/* Decodes chunk k of a stream, whose payload is loaded, to dst. */
static enum brv_status run_chunk(struct decoder *decoder, const struct stream *stream, uint64_t k, void *dst, bool sum, struct error *err)
{
	struct brv_archive *archive = decoder->archive;
	struct error why = { "its payload is damaged" };
	decoder->ref_err.text[0] = 0;
	enum brv_status status = prepare(decoder, stream, k, &why);
	if (status == BRV_OK)
		status = exec_run(&decoder->exec, dst);
	if (status != BRV_OK && decoder->ref_err.text[0])
		why = decoder->ref_err;
	if (status == BRV_OK && sum &&
	    chunk_checksum(dst, decoder->exec.n * word_nbytes(stream->width)) != chunk_sum(&archive->view, stream->chunk_at + k)) {
		status = BRV_DAMAGED;
		memcpy(why.text, "the checksum does not match", sizeof "the checksum does not match");
	}
	return status == BRV_OK ? BRV_OK : fail_chunk(archive, stream, k, status, why.text, err);
}

/* Decodes those of bytes low .. high - 1 of a stream that lie in chunk k; dst is where byte `low` goes, NULL: nowhere. */
static enum brv_status run_clipped(struct decoder *decoder, const struct stream *stream, uint64_t k, uint64_t low, uint64_t high, uint8_t *dst,
				   bool sum, struct error *err)
{
	unsigned size = word_nbytes(stream->width);
	uint64_t start = k * stream->chunk_words * size, end = start + chunk_nwords(stream, k) * size;
	if (dst && low <= start && end <= high)
		return run_chunk(decoder, stream, k, dst + (start - low), sum, err);
	TRY(run_chunk(decoder, stream, k, decoder->arena.ptr, sum, err));
	uint64_t from = MAX(low, start), to = MIN(high, end);
	if (dst)
		memcpy(dst + (from - low), decoder->arena.ptr + (from - start), to - from);
	return BRV_OK;
}

/* exec_ref_fn: the words are those of whole chunks mostly, which go straight to where they are wanted. No sums: they are covered by
 * that of the chunk that refers to them. */
static enum brv_status run_ref(void *context, uint64_t index, uint64_t first, uint64_t n, void *dst)
{
	struct decoder *decoder = context;
	struct brv_archive *archive = decoder->archive;
	const struct stream *stream = &archive->view.stream[index];
	struct error *err = &decoder->ref_err;
	uint64_t size = word_nbytes(stream->width), low = first / stream->chunk_words, high = (first + n - 1) / stream->chunk_words + 1;
	if (!decoder->ref)
		TRY(alloc_decoder(archive, &decoder->ref, err));
	TRY(load_payload(decoder->ref, stream->chunk_at + low, stream->chunk_at + high, err));
	for (uint64_t k = low; k < high; k++)
		TRY(run_clipped(decoder->ref, stream, k, first * size, (first + n) * size, dst, false, err));
	return BRV_OK;
}

enum brv_status decode_stream(struct brv_archive *archive, const struct stream *stream, void *dst, struct error *err)
{
	struct decoder *decoder;
	const struct chunk *chunk = archive->view.chunk + stream->chunk_at;
	uint64_t nbytes = stream->nwords * word_nbytes(stream->width);
	TRY(take_decoder(archive, &decoder, err));
	enum brv_status status = BRV_OK;
	for (uint64_t k = 0, end; status == BRV_OK && k < stream->nchunks;) {
		for (end = k + 1; end < stream->nchunks && chunk[end].payload_offset - chunk[k].payload_offset < CELL_NBYTES; end++)
			;
		status = load_payload(decoder, stream->chunk_at + k, stream->chunk_at + end, err);
		for (; status == BRV_OK && k < end; k++)
			status = run_clipped(decoder, stream, k, 0, nbytes, dst, archive->checksums, err);
	}
	give_decoder(decoder);
	return status;
}

enum brv_status decode_costs(struct brv_archive *archive, const struct stream *stream, uint64_t k, uint64_t nbytes[BC_MAX_INSTR], struct error *err)
{
	struct decoder *decoder;
	TRY(take_decoder(archive, &decoder, err));
	enum brv_status status = load_payload(decoder, stream->chunk_at + k, stream->chunk_at + k + 1, err);
	struct error why = { "its payload is damaged" };
	if (status == BRV_OK) {
		status = prepare(decoder, stream, k, &why);
		if (status == BRV_OK)
			status = exec_layout(&decoder->exec);
		if (status != BRV_OK)
			fail_chunk(archive, stream, k, status, why.text, err);
	}
	const struct bc_program *program = decoder->exec.program;
	for (unsigned i = 0; status == BRV_OK && i < program->ninstr; i++) {
		bool item = decoder->exec.nwords[i] > 0 && bc_opinfo(program->instr[i].op)->payload == PAYLOAD_ITEM;
		nbytes[i] = decoder->exec.pay[i].nbytes + (item ? 4 : 0);
	}
	give_decoder(decoder);
	return status;
}

/* A chunk of the data region: its tensor and its number in the whole archive. */
struct position {
	const struct stream *stream;
	uint64_t chunk;
};

/* The chunk that byte `offset` of the data region lies in, or, with `from`, the first that begins there or later. The last position is behind all chunks. */
static struct position locate(const struct brv_archive *archive, uint64_t offset, bool from)
{
	const struct view *view = &archive->view;
	uint64_t low = 0, high = view->ntensors;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;
		if (tensor_stream(archive, middle)->data_offset <= offset)
			low = middle;
		else
			high = middle;
	}
	const struct stream *stream = tensor_stream(archive, low);
	uint64_t chunk_nbytes = stream->chunk_words * word_nbytes(stream->width), k = (offset - stream->data_offset) / chunk_nbytes;
	if (from && (offset - stream->data_offset) % chunk_nbytes)
		k++;
	return (struct position){ stream, stream->chunk_at + MIN(k, stream->nchunks) };
}

struct job {
	struct brv_archive *archive;
	const struct decode_call *call;
	uint64_t cell_nbytes, ncells, end;
	uint64_t next;                  /* cell of a sequential source; under archive->lock */
	struct decoder **decoder;       /* by worker */
	pthread_mutex_t lock;           /* of what follows */
	uint64_t done_nbytes;
	enum brv_status status;
	struct error err;
	atomic_uint_fast64_t failed_cell; /* the lowest so far; later cells are skipped, so what is reported does not depend on threads */
};

static void fail_cell(struct job *job, uint64_t cell, enum brv_status status, const struct error *err)
{
	pthread_mutex_lock(&job->lock);
	if (cell < atomic_load(&job->failed_cell)) {
		job->status = status;
		job->err = *err;
		atomic_store(&job->failed_cell, cell);
	}
	pthread_mutex_unlock(&job->lock);
}

static void report_progress(struct job *job, uint64_t cell, uint64_t nbytes)
{
	pthread_mutex_lock(&job->lock);
	job->done_nbytes += nbytes;
	bool stop = job->call->progress && job->call->progress(job->call->progress_context, job->done_nbytes, job->call->nbytes);
	pthread_mutex_unlock(&job->lock);
	if (stop) {
		const struct error err = { "cancelled" };
		fail_cell(job, cell, BRV_CANCELLED, &err);
	}
}

/* A cell's chunks, and the part of the output that they hold. */
struct cell {
	struct position at;
	uint64_t end_chunk;
	uint64_t low, high;             /* in the data region */
};

/* Where the chunk begins; behind a tensor's last (shorter) chunk, where the tensor ends. */
static uint64_t chunk_offset(struct position at)
{
	uint64_t nbytes = (at.chunk - at.stream->chunk_at) * at.stream->chunk_words * word_nbytes(at.stream->width);
	return at.stream->data_offset + MIN(nbytes, at.stream->data_nbytes);
}

/* False if no chunk begins in the cell. */
static bool find_cell(const struct job *job, uint64_t number, struct cell *cell)
{
	uint64_t low = job->call->offset + number * job->cell_nbytes, high = MIN(low + job->cell_nbytes, job->end);
	struct position end = locate(job->archive, high, true);
	cell->at = locate(job->archive, low, number > 0);
	cell->end_chunk = end.chunk;
	cell->low = number > 0 ? MIN(chunk_offset(cell->at), job->end) : low;
	cell->high = MIN(chunk_offset(end), job->end);
	return cell->at.chunk < cell->end_chunk;
}

static enum brv_status run_cell(const struct job *job, struct decoder *decoder, const struct cell *cell, struct error *err)
{
	const struct decode_call *call = job->call;
	const struct stream *stream = cell->at.stream;
	uint8_t *dst = call->dst ? call->dst + (cell->low - call->offset) : NULL;
	if (call->sink) {
		TRY(scratch_reserve(decoder->archive, &decoder->out, cell->high - cell->low, err));
		dst = decoder->out.ptr;
	}
	for (uint64_t chunk = cell->at.chunk; chunk < cell->end_chunk; chunk++) {
		while (chunk >= stream->chunk_at + stream->nchunks)
			stream++;
		/* Bytes of the cell that are this tensor's: low .. high - 1 of it. */
		uint64_t start = stream->data_offset, low = MAX(cell->low, start);
		uint64_t high = MIN(cell->high, start + stream->data_nbytes);
		TRY(run_clipped(decoder, stream, chunk - stream->chunk_at, low - start, high - start, dst ? dst + (low - cell->low) : NULL,
				decoder->archive->checksums, err));
	}
	return call->sink ? call->sink(call->sink_context, dst, cell->high - cell->low, cell->low, err) : BRV_OK;
}

/* Finds the cell and loads its payload. A pipe has to be read in order, so there the next cell is taken and read under a lock. */
static enum brv_status start_cell(struct job *job, struct decoder *decoder, uint64_t *number, struct cell *cell, bool *empty, struct error *err)
{
	bool ordered = job->archive->source.sequential;
	enum brv_status status = BRV_OK;
	if (ordered) {
		pthread_mutex_lock(&job->archive->lock);
		*number = job->next++;
	}
	*empty = !find_cell(job, *number, cell);
	if (!*empty)
		status = load_payload(decoder, cell->at.chunk, cell->end_chunk, err);
	if (ordered)
		pthread_mutex_unlock(&job->archive->lock);
	return status;
}

/* pool_fn */
static void do_cell(void *context, uint64_t number, unsigned worker)
{
	struct job *job = context;
	struct cell cell = { 0 };
	struct error err = { "" };
	bool empty = false;
	if (number > atomic_load(&job->failed_cell))
		return;
	enum brv_status status = BRV_OK;
	if (!job->decoder[worker])
		status = take_decoder(job->archive, &job->decoder[worker], &err);
	struct decoder *decoder = job->decoder[worker];
	if (status == BRV_OK)
		status = start_cell(job, decoder, &number, &cell, &empty, &err);
	if (status == BRV_OK && !empty)
		status = run_cell(job, decoder, &cell, &err);
	if (decoder) {
		release_tables(decoder);
		if (decoder->ref)
			release_tables(decoder->ref);
	}
	if (status != BRV_OK)
		fail_cell(job, number, status, &err);
	else if (!empty)
		report_progress(job, number, cell.high - cell.low);
}

static void run_job(struct job *job, struct pool *pool)
{
	if (pool) {
		pool_run(pool, job->ncells, do_cell, job);
		return;
	}
	for (uint64_t cell = 0; cell < job->ncells; cell++)
		do_cell(job, cell, 0);
}

/* A pipe has no way back to what a ref names: all that is left of it is kept in a file first. */
static enum brv_status spool_refs(struct brv_archive *archive, struct error *err)
{
	enum brv_status status = BRV_OK;
	pthread_mutex_lock(&archive->lock);
	if (archive->source.sequential && archive->view.nrefs)
		status = source_spool(&archive->source, archive->view.prelude.archive_nbytes, err);
	pthread_mutex_unlock(&archive->lock);
	return status;
}

enum brv_status decode_data(struct brv_archive *archive, const struct decode_call *call, struct error *err)
{
	struct decoder *decoders[CPUS_MAX] = { NULL };
	unsigned threads = call->pool ? pool_threads(call->pool) : 1;
	struct job job = { .archive = archive, .call = call, .decoder = decoders, .end = call->offset + call->nbytes };
	TRY(spool_refs(archive, err));
	job.cell_nbytes = threads == 1 ? CELL_NBYTES : MIN(MAX(call->nbytes / (4 * threads), (uint64_t)MIN_CELL_NBYTES), (uint64_t)CELL_NBYTES);
	job.ncells = ceil_div(call->nbytes, job.cell_nbytes);
	atomic_init(&job.failed_cell, UINT64_MAX);
	pthread_mutex_init(&job.lock, NULL);
	run_job(&job, call->pool);
	for (unsigned i = 0; i < threads; i++)
		if (decoders[i])
			give_decoder(decoders[i]);
	pthread_mutex_destroy(&job.lock);
	if (job.status != BRV_OK && err)
		*err = job.err;
	if (job.status == BRV_OK && job.end == archive->data_nbytes)
		return source_expect_end(&archive->source, archive->view.prelude.archive_nbytes, err);
	return job.status;
}

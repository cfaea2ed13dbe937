/* decode.c: from ranges of the data region to chunks, and chunks to threads.
 *
 * The range is cut into cells of about 1 MiB; a cell is the chunks that begin in it, whichever tensors they belong to, so one huge
 * tensor and ten thousand tiny ones spread alike. A cell's payload is one read, since chunks that follow each other have payloads that do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/decode.h"

#include "common/cpus.h"

enum { MIN_CELL_NBYTES = 1 << 16 };

/* A chunk of the data region: its tensor and its number in the whole archive. */
struct position {
	const struct stream *stream;
	uint64_t chunk;
};

/* The chunk that byte `offset` of the data region lies in, or, with `from`, the first that begins there or later. The last
 * position is behind all chunks. */
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
	if (call->sink)
		TRY(decoder_out(decoder, cell->high - cell->low, &dst, err));
	for (uint64_t chunk = cell->at.chunk; chunk < cell->end_chunk; chunk++) {
		while (chunk >= stream->chunk_at + stream->nchunks)
			stream++;
		/* Bytes of the cell that are this tensor's: low .. high - 1 of it. */
		uint64_t start = stream->data_offset, low = MAX(cell->low, start);
		uint64_t high = MIN(cell->high, start + stream->data_nbytes);
		TRY(decoder_run(decoder, stream, chunk - stream->chunk_at, low - start, high - start, dst ? dst + (low - cell->low) : NULL,
				job->archive->checksums, err));
	}
	return call->sink ? call->sink(call->sink_context, dst, cell->high - cell->low, cell->low, err) : BRV_OK;
}

/* Finds the cell and loads its payload. A pipe has to be read in order, so there the next cell is taken and read under a lock. */
static enum brv_status start_cell(struct job *job, struct decoder *decoder, uint64_t *number, struct cell *cell, bool *empty,
				  struct error *err)
{
	bool ordered = job->archive->source.sequential;
	enum brv_status status = BRV_OK;
	if (ordered) {
		pthread_mutex_lock(&job->archive->lock);
		*number = job->next++;
	}
	*empty = !find_cell(job, *number, cell);
	if (!*empty)
		status = decoder_load(decoder, cell->at.chunk, cell->end_chunk, err);
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
		status = decoder_take(job->archive, &job->decoder[worker], &err);
	struct decoder *decoder = job->decoder[worker];
	if (status == BRV_OK)
		status = start_cell(job, decoder, &number, &cell, &empty, &err);
	if (status == BRV_OK && !empty)
		status = run_cell(job, decoder, &cell, &err);
	if (decoder)
		decoder_release(decoder);
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
			decoder_give(decoders[i]);
	pthread_mutex_destroy(&job.lock);
	if (job.status != BRV_OK && err)
		*err = job.err;
	if (job.status == BRV_OK && job.end == archive->data_nbytes)
		return source_expect_end(&archive->source, archive->view.prelude.archive_nbytes, err);
	return job.status;
}

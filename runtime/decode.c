/* decode.c: from ranges of the data region to chunks, and chunks to threads.
 *
 * Ranges are cut into cells of about 1 MiB; a cell is the chunks that begin in it, whichever tensors they belong to, so one huge
 * tensor and ten thousand tiny ones spread alike. A cell's payload is one read, since chunks that follow each other have payloads that do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/decode.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cpus.h"
#include "runtime/place.h"

enum {
	MIN_CELL_NBYTES = 1 << 16,
	AHEAD_NBYTES = 8 << 20,
	PAST_NBYTES = 32 << 20,         /* the caches do not hold so much output until the call ends: past them from the start */
	PAST_SAMPLES = 32,
};

/* A chunk of the data region: its tensor and its number in the whole archive. */
struct position {
	const struct stream *stream;
	uint64_t chunk;
};

uint64_t tensor_at(const struct brv_archive *archive, uint64_t offset)
{
	uint64_t low = 0, high = archive->view.ntensors;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;
		if (tensor_stream(archive, middle)->data_offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The chunk that byte `offset` of the data region lies in, or, with `from`, the first that begins there or later. The last
 * position is behind all chunks. */
static struct position locate(const struct brv_archive *archive, uint64_t offset, bool from)
{
	const struct stream *stream = tensor_stream(archive, tensor_at(archive, offset));
	uint64_t chunk_nbytes = stream->chunk_words * word_nbytes(stream->width), k = (offset - stream->data_offset) / chunk_nbytes;
	if (from && (offset - stream->data_offset) % chunk_nbytes)
		k++;
	return (struct position){ stream, stream->chunk_at + MIN(k, stream->nchunks) };
}

struct job {
	struct brv_archive *archive;
	const struct decode_call *call;
	uint64_t cell_nbytes, ncells, nbytes;
	bool past;                      /* output goes past the caches */
	uint64_t *first_cell;           /* of each range; NULL: there is one range */
	uint64_t next;                  /* cell of a sequential source; under archive->lock */
	struct decoder **decoder;       /* by worker */
	pthread_mutex_t lock;           /* of what follows */
	pthread_cond_t turns;
	uint64_t turn;                  /* cell whose output is delivered next, if ordered */
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
		pthread_cond_broadcast(&job->turns);
	}
	pthread_mutex_unlock(&job->lock);
}

static void cancel_cell(struct job *job, uint64_t cell)
{
	const struct error err = { "cancelled" };
	fail_cell(job, cell, BRV_CANCELLED, &err);
}

static void report_progress(struct job *job, uint64_t cell, uint64_t nbytes)
{
	pthread_mutex_lock(&job->lock);
	job->done_nbytes += nbytes;
	bool stop = job->call->progress && job->call->progress(job->call->progress_context, job->done_nbytes, job->nbytes);
	pthread_mutex_unlock(&job->lock);
	if (stop)
		cancel_cell(job, cell);
}

/* A cell's chunks, and the part of the output that they hold. */
struct cell {
	const struct decode_range *range;
	struct position at;
	uint64_t end_chunk;
	uint64_t low, high;             /* in the data region */
	uint8_t *bytes;                 /* of the output; NULL: nowhere */
};

/* Where the chunk begins; behind a tensor's last (shorter) chunk, where the tensor ends. */
static uint64_t chunk_offset(struct position at)
{
	uint64_t nbytes = (at.chunk - at.stream->chunk_at) * at.stream->chunk_words * word_nbytes(at.stream->width);
	return at.stream->data_offset + MIN(nbytes, at.stream->data_nbytes);
}

/* The range that a cell is a part of; *number becomes its number in it. */
static const struct decode_range *range_of(const struct job *job, uint64_t *number)
{
	size_t low = 0, high = job->call->nranges;
	while (job->first_cell && high - low > 1) {
		size_t middle = (low + high) / 2;
		if (job->first_cell[middle] <= *number)
			low = middle;
		else
			high = middle;
	}
	*number -= job->first_cell ? job->first_cell[low] : 0;
	return &job->call->range[low];
}

/* False if no chunk begins in the cell. */
static bool find_cell(const struct job *job, uint64_t number, struct cell *cell)
{
	cell->range = range_of(job, &number);
	uint64_t range_end = cell->range->offset + cell->range->nbytes;
	uint64_t low = cell->range->offset + number * job->cell_nbytes, high = MIN(low + job->cell_nbytes, range_end);
	struct position end = locate(job->archive, high, true);
	cell->at = locate(job->archive, low, number > 0);
	cell->end_chunk = end.chunk;
	cell->low = number > 0 ? MIN(chunk_offset(cell->at), range_end) : low;
	cell->high = MIN(chunk_offset(end), range_end);
	return cell->at.chunk < cell->end_chunk;
}

/* Where the first chunk begins that begins at `offset` or later; the end if there is none. */
static uint64_t next_chunk(const struct brv_archive *archive, uint64_t offset)
{
	return offset < archive->data_nbytes ? chunk_offset(locate(archive, offset, true)) : archive->data_nbytes;
}

void decode_piece(const struct brv_archive *archive, uint64_t offset, uint64_t *low, uint64_t *high)
{
	uint64_t cell = chunk_offset(locate(archive, offset, false)) / CELL_NBYTES;
	*low = next_chunk(archive, cell * CELL_NBYTES);
	*high = next_chunk(archive, (cell + 1) * CELL_NBYTES);
}

uint64_t decode_piece_limit(const struct brv_archive *archive)
{
	uint64_t chunk_nbytes = 0;
	for (uint64_t i = 0; i < archive->view.ntensors; i++) {
		const struct stream *stream = tensor_stream(archive, i);
		chunk_nbytes = MAX(chunk_nbytes, MIN(stream->chunk_words * word_nbytes(stream->width), stream->data_nbytes));
	}
	return MIN(CELL_NBYTES + chunk_nbytes, archive->data_nbytes);
}

static enum brv_status run_cell(const struct job *job, struct decoder *decoder, struct cell *cell, struct error *err)
{
	const struct decode_call *call = job->call;
	const struct stream *stream = cell->at.stream;
	uint8_t *dst = cell->range->dst ? cell->range->dst + (cell->low - cell->range->offset) : NULL;
	if (call->sink)
		TRY(decoder_out(decoder, cell->high - cell->low, &dst, err));
	const unsigned flags = (job->archive->checksums ? DECODER_SUM : 0) | (job->past ? DECODER_PAST : 0);
	for (uint64_t chunk = cell->at.chunk; chunk < cell->end_chunk; chunk++) {
		while (chunk >= stream->chunk_at + stream->nchunks)
			stream++;
		/* Bytes of the cell that are this tensor's: low .. high - 1 of it. */
		uint64_t start = stream->data_offset, low = MAX(cell->low, start);
		uint64_t high = MIN(cell->high, start + stream->data_nbytes);
		TRY(decoder_run(decoder, stream, chunk - stream->chunk_at, low - start, high - start, dst ? dst + (low - cell->low) : NULL,
				flags, err));
	}
	if (job->past)
		decoder_settle(decoder);
	cell->bytes = dst;
	return BRV_OK;
}

/* Waits until all cells before are delivered. False if one of them failed. */
static bool take_turn(struct job *job, uint64_t cell)
{
	pthread_mutex_lock(&job->lock);
	while (job->turn != cell && atomic_load(&job->failed_cell) > cell)
		pthread_cond_wait(&job->turns, &job->lock);
	const bool mine = job->turn == cell;
	pthread_mutex_unlock(&job->lock);
	return mine;
}

static void end_turn(struct job *job)
{
	pthread_mutex_lock(&job->lock);
	job->turn++;
	pthread_cond_broadcast(&job->turns);
	pthread_mutex_unlock(&job->lock);
}

/* Hands a cell's output to the sink. Cells are started in order, and an unfinished one never waits for a later one, so turns come. */
static enum brv_status deliver(struct job *job, uint64_t number, const struct cell *cell, bool empty, struct error *err)
{
	const struct decode_call *call = job->call;
	enum brv_status status = BRV_OK;
	if (!call->sink || (call->ordered && !take_turn(job, number)))
		return BRV_OK;
	if (!empty)
		status = call->sink(call->sink_context, cell->bytes, cell->high - cell->low, cell->low, err);
	if (call->ordered && status == BRV_OK)
		end_turn(job);
	return status;
}

/* The payload of the range behind the cell: it is wanted next, by whichever thread. */
static void read_ahead(struct job *job, const struct cell *cell)
{
	const struct view *view = &job->archive->view;
	const uint64_t end = locate(job->archive, cell->range->offset + cell->range->nbytes, true).chunk;
	if (cell->end_chunk >= end)
		return;
	const uint64_t from = view->chunk[cell->end_chunk].payload_offset, to = view->chunk[end - 1].payload_offset + view->chunk[end - 1].payload_nbytes;
	source_ahead(&job->archive->source, view->payload_offset + from, MIN(to - from, (uint64_t)AHEAD_NBYTES));
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
	else if (!*empty && status == BRV_OK)
		read_ahead(job, cell);
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
	if (job->call->cancel && *job->call->cancel) {
		cancel_cell(job, number);
		return;
	}
	enum brv_status status = BRV_OK;
	if (!job->decoder[worker])
		status = decoder_take(job->archive, job->call->pool ? place_node(job->call->pool->place, worker) : 0, &job->decoder[worker], &err);
	struct decoder *decoder = job->decoder[worker];
	if (status == BRV_OK)
		status = start_cell(job, decoder, &number, &cell, &empty, &err);
	if (status == BRV_OK && !empty)
		status = run_cell(job, decoder, &cell, &err);
	if (decoder)
		decoder_release(decoder);
	if (status == BRV_OK)
		status = deliver(job, number, &cell, empty, &err);
	if (status != BRV_OK)
		fail_cell(job, number, status, &err);
	else if (!empty)
		report_progress(job, number, cell.high - cell.low);
}

/* Only what stays in memory is cut between nodes: a sink gets its parts in about ascending order. */
static void run_job(struct job *job, brv_pool *pool)
{
	if (pool && job->ncells > 1) {
		place_enter(pool->place);
		(job->call->range[0].dst ? pool_run_grouped : pool_run)(pool->team, job->ncells, do_cell, job);
		place_leave(pool->place);
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

/* Cuts the ranges into cells: fewer and larger ones for a single thread. */
static enum brv_status cut_cells(struct job *job, unsigned threads, struct error *err)
{
	const struct decode_call *call = job->call;
	for (size_t i = 0; i < call->nranges; i++)
		job->nbytes += call->range[i].nbytes;
	job->cell_nbytes = threads == 1 ? CELL_NBYTES : MIN(MAX(job->nbytes / (4 * threads), (uint64_t)MIN_CELL_NBYTES), (uint64_t)CELL_NBYTES);
	if (call->nranges > 1) {
		job->first_cell = malloc(call->nranges * sizeof(*job->first_cell));
		if (!job->first_cell)
			return fail(err, BRV_MEMORY, "no memory for a list of %zu ranges", call->nranges);
	}
	for (size_t i = 0; i < call->nranges; i++) {
		if (job->first_cell)
			job->first_cell[i] = job->ncells;
		job->ncells += ceil_div(call->range[i].nbytes, job->cell_nbytes);
	}
	return BRV_OK;
}

/* Whether the call reads to the very end, behind which a pipe must have nothing more. */
static bool reaches_end(const struct job *job)
{
	const struct decode_range *last = job->call->nranges ? &job->call->range[job->call->nranges - 1] : NULL;
	return last && last->offset + last->nbytes == job->archive->data_nbytes;
}

/* Whether the output is large and its pages are there. Those of fresh memory are cleared as they are first written to, and are in the caches then. Found by
 * a few pages, before any is written to. */
static bool goes_past(const struct decode_call *call, uint64_t nbytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (nbytes < PAST_NBYTES || !call->range[0].dst)
		return false;
	for (uint64_t i = 0; i < PAST_SAMPLES; i++) {
		const struct decode_range *range = &call->range[i * call->nranges / PAST_SAMPLES];
		const uintptr_t at = (uintptr_t)range->dst + range->nbytes / PAST_SAMPLES * i;
		unsigned char resident;
		if (!range->dst || mincore((void *)(at / page * page), 1, &resident) || !(resident & 1))
			return false;
	}
	return true;
}

enum brv_status decode_data(struct brv_archive *archive, const struct decode_call *call, struct error *err)
{
	struct decoder *decoders[CPUS_MAX] = { NULL };
	unsigned threads = call->pool ? brv_pool_threads(call->pool) : 1;
	struct job job = { .archive = archive, .call = call, .decoder = decoders };
	TRY(spool_refs(archive, err));
	TRY(cut_cells(&job, threads, err));
	job.past = goes_past(call, job.nbytes);
	atomic_init(&job.failed_cell, UINT64_MAX);
	pthread_mutex_init(&job.lock, NULL);
	pthread_cond_init(&job.turns, NULL);
	run_job(&job, call->pool);
	for (unsigned i = 0; i < threads; i++)
		if (decoders[i])
			decoder_give(decoders[i]);
	pthread_mutex_destroy(&job.lock);
	pthread_cond_destroy(&job.turns);
	free(job.first_cell);
	if (job.status != BRV_OK && err)
		*err = job.err;
	if (job.status == BRV_OK && reaches_end(&job))
		return source_expect_end(&archive->source, archive->view.prelude.archive_nbytes, err);
	return job.status;
}

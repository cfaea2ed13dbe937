/* synth.c: the stages in order, batch by batch.
 *
 * Tensors are taken in batches of bounded size. Within a batch the tensors are read and searched side by side, then all their chunks are encoded side
 * by side; results are emitted in order, so the archive does not depend on the number of threads. SPDX-License-Identifier: Apache-2.0 */
#include "synth/synth.h"

#include <errno.h>
#include <stdlib.h>

#include "common/outfile.h"
#include "common/pool.h"
#include "common/seconds.h"
#include "synth/compare.h"
#include "synth/emit.h"
#include "synth/learn.h"
#include "synth/pack_header.h"
#include "synth/same.h"

#define BATCH_NBYTES (32ull << 20)
#define SPOOL_NBYTES (128ull << 20)

/* A tensor on its way through a batch. */
struct item {
	const struct tensor *tensor;
	uint8_t *words;
	struct source source;
	struct fingerprint print;
	struct same_match same;         /* what an earlier tensor has of it */
	struct kin *kin;                /* tensors like it; NULL: too few words */
	bool first;                     /* of its kind, the others wait for it */
	struct kin_example *found;      /* by its search */
	struct coded_stream stream;
	struct buffer *payload;         /* of each chunk */
	unsigned expansions;
	enum brv_status status;
	struct error err;
	double seconds;
};

struct job {
	const struct synth_options *options;
	struct synth_plan plan;
	struct checkpoint checkpoint;
	struct emitter *emitter;
	struct pool *pool;
	struct same *same;
	struct kinds *kinds;
	bool firsts;                    /* now those are searched that are the first of their kind */
	struct encoder *encoder;        /* of each worker */
	struct item *item;              /* the batch */
	size_t first, count;
	struct chunk_ref { uint32_t item; uint64_t chunk; } *todo;
	uint64_t done_nbytes;
	struct synth_report *report;
	struct error *err;
};

static void read_item(void *context, uint64_t i, unsigned worker)
{
	struct job *job = context;
	struct item *item = &job->item[i];
	(void)worker;

	item->words = malloc(item->tensor->nbytes + 64);
	if (!item->words) {
		item->status = fail(&item->err, BRV_MEMORY, "no memory for a tensor of %llu bytes", (unsigned long long)item->tensor->nbytes);
		return;
	}
	item->status = checkpoint_read(&job->checkpoint, item->tensor->offset, item->words, item->tensor->nbytes, &item->err);
	item->source = source_of(item->tensor, item->words);
	if (item->status == BRV_OK)
		source_look(&item->source), fingerprint_make(&item->source, &item->print);
}

static void search_item(void *context, uint64_t i, unsigned worker)
{
	struct job *job = context;
	struct item *item = &job->item[i];
	const double start = seconds_now();
	struct kin_example found = { .n = 0 };
	(void)worker;

	if (item->first != job->firsts)
		return;
	if (item->same.whole)
		item->status = program_ref(&job->plan, &item->source, (uint64_t)item->same.tensor, &item->stream);
	else
		item->status = program_like(&job->plan, &item->source, item->kin, &item->stream, &found, &item->expansions);
	if (item->status == BRV_OK && found.n) {
		item->found = malloc(sizeof(found));
		item->status = item->found ? BRV_OK : BRV_MEMORY;
		if (item->found)
			*item->found = found;
	}
	if (item->status == BRV_OK && item->same.tensor >= 0 && !item->same.whole)
		encode_set_refs(&item->stream, (uint64_t)item->same.tensor, item->same.first);
	if (item->status == BRV_OK)
		item->payload = calloc(item->stream.nchunks + 1, sizeof(*item->payload));
	if (item->status == BRV_OK && !item->payload)
		item->status = BRV_MEMORY;
	if (item->status != BRV_OK)
		fail(&item->err, item->status, "no memory to search a tensor of %llu bytes", (unsigned long long)item->tensor->nbytes);
	item->seconds += seconds_now() - start;
}

static void encode_item(void *context, uint64_t i, unsigned worker)
{
	struct job *job = context;
	const struct chunk_ref *ref = &job->todo[i];
	struct item *item = &job->item[ref->item];
	struct encoder *encoder = &job->encoder[worker];
	const uint64_t first = ref->chunk * item->stream.chunk_words;

	encoder->payload.nbytes = 0;
	enum brv_status status = encode_chunk(encoder, &item->stream, ref->chunk, item->words + first * word_nbytes(item->stream.width));
	buffer_put(&item->payload[ref->chunk], encoder->payload.data, encoder->payload.nbytes);
	if (status != BRV_OK || item->payload[ref->chunk].failed)
		__atomic_store_n(&item->status, BRV_MEMORY, __ATOMIC_RELAXED);
}

/* Codes a small stream (header, classes) in this thread; payload of all chunks appended to *payload. It is looked at whole and for size: it is
 * decoded once, when an archive is opened. */
static enum brv_status code_stream(struct job *job, const struct source *source, bool search, struct coded_stream *stream, struct buffer *payload)
{
	struct synth_plan plan = job->plan;

	if (!search)
		plan.limits.expansions = 1, plan.limits.closings = 0;
	plan.model = cost_model(COST_SIZE, job->options->target);
	plan.sample_words = BC_MAX_CHUNK_WORDS;
	TRY(program_for(&plan, source, stream, NULL, NULL, NULL));
	for (uint64_t c = 0; c < stream->nchunks; c++) {
		const size_t at = c * stream->chunk_words * word_nbytes(stream->width);
		job->encoder[0].payload.nbytes = 0;
		TRY(encode_chunk(&job->encoder[0], stream, c, (const uint8_t *)source->words + at));
		buffer_put(payload, job->encoder[0].payload.data, job->encoder[0].payload.nbytes);
	}
	return payload->failed ? BRV_MEMORY : BRV_OK;
}

static enum brv_status emit_one_class(struct job *job, const uint8_t *label, size_t n, unsigned classes, uint64_t *number)
{
	const struct source source = { .words = label, .nwords = n, .width = 32 - (unsigned)__builtin_clz(classes - 1), .dtype = AR_DTYPE_OTHER };
	struct coded_stream stream = { 0 };
	struct buffer payload = { 0 };

	enum brv_status status = code_stream(job, &source, false, &stream, &payload);
	status = status == BRV_OK ? emit_class(job->emitter, &stream, &payload, number, job->err) : fail(job->err, status, "no memory for classes");
	coded_stream_free(&stream);
	buffer_free(&payload);
	return status;
}

static void class_use(const struct coded_stream *stream, bool *rows, bool *cols)
{
	*rows = *cols = false;
	for (unsigned i = 0; i < stream->expr.nnodes; i++) {
		*rows |= stream->expr.node[i].rows || stream->expr.node[i].op == OP_GATE;
		*cols |= stream->expr.node[i].cols;
	}
}

static enum brv_status emit_item(struct job *job, struct item *item)
{
	struct coded_stream *s = &item->stream;
	uint64_t row_stream = 0, col_stream = 0, payload_nbytes = 0;
	bool rows, cols;

	class_use(s, &rows, &cols);
	if (rows && s->classes.row)
		TRY(emit_one_class(job, s->classes.row, s->classes.rows, s->classes.kr, &row_stream));
	if (cols && s->classes.col)
		TRY(emit_one_class(job, s->classes.col, s->classes.row_words, s->classes.kc, &col_stream));
	for (uint64_t c = 0; c < s->nchunks; c++)
		payload_nbytes += item->payload[c].nbytes;
	if (job->options->on_tensor) {
		const struct synth_tensor told = { .name = item->tensor->name, .name_nbytes = item->tensor->name_nbytes,
						   .dtype = item->tensor->dtype_name, .nbytes = item->tensor->nbytes, .payload_nbytes = payload_nbytes,
						   .program = &s->variant[0].program, .seconds = item->seconds };
		job->options->on_tensor(job->options->context, &told);
	}
	TRY(emit_tensor(job->emitter, item->tensor, s, row_stream, col_stream, job->err));
	for (uint64_t c = 0; c < s->nchunks; c++)
		TRY(emit_payload(job->emitter, &item->payload[c], job->err));
	job->report->expansions += item->expansions;
	return BRV_OK;
}

static void free_batch(struct job *job)
{
	for (size_t i = 0; job->item && i < job->count; i++) {
		struct item *item = &job->item[i];
		for (uint64_t c = 0; item->payload && c < item->stream.nchunks; c++)
			buffer_free(&item->payload[c]);
		free(item->payload);
		free(item->words);
		free(item->found);
		free(item->print.row);
		free(item->same.first);
		coded_stream_free(&item->stream);
	}
	free(job->item);
	free(job->todo);
	job->item = NULL, job->todo = NULL;
}

static enum brv_status batch_failure(struct job *job)
{
	for (size_t i = 0; i < job->count; i++)
		if (job->item[i].status != BRV_OK)
			return fail(job->err, job->item[i].status, "tensor \"%.80s\": %.150s", job->item[i].tensor->name,
				    job->item[i].err.text[0] ? job->item[i].err.text : status_text(job->item[i].status));
	return BRV_OK;
}

/* Searches the first of every kind, then the others, that have these as examples. */
static enum brv_status search_batch(struct job *job)
{
	for (size_t i = 0; i < job->count; i++) {
		struct item *item = &job->item[i];
		const struct source *s = &item->source;
		if (item->same.whole)
			continue;
		item->kin = kinds_find(job->kinds, &(struct kind){ s->width, s->dtype, s->nwords, s->rows, kind_name(item->tensor->name, item->tensor->name_nbytes) });
		if (!item->kin)
			return fail(job->err, BRV_MEMORY, "no memory for kinds of tensors");
		item->first = !item->kin->met;
		item->kin->met = true;
	}
	for (unsigned pass = 0; pass < 2; pass++) {
		job->firsts = pass == 0;
		pool_run(job->pool, job->count, search_item, job);
		TRY(batch_failure(job));
		for (size_t i = 0; i < job->count; i++)
			if (job->item[i].found)
				kin_add(job->item[i].kin, job->item[i].found), job->item[i].found = NULL;
	}
	return BRV_OK;
}

/* Reads, searches, encodes and emits tensors first..first + count - 1. */
static enum brv_status run_batch(struct job *job)
{
	uint64_t ntodo = 0;

	job->item = calloc(job->count, sizeof(*job->item));
	if (!job->item)
		return fail(job->err, BRV_MEMORY, "no memory for a batch");
	for (size_t i = 0; i < job->count; i++)
		job->item[i].tensor = &job->checkpoint.tensor[job->first + i];
	pool_run(job->pool, job->count, read_item, job);
	TRY(batch_failure(job));
	for (size_t i = 0; i < job->count; i++) {
		struct item *item = &job->item[i];
		if (same_find(job->same, job->first + i, &item->source, &item->print, chunk_words_for(&job->plan, &item->source), &item->same) != BRV_OK)
			return fail(job->err, BRV_MEMORY, "no memory for what tensors have in common");
	}
	TRY(search_batch(job));
	for (size_t i = 0; i < job->count; i++)
		ntodo += job->item[i].stream.nchunks;
	job->todo = malloc((ntodo + 1) * sizeof(*job->todo));
	if (!job->todo)
		return fail(job->err, BRV_MEMORY, "no memory for a batch of %llu chunks", (unsigned long long)ntodo);
	ntodo = 0;
	for (size_t i = 0; i < job->count; i++)
		for (uint64_t c = 0; c < job->item[i].stream.nchunks; c++)
			job->todo[ntodo++] = (struct chunk_ref){ (uint32_t)i, c };
	pool_run(job->pool, ntodo, encode_item, job);
	TRY(batch_failure(job));
	for (size_t i = 0; i < job->count; i++) {
		TRY(emit_item(job, &job->item[i]));
		job->done_nbytes += job->item[i].tensor->nbytes;
	}
	if (job->options->progress && job->options->progress(job->options->progress_context, job->done_nbytes, job->report->in_nbytes))
		return fail(job->err, BRV_CANCELLED, "cancelled");
	return BRV_OK;
}

static enum brv_status run_batches(struct job *job)
{
	const struct checkpoint *c = &job->checkpoint;
	enum brv_status status = BRV_OK;

	for (job->first = 0; status == BRV_OK && job->first < c->ntensors; job->first += job->count) {
		uint64_t nbytes = c->tensor[job->first].nbytes;
		for (job->count = 1; job->first + job->count < c->ntensors && job->count < 65536; job->count++) {
			nbytes += c->tensor[job->first + job->count].nbytes;
			if (nbytes > BATCH_NBYTES)
				break;
		}
		status = run_batch(job);
		free_batch(job);
	}
	return status;
}

/* --explain: the candidates of one tensor. */
static enum brv_status explain(struct job *job)
{
	const struct checkpoint *c = &job->checkpoint;
	const char *name = job->options->explain;

	for (size_t i = 0; i < c->ntensors; i++) {
		const struct tensor *t = &c->tensor[i];
		if (t->name_nbytes != strlen(name) || memcmp(t->name, name, t->name_nbytes))
			continue;
		struct item item = { .tensor = t };
		job->item = &item;
		read_item(job, 0, 0);
		enum brv_status status = item.status;
		if (status == BRV_OK)
			status = program_for(&job->plan, &item.source, NULL, NULL, job->options->explain_to, &item.expansions);
		free(item.words);
		free(item.print.row);
		job->item = NULL;
		return status;
	}
	return fail(job->err, BRV_NOTFOUND, "no tensor \"%.100s\"", name);
}

static void warn_unknown_dtypes(const struct job *job)
{
	for (size_t i = 0; i < job->checkpoint.ntensors; i++) {
		const struct tensor *t = &job->checkpoint.tensor[i];
		char text[256];
		if (t->dtype->code != AR_DTYPE_OTHER || !job->options->on_warning)
			continue;
		snprintf(text, sizeof(text), "tensor \"%.100s\": unknown dtype \"%.64s\", compressed as bytes", t->name, t->dtype_name);
		job->options->on_warning(job->options->context, text);
	}
}

static enum brv_status code_header(struct job *job)
{
	struct coded_stream stream = { 0 };
	struct buffer words = { 0 }, payload = { 0 };
	uint16_t flags = 0;

	enum brv_status status = pack_header(&job->checkpoint, &words, &flags);
	const struct source source = { .words = words.data, .nwords = words.nbytes, .width = 8, .dtype = AR_DTYPE_OTHER,
				       .chunk_words = words.nbytes <= BC_MAX_CHUNK_WORDS ? words.nbytes : 0 };
	if (status == BRV_OK)
		status = code_stream(job, &source, true, &stream, &payload);
	status = status == BRV_OK ? emit_header(job->emitter, &stream, flags, &payload, job->err) : fail(job->err, status, "no memory for the header");
	coded_stream_free(&stream);
	buffer_free(&words);
	buffer_free(&payload);
	return status;
}

/* The directory of a path; the result is malloc'ed. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash == NULL ? strdup(".") : slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static enum brv_status write_archive(struct job *job, const char *out_path)
{
	struct outfile out;
	uint64_t nbytes = 0;

	job->report->about_output = true;
	TRY(outfile_open(&out, out_path, job->options->force, job->checkpoint.fd, job->err));
	job->report->about_output = false;
	char *directory = directory_of(out_path);
	job->emitter = directory ? alloc_emitter(directory, SPOOL_NBYTES) : NULL;
	enum brv_status status = job->emitter ? BRV_OK : fail(job->err, BRV_MEMORY, "no memory");
	if (status == BRV_OK)
		status = code_header(job);
	if (status == BRV_OK)
		status = run_batches(job);
	if (status == BRV_OK) {
		const struct cost_model model = cost_model(job->options->favor, job->options->target);
		status = emit_finish(job->emitter, out.fd, &model, &nbytes, job->err);
		job->report->about_output = status != BRV_OK;
	}
	if (status == BRV_OK && !out.sequential)
		status = compare_archive(out.fd, &job->checkpoint, pool_threads(job->pool), job->err);
	if (status == BRV_OK) {
		status = outfile_commit(&out, nbytes, job->err);
		job->report->about_output = status != BRV_OK;
	}
	outfile_abandon(&out);
	job->report->out_nbytes = nbytes;
	free(directory);
	return status;
}

/* The prior: from a file, or learned from this checkpoint. */
static enum brv_status find_prior(struct job *job, struct prior *prior)
{
	const struct synth_options *o = job->options;
	struct learner learner;

	if (o->no_prior)
		return BRV_OK; /* an empty one is uniform */
	if (o->prior_in)
		return prior_load(prior, o->prior_in, job->err);
	TRY(learner_start(&learner, &job->plan, prior, job->err));
	const enum brv_status status = learner_add(&learner, &job->checkpoint, job->pool, job->err);
	learner_end(&learner);
	return status == BRV_OK && o->prior_out ? prior_save(prior, o->prior_out, o->force, job->err) : status;
}

static enum brv_status run(struct job *job, const char *out, struct prior *prior)
{
	const struct synth_options *o = job->options;
	const uint64_t need = 256ull << 20;
	uint64_t largest = 0;

	for (size_t i = 0; i < job->checkpoint.ntensors; i++)
		largest = MAX(largest, job->checkpoint.tensor[i].nbytes);
	if (o->memory_limit && 3 * largest + need > o->memory_limit)
		return fail(job->err, BRV_LIMIT, "the largest tensor has %llu bytes: this needs up to %llu bytes of memory, the limit is %llu",
			    (unsigned long long)largest, (unsigned long long)(3 * largest + need), (unsigned long long)o->memory_limit);
	job->encoder = calloc(pool_threads(job->pool), sizeof(*job->encoder));
	job->same = alloc_same(job->checkpoint.ntensors);
	job->kinds = alloc_kinds();
	if (!job->encoder || !job->same || !job->kinds)
		return fail(job->err, BRV_MEMORY, "no memory for %zu tensors", job->checkpoint.ntensors);
	job->plan = plan_of(o, o->prior ? o->prior : prior);
	if (!o->prior)
		TRY(find_prior(job, prior));
	if (o->learn_only)
		return BRV_OK;
	if (o->explain)
		return explain(job);
	warn_unknown_dtypes(job);
	return write_archive(job, out);
}

enum brv_status synth_file(const char *in, const char *out, const struct synth_options *options, struct synth_report *report, struct error *err)
{
	struct job job = { .options = options, .report = report, .err = err };
	struct prior *prior = alloc_prior();
	const double start = seconds_now();

	memset(report, 0, sizeof(*report));
	enum brv_status status = prior ? alloc_pool(options->threads, &job.pool, err) : fail(err, BRV_MEMORY, "no memory");
	if (status == BRV_OK)
		status = checkpoint_open(in, &job.checkpoint, err);
	if (status == BRV_OK && options->expected_nbytes && options->expected_nbytes != job.checkpoint.file_nbytes) {
		checkpoint_close(&job.checkpoint);
		status = fail(err, BRV_INPUT, "the file changed while its directory was compressed");
	}
	if (status == BRV_OK) {
		report->in_nbytes = job.checkpoint.file_nbytes, report->tensors = job.checkpoint.ntensors;
		status = run(&job, out, prior);
		for (unsigned i = 0; job.encoder && i < pool_threads(job.pool); i++)
			encoder_free(&job.encoder[i]);
		free_emitter(job.emitter);
		checkpoint_close(&job.checkpoint);
	}
	free(job.encoder);
	free_same(job.same);
	free_kinds(job.kinds);
	free_pool(job.pool);
	free_prior(prior);
	report->seconds = seconds_now() - start;
	return status;
}

/* brevis.c: the public API: opening calls the stages in their order, decoding calls decode.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/brevis.h"

#include <stdlib.h>

#include "common/cpus.h"
#include "runtime/decode.h"
#include "runtime/header.h"
#include "runtime/object.h"
#include "runtime/place.h"
#include "runtime/verify.h"

#define DEFAULT_MEMORY_LIMIT (4ull << 30)

/* The public names of statuses and errors are those of common/status.h under the prefix that the header may use. */
static_assert((int)BRV_SUCCESS == (int)BRV_OK && (int)BRV_E_OTHER == (int)BRV_OTHER && (int)BRV_E_USAGE == (int)BRV_USAGE, "same numbers");
static_assert((int)BRV_E_INPUT == (int)BRV_INPUT && (int)BRV_E_DAMAGED == (int)BRV_DAMAGED && (int)BRV_E_IO == (int)BRV_IO, "same numbers");
static_assert((int)BRV_E_LIMIT == (int)BRV_LIMIT && (int)BRV_E_MEMORY == (int)BRV_MEMORY && (int)BRV_E_VERSION == (int)BRV_VERSION,
	      "same numbers");
static_assert((int)BRV_E_NOTFOUND == (int)BRV_NOTFOUND && (int)BRV_E_CANCELLED == (int)BRV_CANCELLED, "same numbers");
static_assert(sizeof(brv_error) == sizeof(struct error), "same text");

static brv_status_code give(enum brv_status status, const struct error *err, brv_error *out)
{
	if (out)
		memcpy(out->text, status == BRV_OK ? "" : err->text, status == BRV_OK ? 1 : sizeof out->text);
	return (brv_status_code)status;
}

static brv_status_code refuse(enum brv_status status, const char *what, brv_error *out)
{
	struct error err;
	return give(fail(&err, status, "%s", what), &err, out);
}

const char *brv_status_text(brv_status_code status) { return status_text((enum brv_status)status); }

enum brv_status memory_take(struct brv_archive *archive, uint64_t nbytes, const char *what, struct error *err)
{
	uint64_t used = atomic_load(&archive->memory_used);
	do {
		if (nbytes > archive->memory_limit || used > archive->memory_limit - nbytes)
			return fail(err, BRV_LIMIT, "%s needs %llu bytes more than the %llu in use: over the memory limit of %llu", what,
				    (unsigned long long)nbytes, (unsigned long long)used, (unsigned long long)archive->memory_limit);
	} while (!atomic_compare_exchange_weak(&archive->memory_used, &used, used + nbytes));
	return BRV_OK;
}

void memory_give(struct brv_archive *archive, uint64_t nbytes) { atomic_fetch_sub(&archive->memory_used, nbytes); }

static enum brv_status make_plans(struct brv_archive *archive, struct error *err)
{
	const struct view *view = &archive->view;
	TRY(memory_take(archive, view->nprograms * sizeof *archive->plan, "the index", err));
	archive->plan = malloc(view->nprograms * sizeof *archive->plan + 1);
	if (!archive->plan)
		return fail(err, BRV_MEMORY, "no memory for %u programs", view->nprograms);
	for (uint32_t i = 0; i < view->nprograms; i++)
		plan_make(&archive->plan[i], &view->program[i]);
	for (uint32_t i = 0; i < view->nstreams; i++) {
		const struct stream *stream = &view->stream[i];
		uint64_t n = plan_round(MIN(stream->chunk_words, stream->nwords));
		for (unsigned k = 0; k < stream->nvariants; k++) {
			struct place end = archive->plan[view->variant[stream->variants_at + k]].end;
			archive->arena_nbytes = MAX(archive->arena_nbytes, place_offset(end, n, KN_PAD));
		}
	}
	return BRV_OK;
}

/* The stages of opening. */
static enum brv_status open_stages(struct brv_archive *archive, struct error *err)
{
	struct view *view = &archive->view;
	TRY(kn_choose(&archive->kernels, err));
	TRY(parse(view, &archive->source, archive->memory_limit, err));
	atomic_store(&archive->memory_used, view->nbytes);
	TRY(verify(view, err));
	archive->first_tensor = 1 + view->nclasses;
	if (view->ntensors > 0) {
		const struct stream *last = tensor_stream(archive, view->ntensors - 1);
		archive->data_nbytes = last->data_offset + last->data_nbytes;
	}
	TRY(lazy_init(archive, err));
	TRY(make_plans(archive, err));
	TRY(header_load(archive, err));
	TRY(memory_take(archive, names_nbytes(view), "the names", err));
	TRY(names_resolve(&archive->names, view, archive->header, archive->header_nbytes, err));
	return archive->source.sequential ? classes_load(archive, err) : BRV_OK;
}

/* Takes the source, also on failure. */
static brv_status_code open_source(const struct source *source, const brv_options *options, brv_archive **out, brv_error *error)
{
	struct error err;
	brv_options chosen = { 0 };
	struct brv_archive *archive = calloc(1, sizeof *archive);
	if (options)
		memcpy(&chosen, options, MIN(options->struct_nbytes, sizeof chosen));
	if (!archive) {
		struct source owned = *source;
		source_free(&owned);
		return refuse(BRV_MEMORY, "no memory for an archive", error);
	}
	archive->source = *source;
	archive->memory_limit = chosen.memory_limit ? chosen.memory_limit : DEFAULT_MEMORY_LIMIT;
	archive->checksums = !chosen.no_checksums;
	archive->source.drop_cache = chosen.drop_cache;
	pthread_mutex_init(&archive->lock, NULL);
	pthread_mutex_init(&archive->lazy.lock, NULL);
	enum brv_status status = open_stages(archive, &err);
	if (status == BRV_OK) {
		*out = archive;
		return give(BRV_OK, &err, error);
	}
	brv_close(archive);
	return give(status, &err, error);
}

brv_status_code brv_open_path(const char *path, const brv_options *options, brv_archive **out, brv_error *error)
{
	struct error err;
	struct source source;
	if (!path || !out)
		return refuse(BRV_USAGE, "brv_open_path: path or out is NULL", error);
	*out = NULL;
	enum brv_status status = source_from_path(&source, path, &err);
	return status == BRV_OK ? open_source(&source, options, out, error) : give(status, &err, error);
}

brv_status_code brv_open_fd(int fd, const brv_options *options, brv_archive **out, brv_error *error)
{
	struct error err;
	struct source source;
	if (!out)
		return refuse(BRV_USAGE, "brv_open_fd: out is NULL", error);
	*out = NULL;
	enum brv_status status = source_from_fd(&source, fd, false, &err);
	return status == BRV_OK ? open_source(&source, options, out, error) : give(status, &err, error);
}

brv_status_code brv_open_memory(const void *bytes, size_t nbytes, const brv_options *options, brv_archive **out, brv_error *error)
{
	struct source source;
	if (!bytes || !out)
		return refuse(BRV_USAGE, "brv_open_memory: bytes or out is NULL", error);
	*out = NULL;
	source_from_memory(&source, bytes, nbytes);
	return open_source(&source, options, out, error);
}

brv_status_code brv_open_reader(const brv_reader *reader, const brv_options *options, brv_archive **out, brv_error *error)
{
	struct source source;
	if (!reader || !reader->read || !out)
		return refuse(BRV_USAGE, "brv_open_reader: reader or out is NULL", error);
	*out = NULL;
	source_from_reader(&source, reader);
	return open_source(&source, options, out, error);
}

void brv_close(brv_archive *archive)
{
	if (!archive)
		return;
	decoders_free(archive);
	lazy_free(archive);
	names_free(&archive->names);
	free(archive->header);
	free(archive->plan);
	view_free(&archive->view);
	source_free(&archive->source);
	pthread_mutex_destroy(&archive->lock);
	free(archive);
}

void brv_get_info(const brv_archive *archive, brv_info *out)
{
	*out = (brv_info){
		.archive_nbytes = archive->view.prelude.archive_nbytes,
		.file_nbytes = 8 + archive->header_nbytes + archive->data_nbytes,
		.header_nbytes = archive->header_nbytes,
		.data_nbytes = archive->data_nbytes,
		.tensor_count = archive->view.ntensors,
		.format_version = archive->view.prelude.version,
	};
}

const char *brv_header(const brv_archive *archive) { return (const char *)archive->header; }

/* The payload of a stream's chunks lies in one piece. */
static uint64_t payload_nbytes(const struct view *view, const struct stream *stream)
{
	if (stream->nchunks == 0)
		return 0;
	const struct chunk *first = &view->chunk[stream->chunk_at], *last = first + stream->nchunks - 1;
	return last->payload_offset + last->payload_nbytes - first->payload_offset;
}

brv_status_code brv_get_tensor(const brv_archive *archive, uint64_t index, brv_tensor *out, brv_error *error)
{
	if (!archive || !out)
		return refuse(BRV_USAGE, "brv_get_tensor: archive or out is NULL", error);
	if (index >= archive->view.ntensors)
		return refuse(BRV_NOTFOUND, "no tensor has this number", error);
	const struct view *view = &archive->view;
	const struct stream *stream = tensor_stream(archive, index);
	struct span name = stream_name(view, archive->header, stream);
	*out = (brv_tensor){
		.name = (const char *)name.ptr,
		.name_nbytes = name.nbytes,
		.dtype = stream->dtype == AR_DTYPE_OTHER ? view->text + stream->dtype_at : dtype_by_code(stream->dtype)->name,
		.shape = view->dim + stream->dims_at,
		.ndim = stream->ndim,
		.data_offset = stream->data_offset,
		.data_nbytes = stream->data_nbytes,
		.archive_nbytes = payload_nbytes(view, stream) + stream->record_nbytes + 8 * stream->nchunks,
	};
	return give(BRV_OK, NULL, error);
}

brv_status_code brv_find_tensor(const brv_archive *archive, const char *name, size_t name_nbytes, uint64_t *index, brv_error *error)
{
	if (!archive || (!name && name_nbytes) || !index)
		return refuse(BRV_USAGE, "brv_find_tensor: an argument is NULL", error);
	uint32_t stream = names_find(&archive->names, name ? name : "", name_nbytes);
	if (stream == 0)
		return refuse(BRV_NOTFOUND, "no tensor has this name", error);
	*index = stream - archive->first_tensor;
	return give(BRV_OK, NULL, error);
}

/* Ranges that have been checked. What decoding changes in the archive (lazy.h, idle decoders) is not what the caller's const is about. */
static brv_status_code decode_ranges(const brv_archive *archive, const struct decode_range *range, size_t nranges, const brv_call *call,
				     brv_error *error)
{
	struct error err = { "" };
	brv_call chosen = { 0 };
	if (call)
		memcpy(&chosen, call, MIN(call->struct_nbytes, sizeof chosen));
	const struct decode_call inner = {
		.range = range, .nranges = nranges, .pool = chosen.pool,
		.progress = chosen.progress, .progress_context = chosen.progress_context, .cancel = chosen.cancel,
	};
	for (size_t i = 0; i < nranges; i++)
		place_output(chosen.pool ? chosen.pool->place : NULL, range[i].dst, range[i].nbytes, !chosen.no_huge_pages);
	return give(decode_data((struct brv_archive *)archive, &inner, &err), &err, error);
}

static brv_status_code decode(const brv_archive *archive, uint64_t offset, void *dst, size_t nbytes, const brv_call *call, brv_error *error)
{
	const struct decode_range range = { offset, nbytes, dst };
	if (!dst && nbytes)
		return refuse(BRV_USAGE, "the buffer is NULL", error);
	return decode_ranges(archive, &range, 1, call, error);
}

brv_status_code brv_decode_tensor(const brv_archive *archive, uint64_t index, void *dst, size_t dst_nbytes, const brv_call *call,
				  brv_error *error)
{
	brv_tensor tensor;
	brv_status_code status = brv_get_tensor(archive, index, &tensor, error);
	if (status != BRV_SUCCESS)
		return status;
	if (dst_nbytes < tensor.data_nbytes)
		return refuse(BRV_USAGE, "the buffer is smaller than the tensor", error);
	return decode(archive, tensor.data_offset, dst, tensor.data_nbytes, call, error);
}

brv_status_code brv_decode_range(const brv_archive *archive, uint64_t index, uint64_t offset, void *dst, size_t nbytes,
				 const brv_call *call, brv_error *error)
{
	brv_tensor tensor;
	brv_status_code status = brv_get_tensor(archive, index, &tensor, error);
	if (status != BRV_SUCCESS)
		return status;
	if (offset > tensor.data_nbytes || nbytes > tensor.data_nbytes - offset)
		return refuse(BRV_NOTFOUND, "the range is not inside the tensor", error);
	return decode(archive, tensor.data_offset + offset, dst, nbytes, call, error);
}

brv_status_code brv_decode_rows(const brv_archive *archive, uint64_t index, uint64_t first_row, uint64_t rows, void *dst, size_t dst_nbytes,
				const brv_call *call, brv_error *error)
{
	brv_tensor tensor;
	brv_status_code status = brv_get_tensor(archive, index, &tensor, error);
	if (status != BRV_SUCCESS)
		return status;
	const uint64_t all = tensor.ndim ? tensor.shape[0] : 0;
	if (first_row > all || rows > all - first_row)
		return refuse(BRV_NOTFOUND, "the rows are not inside the tensor", error);
	if (all && tensor.data_nbytes % all)
		return refuse(BRV_NOTFOUND, "the tensor's rows do not fill whole bytes", error);
	const uint64_t row_nbytes = all ? tensor.data_nbytes / all : 0;
	if (dst_nbytes < rows * row_nbytes)
		return refuse(BRV_USAGE, "the buffer is smaller than the rows", error);
	return decode(archive, tensor.data_offset + first_row * row_nbytes, dst, rows * row_nbytes, call, error);
}

brv_status_code brv_decode_list(const brv_archive *archive, const brv_request *request, size_t count, const brv_call *call, brv_error *error)
{
	brv_status_code status = BRV_SUCCESS;
	if (!archive || (!request && count))
		return refuse(BRV_USAGE, "brv_decode_list: an argument is NULL", error);
	struct decode_range *range = calloc(count + 1, sizeof(*range));
	if (!range)
		return refuse(BRV_MEMORY, "no memory for a list of requests", error);
	for (size_t i = 0; status == BRV_SUCCESS && i < count; i++) {
		brv_tensor tensor;
		status = brv_get_tensor(archive, request[i].tensor, &tensor, error);
		if (status != BRV_SUCCESS)
			break;
		if (request[i].offset > tensor.data_nbytes || request[i].nbytes > tensor.data_nbytes - request[i].offset)
			status = refuse(BRV_NOTFOUND, "a range is not inside its tensor", error);
		else if (!request[i].dst && request[i].nbytes)
			status = refuse(BRV_USAGE, "a buffer is NULL", error);
		range[i] = (struct decode_range){ tensor.data_offset + request[i].offset, request[i].nbytes, request[i].dst };
	}
	if (status == BRV_SUCCESS)
		status = decode_ranges(archive, range, count, call, error);
	free(range);
	return status;
}

brv_status_code brv_decode_data(const brv_archive *archive, uint64_t offset, void *dst, size_t nbytes, const brv_call *call,
				brv_error *error)
{
	if (!archive)
		return refuse(BRV_USAGE, "brv_decode_data: archive is NULL", error);
	if (offset > archive->data_nbytes || nbytes > archive->data_nbytes - offset)
		return refuse(BRV_NOTFOUND, "the range is not inside the data", error);
	return decode(archive, offset, dst, nbytes, call, error);
}

brv_status_code brv_pool_create(unsigned threads, brv_pool **out, brv_error *error)
{
	const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = threads };
	return brv_pool_create_with(&options, out, error);
}

brv_status_code brv_pool_create_with(const brv_pool_options *options, brv_pool **out, brv_error *error)
{
	struct error err;
	brv_pool_options chosen = { 0 };
	if (!out)
		return refuse(BRV_USAGE, "brv_pool_create: out is NULL", error);
	*out = NULL;
	if (options)
		memcpy(&chosen, options, MIN(options->struct_nbytes, sizeof chosen));
	if ((unsigned)chosen.numa > BRV_NUMA_INTERLEAVE)
		return refuse(BRV_USAGE, "brv_pool_create: there is no such placement", error);
	enum brv_status status = cpus_threads(chosen.threads, &chosen.threads, &err);
	if (status != BRV_OK)
		return give(status, &err, error);
	brv_pool *pool = malloc(sizeof *pool);
	if (!pool)
		return refuse(BRV_MEMORY, "no memory for a pool", error);
	status = alloc_pool(chosen.threads, &pool->team, &err);
	if (status != BRV_OK) {
		free(pool);
		return give(status, &err, error);
	}
	pool->place = alloc_place(chosen.numa, pool_threads(pool->team));
	place_team(pool->place, pool->team);
	*out = pool;
	return give(BRV_OK, NULL, error);
}

unsigned brv_pool_threads(const brv_pool *pool) { return pool_threads(pool->team); }

size_t brv_pool_describe(const brv_pool *pool, char *text, size_t size)
{
	struct text_out out = { text, size, 0 };
	if (size)
		text[0] = 0;
	place_describe(pool->place, brv_pool_threads(pool), &out);
	return out.length;
}

void brv_pool_free(brv_pool *pool)
{
	if (!pool)
		return;
	free_pool(pool->team);
	free_place(pool->place);
	free(pool);
}

const char *brv_isa(void)
{
	const struct kn_set *set;
	return kn_choose(&set, NULL) == BRV_OK ? set->name : "none";
}

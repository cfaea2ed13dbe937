/* decoder.c: what one thread needs to decode chunks: memory, tables, loaded payload (decoder.h).
 *
 * Decoders are kept by the archive between calls, so that small calls find warm memory; there are as many as threads that ever
 * decoded at the same time. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/decoder.h"

#include <stdlib.h>

#include "common/text.h"
#include "runtime/lazy.h"
#include "runtime/place.h"
#include "runtime/sum.h"
#include "runtime/verify.h"

enum { HELD_TABLES = 2 * BC_MAX_INSTR };

struct scratch {
	uint8_t *ptr;
	uint64_t nbytes;
};

struct decoder {
	struct brv_archive *archive;
	struct decoder *next;           /* in archive->idle */
	unsigned node;                  /* where its memory is, about */
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
	XXH3_state_t *sum;              /* of a chunk that goes past the caches; NULL until the first */
	struct error ref_err;
};

/* Output past the caches. */
struct past {
	struct kn_drain drain;
	kn_past_fn *copy;
	uint8_t *at;
	XXH3_state_t *sum;              /* NULL: not wanted */
};

enum { PAST_CHUNK_NBYTES = 1 << 15 };   /* smaller chunks go the usual way */

/* At least nbytes of memory whose contents do not matter. */
static enum brv_status scratch_reserve(struct brv_archive *archive, struct scratch *scratch, uint64_t nbytes, struct error *err)
{
	if (nbytes <= scratch->nbytes)
		return BRV_OK;
	free(scratch->ptr);
	memory_give(archive, scratch->nbytes);
	*scratch = (struct scratch){ NULL, 0 };
	TRY(memory_take(archive, nbytes, "decoding", err));
	scratch->ptr = alloc_big(nbytes);
	if (!scratch->ptr) {
		memory_give(archive, nbytes);
		return fail(err, BRV_MEMORY, "no memory for %llu bytes", (unsigned long long)nbytes);
	}
	scratch->nbytes = nbytes;
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

enum brv_status decoder_out(struct decoder *decoder, uint64_t nbytes, uint8_t **out, struct error *err)
{
	TRY(scratch_reserve(decoder->archive, &decoder->out, nbytes, err));
	*out = decoder->out.ptr;
	return BRV_OK;
}

static void free_decoder(struct decoder *decoder)
{
	while (decoder) {
		struct brv_archive *archive = decoder->archive;
		struct decoder *ref = decoder->ref;
		scratch_free(archive, &decoder->arena);
		scratch_free(archive, &decoder->payload);
		scratch_free(archive, &decoder->out);
		XXH3_freeState(decoder->sum);
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

enum brv_status decoder_take(struct brv_archive *archive, unsigned node, struct decoder **out, struct error *err)
{
	pthread_mutex_lock(&archive->lock);
	struct decoder **at = &archive->idle;
	while (*at && (*at)->node != node)
		at = &(*at)->next;
	if (!*at)
		at = &archive->idle;
	*out = *at;
	if (*out)
		*at = (*out)->next;
	pthread_mutex_unlock(&archive->lock);
	if (*out)
		return BRV_OK;
	TRY(alloc_decoder(archive, out, err));
	(*out)->node = node;
	return BRV_OK;
}

static void release_tables(struct decoder *decoder)
{
	while (decoder->nheld > 0)
		table_put(decoder->archive, decoder->held[--decoder->nheld].number);
}

void decoder_release(struct decoder *decoder)
{
	release_tables(decoder);
	if (decoder->ref)
		release_tables(decoder->ref);
}

void decoder_give(struct decoder *decoder)
{
	struct brv_archive *archive = decoder->archive;
	decoder_release(decoder);
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

enum brv_status decoder_load(struct decoder *decoder, uint64_t first, uint64_t end, struct error *err)
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
static enum brv_status fail_chunk(const struct brv_archive *archive, const struct stream *stream, uint64_t k, enum brv_status status,
				  const char *what, struct error *err)
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

static enum brv_status set_operand(struct decoder *decoder, const struct stream *stream, unsigned i, uint64_t k, uint64_t table, struct error *err)
{
	const struct bc_program *program = decoder->exec.program;
	struct exec_operand *operand = &decoder->exec.operand[i];

	TRY(hold_table(decoder, (uint32_t)table, &operand->table, err));
	if (!(program->instr[i].flags & BC_CLASSED))
		return BRV_OK;
	operand->first = program_classed_first(program, i, stream->chunk_words, k);
	const struct kn_table_shape shape = table_shape(operand->table);
	if (shape.kr > 1)
		TRY(rows_get(decoder->archive, stream, &operand->row_class, err));
	if (shape.kc > 1)
		TRY(columns_get(decoder->archive, stream, shape.log2_nb, &operand->col_class, err));
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
	exec->counts = chunk_counts(&archive->view, program, chunk);
	exec->ref = run_ref;
	exec->ref_context = decoder;
	exec->drain = NULL;
	if (exec->plan->has_gate)
		TRY(rows_get(archive, stream, &exec->row_class, err));
	if (decoder->nheld + program->ntables > HELD_TABLES)
		release_tables(decoder);
	for (unsigned i = 0; i < program->ninstr; i++) {
		const struct bc_instr *instr = &program->instr[i];
		exec->operand[i] = (struct exec_operand){ NULL, NULL, NULL, exec->first };
		if (instr->op == OP_GATE)
			exec->operand[i].row_class = exec->row_class;
		else if (bc_opinfo(instr->op)->table != TABLE_NONE)
			TRY(set_operand(decoder, stream, i, k, *table++, err));
	}
	if (exec->plan->has_gate && program->nrefs) {
		TRY(exec_layout(exec));
		TRY(verify_refs(&archive->view, stream, chunk, exec->nwords, err));
	}
	return BRV_OK;
}

static void put_past(struct kn_drain *drain, const uint8_t *bytes, size_t nbytes)
{
	struct past *past = (struct past *)drain;
	if (past->sum)
		sum_add(past->sum, bytes, nbytes);
	past->copy(past->at, bytes, nbytes);
	past->at += nbytes;
	drain->nbytes += nbytes;
}

/* Runs decoder->exec into dst past the caches; what a kernel does not put there itself waits in the arena. *sum: of its bytes, if wanted. */
static enum brv_status run_past(struct decoder *decoder, uint8_t *dst, uint64_t *sum, struct error *err)
{
	struct past past = { .drain = { put_past, 0 }, .copy = decoder->exec.kernels->copy_past, .at = dst };
	if (sum) {
		if (!decoder->sum && !(decoder->sum = XXH3_createState()))
			return fail(err, BRV_MEMORY, "no memory for a checksum");
		past.sum = decoder->sum;
		sum_start(past.sum);
	}
	decoder->exec.drain = &past.drain;
	TRY(exec_run(&decoder->exec, decoder->arena.ptr));
	if (sum)
		*sum = sum_of(past.sum);
	return BRV_OK;
}

/* Decodes chunk k of a stream, whose payload is loaded, to dst. */
static enum brv_status run_chunk(struct decoder *decoder, const struct stream *stream, uint64_t k, void *dst, unsigned flags, struct error *err)
{
	struct brv_archive *archive = decoder->archive;
	const uint64_t nbytes = chunk_nwords(stream, k) * word_nbytes(stream->width);
	const bool past = flags & DECODER_PAST && nbytes >= PAST_CHUNK_NBYTES && archive->kernels->copy_past;
	uint64_t sum = 0;
	struct error why = { "its payload is damaged" };
	decoder->ref_err.text[0] = 0;
	enum brv_status status = prepare(decoder, stream, k, &why);
	if (status == BRV_OK)
		status = past ? run_past(decoder, dst, flags & DECODER_SUM ? &sum : NULL, &why) : exec_run(&decoder->exec, dst);
	if (status != BRV_OK && decoder->ref_err.text[0])
		why = decoder->ref_err;
	if (status == BRV_OK && flags & DECODER_SUM && !past)
		sum = chunk_checksum(dst, nbytes);
	if (status == BRV_OK && flags & DECODER_SUM && sum != chunk_sum(&archive->view, stream->chunk_at + k)) {
		status = BRV_DAMAGED;
		memcpy(why.text, "the checksum does not match", sizeof "the checksum does not match");
	}
	return status == BRV_OK ? BRV_OK : fail_chunk(archive, stream, k, status, why.text, err);
}

enum brv_status decoder_run(struct decoder *decoder, const struct stream *stream, uint64_t k, uint64_t low, uint64_t high, uint8_t *dst,
				   unsigned flags, struct error *err)
{
	unsigned size = word_nbytes(stream->width);
	uint64_t start = k * stream->chunk_words * size, end = start + chunk_nwords(stream, k) * size;
	if (dst && low <= start && end <= high)
		return run_chunk(decoder, stream, k, dst + (start - low), flags, err);
	TRY(run_chunk(decoder, stream, k, decoder->arena.ptr, flags & DECODER_SUM, err));
	uint64_t from = MAX(low, start), to = MIN(high, end);
	if (dst)
		memcpy(dst + (from - low), decoder->arena.ptr + (from - start), to - from);
	return BRV_OK;
}

void decoder_settle(const struct decoder *decoder)
{
	if (decoder->archive->kernels->copy_past)
		decoder->archive->kernels->copy_past(NULL, NULL, 0);
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
	TRY(decoder_load(decoder->ref, stream->chunk_at + low, stream->chunk_at + high, err));
	for (uint64_t k = low; k < high; k++)
		TRY(decoder_run(decoder->ref, stream, k, first * size, (first + n) * size, dst, 0, err));
	return BRV_OK;
}

enum brv_status decode_stream(struct brv_archive *archive, const struct stream *stream, void *dst, struct error *err)
{
	struct decoder *decoder;
	const struct chunk *chunk = archive->view.chunk + stream->chunk_at;
	uint64_t nbytes = stream->nwords * word_nbytes(stream->width);
	TRY(decoder_take(archive, 0, &decoder, err));
	enum brv_status status = BRV_OK;
	for (uint64_t k = 0, end; status == BRV_OK && k < stream->nchunks;) {
		for (end = k + 1; end < stream->nchunks && chunk[end].payload_offset - chunk[k].payload_offset < CELL_NBYTES; end++)
			;
		status = decoder_load(decoder, stream->chunk_at + k, stream->chunk_at + end, err);
		for (; status == BRV_OK && k < end; k++)
			status = decoder_run(decoder, stream, k, 0, nbytes, dst, archive->checksums ? DECODER_SUM : 0, err);
	}
	decoder_give(decoder);
	return status;
}

enum brv_status decode_costs(struct brv_archive *archive, const struct stream *stream, uint64_t k, uint64_t nbytes[BC_MAX_INSTR],
			     struct error *err)
{
	struct decoder *decoder;
	TRY(decoder_take(archive, 0, &decoder, err));
	enum brv_status status = decoder_load(decoder, stream->chunk_at + k, stream->chunk_at + k + 1, err);
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
	decoder_give(decoder);
	return status;
}


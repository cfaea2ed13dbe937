/* encode.c: chunks encoded with a program: ops run backward down the tree, literals appended in the order of the bytecode.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "synth/encode.h"

#include <stdlib.h>
#include <xxhash.h>

#include "common/deal.h"
#include "synth/invert.h"
#include "synth/productions.h"
#include "synth/same.h"

/* One chunk on its way through a variant. at[i], n[i]: the words that instruction i has to produce; NULL: they were not wanted. */
struct job {
	const struct coded_stream *stream;
	const struct coded_variant *variant;
	const struct kn_set *set;
	bool only_tables;               /* words of literals without a table are not wanted */
	uint64_t first;
	const void *at[BC_MAX_INSTR];
	size_t n[BC_MAX_INSTR];
	unsigned rotate[BC_MAX_INSTR];  /* at[i] is still to be rotated left by this: a merge takes it along */
};

void encoder_free(struct encoder *encoder)
{
	free(encoder->arena);
	free(encoder->scratch);
	buffer_free(&encoder->payload);
	memset(encoder, 0, sizeof(*encoder));
}

void coded_stream_free(struct coded_stream *stream)
{
	for (unsigned i = 0; i < stream->ntables; i++) {
		buffer_free(&stream->table_body[i]);
		free(stream->table[i]);
	}
	classes_free(&stream->classes);
	free(stream->chunk);
	memset(stream, 0, sizeof(*stream));
}

/* What a register of n words takes of the arena: with room behind it, and so that the next one is aligned. */
static size_t register_nbytes(size_t n, unsigned width) { return (n * word_nbytes(width) + 127) & ~(size_t)63; }

/* Bytes of arena that a chunk of n words can need: every register once, with room behind it. */
static size_t arena_nbytes(const struct bc_program *program, size_t n)
{
	size_t nbytes = 0;

	for (unsigned i = 0; i < program->ninstr; i++)
		if (program->instr[i].op == OP_DEAL)
			n *= deal_most_words(program->instr[i].width, program->instr[i - 1].width);
	for (unsigned i = 0; i < program->ninstr; i++)
		nbytes += register_nbytes(n, program->instr[i].width);
	return nbytes;
}

/* Memory that is kept from chunk to chunk. */
static bool reserve(uint8_t **memory, size_t *have, size_t nbytes)
{
	if (*have >= nbytes)
		return true;
	free(*memory);
	*memory = malloc(nbytes);
	*have = *memory ? nbytes : 0;
	return *memory != NULL;
}

/* Whether the words of an instruction's argument are written down. */
static bool is_wanted(const struct job *job, const struct bc_instr *instr, unsigned arg)
{
	return !job->only_tables || instr->op != OP_MERGE || job->variant->program.instr[arg].op != OP_LIT_RAW;
}

/* Runs the program backward: from the root's words to those of every register. False if it cannot produce the chunk. */
static bool decompose(struct job *job, struct encoder *encoder, const void *words, size_t n)
{
	const struct bc_program *program = &job->variant->program;
	const struct classes *c = &job->stream->classes;
	const struct row_view rows = { c->row, c->row_words, job->first };
	uint8_t *free_at = encoder->arena;

	job->at[program->ninstr - 1] = words, job->n[program->ninstr - 1] = n;
	for (unsigned i = program->ninstr; i-- > 0;) {
		const struct bc_instr *instr = &program->instr[i];
		const uint8_t *arg = program->arg + program->arg_at[i];
		const struct words target = { job->at[i], job->n[i], instr->width };
		struct words_out out[EXPR_MAX_ARGS];

		if (target.n == 0) {
			for (unsigned k = 0; k < instr->nargs; k++)
				job->at[arg[k]] = free_at, job->n[arg[k]] = 0;
			continue;
		}
		if (instr->op == OP_MAP_ROT && program->instr[arg[0]].op == OP_MERGE) {
			job->at[arg[0]] = target.ptr, job->n[arg[0]] = target.n, job->rotate[arg[0]] = (unsigned)instr->imm;
			continue;
		}
		for (unsigned k = 0; k < instr->nargs; k++) {
			const size_t most = target.n * (instr->op == OP_DEAL ? deal_most_words(instr->width, program->instr[arg[k]].width) : 1);
			out[k] = (struct words_out){ .ptr = is_wanted(job, instr, arg[k]) ? free_at : NULL, .width = program->instr[arg[k]].width };
			free_at += out[k].ptr ? register_nbytes(most, out[k].width) : 0;
		}
		if (job->rotate[i] ? !invert_merge(target, job->rotate[i], out, instr->nargs) :
				     !invert(instr->op, instr->imm, target, &rows, out, instr->nargs))
			return false;
		for (unsigned k = 0; k < instr->nargs; k++)
			job->at[arg[k]] = out[k].ptr, job->n[arg[k]] = out[k].n;
	}
	return true;
}

/* Appends n words packed with w bits each. */
static void put_packed(const struct kn_set *set, struct buffer *buffer, const void *words, size_t n, unsigned width, uint64_t base, unsigned w)
{
	uint8_t *out = buffer_grow(buffer, packed_nbytes(n, w) + KN_PACK_PAD);

	if (!out)
		return;
	set->pack_words(out, words, n, width, base, w);
	buffer->nbytes -= KN_PACK_PAD;
}

static void put_pack_item(const struct kn_set *set, struct buffer *buffer, const void *words, size_t n, unsigned width)
{
	const size_t base_nbytes = (width + 7) / 8;
	uint64_t low, high;

	words_range((struct words){ words, n, width }, &low, &high);
	const unsigned bits = high == low ? 0 : 64 - (unsigned)__builtin_clzll(high - low);
	const uint32_t nbytes = (uint32_t)(1 + base_nbytes + packed_nbytes(n, bits));
	buffer_put(buffer, &nbytes, 4);
	buffer_put_u8(buffer, (uint8_t)bits);
	buffer_put(buffer, &low, base_nbytes);
	put_packed(set, buffer, words, n, width, low, bits);
}

/* The number of the first word of a CLASSED instruction. */
static uint64_t classed_first(const struct job *job, unsigned i)
{
	const uint64_t chunk_words = job->stream->chunk_words;
	return program_classed_first(&job->variant->program, i, chunk_words, job->first / chunk_words);
}

/* The last nbytes bytes of the packed words of a register. */
static void carry_bytes(const struct job *job, unsigned reg, size_t nbytes, uint8_t *out)
{
	const unsigned width = job->variant->program.instr[reg].width;
	/* Enough words, from a multiple of 8 on so that they begin at a byte. */
	const size_t n = job->n[reg], enough = 8 * nbytes / width + 9, from = n > enough ? (n - enough) / 8 * 8 : 0;
	uint8_t packed[3 * BC_CARRY_MAX_NBYTES + KN_PACK_PAD];

	job->set->pack_words(packed, (const uint8_t *)job->at[reg] + from * word_nbytes(width), n - from, width, 0, width);
	memcpy(out, packed + packed_nbytes(n - from, width) - nbytes, nbytes);
}

static bool put_table_item(struct encoder *encoder, const struct job *job, unsigned i)
{
	const struct kn_set *set = job->set;
	const struct bc_instr *instr = &job->variant->program.instr[i];
	const struct classes *c = &job->stream->classes;
	const bool classed = instr->flags & BC_CLASSED;
	const size_t bound = kn_encode_bound(job->n[i]), from = encoder->payload.nbytes;
	uint8_t carry[BC_CARRY_MAX_NBYTES];
	uint8_t *dst = buffer_grow(&encoder->payload, 4 + bound);
	size_t nbytes = 0;

	if (instr->flags & BC_CARRY)
		carry_bytes(job, instr->aux, bc_carry_nbytes(instr->op), carry);
	if (dst && reserve(&encoder->scratch, &encoder->scratch_nbytes, bound)) {
		const struct kn_enc_args args = {
			.dst = dst + 4, .src = job->at[i], .n = job->n[i], .table = job->stream->table[job->variant->table[i]],
			.row_class = classed ? c->row : NULL, .col_class = classed ? c->col : NULL, .row_words = classed ? c->row_words : 0,
			.first = classed ? classed_first(job, i) : job->first, .carry = instr->flags & BC_CARRY ? carry : NULL, .scratch = encoder->scratch,
		};
		nbytes = set->enc[bc_opinfo(instr->op)->table](&args);
		store_u32(dst, (uint32_t)nbytes);
		encoder->payload.nbytes = from + 4 + nbytes;
	}
	return nbytes > 0;
}

/* Appends what instruction i takes of the payload. */
static bool put_instr(struct encoder *encoder, const struct job *job, unsigned i)
{
	const struct bc_program *program = &job->variant->program;
	const struct bc_instr *instr = &program->instr[i];

	if (job->n[i] == 0)
		return true;
	switch (bc_opinfo(instr->op)->payload) {
	case PAYLOAD_PACKED:
		put_packed(job->set, &encoder->payload, job->at[i], job->n[i], instr->width, 0, instr->width);
		encoder->payload.nbytes -= program_carried_nbytes(program, i);
		return true;
	case PAYLOAD_FIRST:
		buffer_put(&encoder->payload, job->at[i], (instr->width + 7) / 8);
		return true;
	case PAYLOAD_ITEM:
		if (instr->op != OP_LIT_PACK)
			return put_table_item(encoder, job, i);
		put_pack_item(job->set, &encoder->payload, job->at[i], job->n[i], instr->width);
		return true;
	default:
		return true;
	}
}

/* Whether every carry of the variant finds its bytes in a chunk like this. */
static bool carries_fit(const struct job *job)
{
	const struct bc_program *program = &job->variant->program;

	for (unsigned i = 0; i < program->ninstr; i++)
		if (program->carry_of[i] != 255 && (packed_nbytes(job->n[i], program->instr[i].width) < program_carried_nbytes(program, i) || !job->n[program->carry_of[i]]))
			return false;
	return true;
}

/* The counts that a chunk record has. */
static void set_counts(const struct job *job, struct coded_chunk *chunk)
{
	const struct bc_program *program = &job->variant->program;

	for (unsigned i = 0, nth = 0; i < program->ninstr; i++)
		if (bc_opinfo(program->instr[i].op)->words == WORDS_COUNT)
			chunk->count[nth++] = job->n[i] ? (uint32_t)job->n[program->arg[program->arg_at[i]]] : 0;
}

static bool encode_variant(struct encoder *encoder, const struct coded_stream *stream, unsigned variant, uint64_t first, const void *words, size_t n,
			   struct coded_chunk *chunk)
{
	struct job job = { .stream = stream, .variant = &stream->variant[variant], .first = first };

	encoder->payload.nbytes = 0;
	if (kn_choose(&job.set, NULL) != BRV_OK || !decompose(&job, encoder, words, n) || !carries_fit(&job))
		return false;
	for (unsigned i = 0; i < job.variant->program.ninstr; i++)
		if (!put_instr(encoder, &job, i))
			return false;
	set_counts(&job, chunk);
	return !encoder->payload.failed;
}

enum brv_status encode_chunk(struct encoder *encoder, struct coded_stream *stream, uint64_t index, const void *words)
{
	const uint64_t first = index * stream->chunk_words;
	const size_t n = (size_t)MIN(stream->chunk_words, stream->nwords - first);
	const size_t raw_nbytes = packed_nbytes(n, stream->width);
	struct coded_chunk *chunk = &stream->chunk[index];
	unsigned v = 0;

	chunk->sum = XXH3_64bits(words, n * word_nbytes(stream->width));
	if (stream->variant[0].program.instr[0].op == OP_REF) {
		chunk->ref_first = first;
		return BRV_OK;
	}
	if (!reserve(&encoder->arena, &encoder->arena_nbytes, arena_nbytes(&stream->variant[0].program, n)))
		return BRV_MEMORY;
	if (stream->nvariants > stream->ncoded && chunk->ref_first != SAME_NOTHING) {
		chunk->variant = (uint8_t)stream->ncoded;
		return BRV_OK;
	}
	while (v + 1 < stream->ncoded && !encode_variant(encoder, stream, v, first, words, n, chunk))
		v++;
	if (v + 1 == stream->ncoded || encoder->payload.nbytes > raw_nbytes) {
		v = stream->ncoded - 1; /* raw, or the only program */
		if (!encode_variant(encoder, stream, v, first, words, n, chunk))
			return BRV_MEMORY;
	}
	if (encoder->payload.failed)
		return BRV_MEMORY;
	chunk->variant = (uint8_t)v;
	chunk->payload_nbytes = (uint32_t)encoder->payload.nbytes;
	return BRV_OK;
}

static bool add_variant(struct coded_stream *stream, const struct expr *expr, bool carry)
{
	struct coded_variant *v = &stream->variant[stream->nvariants];
	unsigned table = 0;

	if (!expr_to_program(expr, carry, &v->program, v->node) || v->program.ncounts > ENCODE_MAX_COUNTS)
		return false;
	for (unsigned i = 0; i < v->program.ninstr; i++)
		if (bc_opinfo(v->program.instr[i].op)->table != TABLE_NONE)
			v->table[i] = (uint8_t)table++;
	stream->nvariants++;
	return true;
}

/* Only raw words: what is left when nothing else works. */
static void only_raw(struct coded_stream *stream)
{
	expr_init(&stream->expr, stream->width, 0);
	expr_fill(&stream->expr, 0, OP_LIT_RAW, 0, 0);
	stream->nvariants = 0;
	add_variant(stream, &stream->expr, false);
}

static const struct expr_node *node_of(const struct coded_stream *stream, unsigned instr)
{
	return &stream->expr.node[stream->variant[0].node[instr]];
}

static size_t counts_of(const struct coded_stream *stream, const struct expr_node *node)
{
	const struct classes *c = &stream->classes;
	return (size_t)(node->rows ? c->kr : 1) * (node->cols ? c->kc : 1) << node->width;
}

/* Counts the symbols of every literal with a table, over all chunks that the first variant can produce. */
static enum brv_status count_symbols(struct coded_stream *stream, const uint8_t *words, uint32_t *counts[ENCODE_MAX_TABLES])
{
	const struct coded_variant *v = &stream->variant[0];
	struct encoder encoder = { 0 };

	if (!reserve(&encoder.arena, &encoder.arena_nbytes, arena_nbytes(&v->program, (size_t)MIN(stream->chunk_words, stream->nwords))))
		return BRV_MEMORY;
	for (uint64_t index = 0; index < stream->nchunks; index++) {
		const uint64_t first = index * stream->chunk_words;
		struct job job = { .stream = stream, .variant = v, .only_tables = true, .first = first };
		const size_t n = (size_t)MIN(stream->chunk_words, stream->nwords - first);
		if (!decompose(&job, &encoder, words + first * word_nbytes(stream->width), n))
			continue;
		for (unsigned i = 0; i < v->program.ninstr; i++) {
			if (bc_opinfo(v->program.instr[i].op)->table == TABLE_NONE)
				continue;
			const struct expr_node *node = node_of(stream, i);
			classes_count(&stream->classes, node->rows, node->cols, job.at[i], node->width, job.n[i],
				      node->rows || node->cols ? classed_first(&job, i) : first, counts[v->table[i]]);
		}
	}
	encoder_free(&encoder);
	return BRV_OK;
}

static bool train_tables(struct coded_stream *stream, uint32_t *counts[ENCODE_MAX_TABLES])
{
	const struct coded_variant *v = &stream->variant[0];

	for (unsigned i = 0; i < v->program.ninstr; i++) {
		const uint8_t kind = bc_opinfo(v->program.instr[i].op)->table;
		if (kind == TABLE_NONE)
			continue;
		struct buffer *body = &stream->table_body[v->table[i]];
		if (!literal_train(node_of(stream, i), &stream->classes, counts[v->table[i]], body) || body->failed ||
		    table_expand(kind, (struct span){ body->data, body->nbytes }, &stream->table[v->table[i]], NULL) != BRV_OK)
			return false;
	}
	return true;
}

enum brv_status encode_prepare(struct coded_stream *stream, const struct expr *expr, const void *words, uint64_t nwords, unsigned width,
			       uint64_t chunk_words, struct classes *classes)
{
	uint32_t *counts[ENCODE_MAX_TABLES] = { NULL };
	bool classed = false, ok = true, carries = false;

	memset(stream, 0, sizeof(*stream));
	stream->width = width, stream->nwords = nwords, stream->chunk_words = chunk_words;
	stream->nchunks = nwords ? ceil_div(nwords, chunk_words) : 0;
	stream->expr = *expr;
	stream->chunk = calloc(stream->nchunks + 1, sizeof(*stream->chunk));
	if (!stream->chunk)
		return BRV_MEMORY;
	if (!add_variant(stream, expr, true))
		only_raw(stream);
	const struct bc_program *program = &stream->variant[0].program;
	for (unsigned i = 0; i < program->ninstr; i++) {
		classed |= (program->instr[i].flags & BC_CLASSED) != 0, carries |= (program->instr[i].flags & BC_CARRY) != 0;
		stream->ntables += bc_opinfo(program->instr[i].op)->table != TABLE_NONE;
	}
	if (classed && classes)
		stream->classes = *classes, memset(classes, 0, sizeof(*classes));
	if (stream->ntables > ENCODE_MAX_TABLES)
		stream->ntables = 0, only_raw(stream);
	for (unsigned i = 0; i < program->ninstr && stream->ntables; i++)
		if (bc_opinfo(program->instr[i].op)->table != TABLE_NONE) {
			uint32_t **c = &counts[stream->variant[0].table[i]];
			*c = calloc(counts_of(stream, node_of(stream, i)), sizeof(**c));
			ok = ok && *c;
		}
	enum brv_status status = !ok ? BRV_MEMORY : stream->ntables ? count_symbols(stream, words, counts) : BRV_OK;
	if (status == BRV_OK && !train_tables(stream, counts)) {
		for (unsigned i = 0; i < stream->ntables; i++)
			buffer_free(&stream->table_body[i]), free(stream->table[i]), stream->table[i] = NULL;
		stream->ntables = 0;
		classes_free(&stream->classes);
		only_raw(stream);
		carries = false;
	}
	for (unsigned i = 0; i < ENCODE_MAX_TABLES; i++)
		free(counts[i]);
	if (status != BRV_OK)
		return status;
	if (carries)
		add_variant(stream, expr, false);
	const uint8_t root = stream->variant[0].program.instr[0].op;
	if (stream->variant[0].program.ninstr > 1 || (root != OP_LIT_RAW && root != OP_REF)) {
		struct expr raw;
		expr_init(&raw, width, 0);
		expr_fill(&raw, 0, OP_LIT_RAW, 0, 0);
		add_variant(stream, &raw, false);
	}
	stream->ncoded = stream->nvariants;
	return BRV_OK;
}

void encode_set_refs(struct coded_stream *stream, uint64_t tensor, const uint64_t *first)
{
	struct expr expr;

	if (stream->nvariants == ENCODE_MAX_VARIANTS)
		return;
	expr_init(&expr, stream->width, 0);
	expr_fill(&expr, 0, OP_REF, 0, 0);
	if (!add_variant(stream, &expr, false))
		return;
	stream->ref_tensor = tensor;
	for (uint64_t k = 0; k < stream->nchunks; k++)
		stream->chunk[k].ref_first = first[k];
}

/* show.c: the program of a tensor as text, with what each part of it costs (brv_describe, brv_show).
 *
 * What is counted: payload bytes by instruction, the tensor's record in the decoded INDX, 8 bytes of SUMS for each chunk: together
 * brv_tensor.archive_nbytes. Programs, tables and class streams are shared by tensors: they are listed, not counted.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"
#include "runtime/decoder.h"
#include "runtime/show.h"

enum { LINE_NBYTES = 1024, COST_COLUMN = 64 };

/* What the chunks of one variant cost together. */
struct costs {
	uint64_t nchunks, nbytes[BC_MAX_INSTR];
};

static const struct bc_program *variant_program(const struct view *view, const struct stream *stream, unsigned variant)
{
	return &view->program[view->variant[stream->variants_at + variant]];
}

static unsigned most_used(const struct view *view, const struct stream *stream)
{
	uint64_t count[AR_MAX_VARIANTS] = { 0 };
	unsigned best = 0;
	for (uint64_t k = 0; k < stream->nchunks; k++)
		count[view->chunk[stream->chunk_at + k].variant]++;
	for (unsigned i = 1; i < stream->nvariants; i++)
		best = count[i] > count[best] ? i : best;
	return best;
}

size_t brv_describe(const brv_archive *archive, uint64_t index, char *text, size_t size)
{
	char line[LINE_NBYTES] = "";
	struct text_out out = { text, size, 0 };
	if (size)
		text[0] = 0;
	if (index >= archive->view.ntensors)
		return 0;
	const struct stream *stream = tensor_stream(archive, index);
	if (stream->nvariants > 0)
		program_print(variant_program(&archive->view, stream, most_used(&archive->view, stream)), line, sizeof line);
	text_add(&out, "%s", stream->nvariants > 0 ? line : "empty");
	return out.length;
}

static void put_cost(struct text_out *out, int width, uint64_t nbytes)
{
	text_add(out, "%*s %14llu\n", width, "", (unsigned long long)nbytes);
}

/* A line of label, padding and bytes. */
static void put_line(struct text_out *out, unsigned indent, const char *label, uint64_t nbytes)
{
	int used = (int)(indent + strlen(label));
	text_add(out, "%*s%s", (int)indent, "", label);
	put_cost(out, MAX(COST_COLUMN - used, 0), nbytes);
}

/* From the root down: an instruction, then its arguments, indented by their depth. */
static void put_tree(struct text_out *out, const struct bc_program *program, const struct costs *costs)
{
	uint8_t stack[BC_MAX_INSTR], depth[BC_MAX_INSTR];
	unsigned n = 1;
	stack[0] = (uint8_t)(program->ninstr - 1);
	depth[stack[0]] = 1;
	while (n > 0) {
		char label[128];
		unsigned i = stack[--n];
		instr_print(&program->instr[i], label, sizeof label);
		put_line(out, 2u * depth[i], label, costs->nbytes[i]);
		for (unsigned k = program->instr[i].nargs; k-- > 0;) {
			unsigned arg = program->arg[program->arg_at[i] + k];
			depth[arg] = (uint8_t)(depth[i] + 1);
			stack[n++] = (uint8_t)arg;
		}
	}
}

static void put_bytecode(struct text_out *out, const struct bc_program *program)
{
	for (unsigned i = 0; i < program->ninstr; i++) {
		char label[128];
		const struct bc_instr *instr = &program->instr[i];
		instr_print(instr, label, sizeof label);
		text_add(out, "  %02x %02x %02x %02x %08x %016llx  r%u = %s", instr->op, instr->width, instr->nargs, instr->flags, instr->aux,
		    (unsigned long long)instr->imm, i, label);
		for (unsigned k = 0; k < instr->nargs; k++)
			text_add(out, "%s r%u", k ? "," : " of", program->arg[program->arg_at[i] + k]);
		text_add(out, "\n");
	}
}

static void put_head(struct text_out *out, const struct stream *stream, const brv_tensor *tensor)
{
	char name[LINE_NBYTES];
	text_safe((const uint8_t *)tensor->name, tensor->name_nbytes, name, sizeof name);
	text_add(out, "%s: %s [", name, tensor->dtype);
	for (size_t i = 0; i < MIN(tensor->ndim, 16); i++)
		text_add(out, "%s%llu", i ? ", " : "", (unsigned long long)tensor->shape[i]);
	text_add(out, "%s], %llu bytes in %llu\n", tensor->ndim > 16 ? ", ..." : "", (unsigned long long)tensor->data_nbytes,
	    (unsigned long long)tensor->archive_nbytes);
	text_add(out, "%llu words of %u bits, %llu chunks of %llu words\n", (unsigned long long)stream->nwords, stream->width,
	    (unsigned long long)stream->nchunks, (unsigned long long)stream->chunk_words);
	if (stream->rows)
		text_add(out, "%u row classes: stream %u\n", stream->kr, stream->rows - 1);
	if (stream->columns)
		text_add(out, "%u column classes: stream %u\n", stream->kc, stream->columns - 1);
}

static uint64_t stream_payload(const struct view *view, const struct stream *stream)
{
	uint64_t nbytes = 0;
	for (uint64_t k = 0; k < stream->nchunks; k++)
		nbytes += view->chunk[stream->chunk_at + k].payload_nbytes;
	return nbytes;
}

static void put_class_stream(struct text_out *out, const struct view *view, uint32_t axis, const char *what)
{
	if (axis == 0)
		return;
	const struct stream *stream = &view->stream[axis - 1];
	char label[64];
	snprintf(label, sizeof label, "%s classes, stream %u", what, axis - 1);
	put_line(out, 2, label, stream_payload(view, stream) + stream->record_nbytes + 8 * stream->nchunks);
}

/* Tables that the tensor's chunks name, each once. `seen`: a bit for each table, all 0. */
static void put_tables(struct text_out *out, const struct view *view, const struct stream *stream, uint8_t *seen)
{
#define NAME(kind) #kind,
	static const char *const kinds[TABLE_KINDS] = { BC_TABLES(NAME) };
	for (uint64_t k = 0; k < stream->nchunks; k++) {
		const struct chunk *chunk = &view->chunk[stream->chunk_at + k];
		unsigned ntables = chunk_program(view, stream, chunk)->ntables;
		for (unsigned i = 0; i < ntables; i++) {
			uint64_t table = view->operand[chunk->operands_at + i];
			char label[64];
			if (seen[table / 8] >> (table % 8) & 1)
				continue;
			seen[table / 8] |= (uint8_t)(1 << (table % 8));
			snprintf(label, sizeof label, "table %llu, %s", (unsigned long long)table, kinds[view->table[table].kind]);
			put_line(out, 2, label, view->table[table].body.nbytes);
		}
	}
}

static void put_shared(struct text_out *out, const struct view *view, const struct stream *stream, uint8_t *seen)
{
	text_add(out, "shared with other tensors, not counted:\n");
	for (unsigned i = 0; i < stream->nvariants; i++) {
		char label[64];
		snprintf(label, sizeof label, "program %u", view->variant[stream->variants_at + i]);
		put_line(out, 2, label, 1u + BC_INSTR_NBYTES * variant_program(view, stream, i)->ninstr);
	}
	put_tables(out, view, stream, seen);
	put_class_stream(out, view, stream->rows, "row");
	put_class_stream(out, view, stream->columns, "column");
}

static enum brv_status collect(struct brv_archive *archive, const struct stream *stream, struct costs *costs, struct error *err)
{
	for (uint64_t k = 0; k < stream->nchunks; k++) {
		const struct chunk *chunk = &archive->view.chunk[stream->chunk_at + k];
		uint64_t nbytes[BC_MAX_INSTR];
		TRY(decode_costs(archive, stream, k, nbytes, err));
		costs[chunk->variant].nchunks++;
		for (unsigned i = 0; i < chunk_program(&archive->view, stream, chunk)->ninstr; i++)
			costs[chunk->variant].nbytes[i] += nbytes[i];
	}
	return BRV_OK;
}

static void put_all(struct text_out *out, const struct brv_archive *archive, const struct stream *stream, const brv_tensor *tensor,
		    const struct costs *costs, uint8_t *seen)
{
	const struct view *view = &archive->view;
	put_head(out, stream, tensor);
	for (unsigned i = 0; i < stream->nvariants; i++) {
		const struct bc_program *program = variant_program(view, stream, i);
		text_add(out, "\nprogram %u, %llu chunks, payload bytes:\n", view->variant[stream->variants_at + i],
			 (unsigned long long)costs[i].nchunks);
		put_tree(out, program, &costs[i]);
		put_bytecode(out, program);
	}
	text_add(out, "\n");
	put_line(out, 0, "payload of all programs", stream_payload(view, stream));
	put_line(out, 0, "record in the index", stream->record_nbytes);
	put_line(out, 0, "checksums", 8 * stream->nchunks);
	put_line(out, 0, "sum", tensor->archive_nbytes);
	text_add(out, "\n");
	put_shared(out, view, stream, seen);
}

enum brv_status show_tensor(struct brv_archive *archive, uint64_t index, char *text, size_t size, size_t *length, struct error *err)
{
	struct text_out out = { text, size, 0 };
	brv_tensor tensor;
	*length = 0;
	if (size)
		text[0] = 0;
	if (brv_get_tensor(archive, index, &tensor, NULL) != BRV_SUCCESS)
		return fail(err, BRV_NOTFOUND, "no tensor %llu", (unsigned long long)index);
	const struct stream *stream = tensor_stream(archive, index);
	struct costs *costs = calloc(stream->nvariants + 1u, sizeof *costs);
	uint8_t *seen = calloc(archive->view.ntables / 8 + 1, 1);
	enum brv_status status = costs && seen ? collect(archive, stream, costs, err) : fail(err, BRV_MEMORY, "out of memory");
	if (status == BRV_OK)
		put_all(&out, archive, stream, &tensor, costs, seen);
	free(costs);
	free(seen);
	*length = out.length;
	return status;
}

size_t brv_show(const brv_archive *archive, uint64_t index, char *text, size_t size)
{
	struct error err;
	size_t length;
	enum brv_status status = show_tensor((struct brv_archive *)archive, index, text, size, &length, &err);
	struct text_out out = { text, size, 0 };
	if (status == BRV_OK || status == BRV_NOTFOUND)
		return length;
	text_add(&out, "%s\n", err.text);
	return out.length;
}

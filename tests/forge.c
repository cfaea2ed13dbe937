/* forge.c: archives around any program (forge.h). SPDX-License-Identifier: Apache-2.0 */
#include "tests/forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common/packed_header.h"
#include "kernels/kernel.h"
#include "synth/train.h"
#include "tests/model.h"

enum { PROGRAM_RAW8 = 0, MAX_SYMBOLS = 1024 };

static uint64_t draw(struct forge *f)
{
	uint64_t z = f->random += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* A literal with a table: its table, and words that the table knows. */
struct coded {
	struct kn_table *table;
	unsigned number, nwords;
	uint16_t word[MAX_SYMBOLS];
};

/* A tensor in the making: one program of it, and one chunk. */
struct work {
	struct forge *f;
	const struct forge_tensor *tensor;
	struct bc_program program;
	struct coded *coded[BC_MAX_INSTR];
	uint64_t first, n, nwords[BC_MAX_INSTR], count[BC_MAX_INSTR]; /* count: the chunk's, in order */
	uint8_t *reg[BC_MAX_INSTR];
};

/* --- Tables --- */

/* Counts that fall off from a centre, differently in each class pair. */
static void count_words(struct work *w, struct coded *coded, unsigned width, unsigned pairs, uint32_t *counts)
{
	const unsigned symbols = MIN(w->tensor->symbols ? w->tensor->symbols : 12u, (unsigned)MAX_SYMBOLS);
	const uint64_t centre = draw(w->f);

	for (unsigned s = 0; s < symbols; s++) {
		coded->word[coded->nwords++] = (uint16_t)((centre + (s % 2 ? -(s / 2) - 1 : s / 2)) & mask_bits(width));
		for (unsigned p = 0; p < pairs; p++)
			counts[p << width | coded->word[s]] += (uint32_t)(1 + draw(w->f) % (16ull * (symbols - s)));
	}
}

/* Says a lit.rans table's bytes over another base. */
static void move_base(struct buffer *body, unsigned width, unsigned base)
{
	base &= (unsigned)mask_bits(width);
	store_u16(body->data + 4, (uint16_t)base);
	for (unsigned i = 8; i < 8 + (1u << body->data[0]) + 15; i++)
		body->data[i] = (uint8_t)((body->data[i] - base) & mask_bits(width));
}

static bool make_table(struct work *w, unsigned i)
{
	const struct bc_instr *in = &w->program.instr[i];
	const struct bc_opinfo *op = bc_opinfo(in->op);
	const bool classed = in->flags & BC_CLASSED;
	const unsigned rows = classed ? w->f->nclasses[w->tensor->rows] : 1, columns = classed ? w->f->nclasses[w->tensor->columns] : 1;
	const unsigned kr = MAX(rows, 1u), kc = MAX(columns, 1u), log2_nb = w->tensor->log2_nb ? w->tensor->log2_nb : 4;
	struct buffer body = { 0 };
	bool good = w->f->hm->ntables < HM_TABLES && (in->op == OP_LIT_WIDE || kc <= RANS_MAX_COLS);

	if (!good)
		return false;
	uint32_t *counts = calloc((size_t)kr * kc << in->width, sizeof(*counts));
	w->coded[i] = calloc(1, sizeof(*w->coded[i]));
	count_words(w, w->coded[i], in->width, kr * kc, counts);
	good = train_table(in->op, in->width, log2_nb, kr, kc, counts, &body);
	if (good && w->tensor->base && op->table == TABLE_RANS && in->width <= 8)
		move_base(&body, in->width, w->tensor->base);
	good = good && table_expand(op->table, (struct span){ body.data, body.nbytes }, &w->coded[i]->table, NULL) == BRV_OK;
	if (good)
		w->coded[i]->number = hm_table(w->f->hm, op->table, body.data, body.nbytes);
	buffer_free(&body);
	free(counts);
	return good;
}

/* --- Words --- */

static void draw_any(struct work *w, unsigned i)
{
	const unsigned width = w->program.instr[i].width;

	for (uint64_t k = 0; k < w->nwords[i]; k++)
		set_word(w->reg[i], word_nbytes(width), k, draw(w->f) & mask_bits(width));
}

static void draw_coded(struct work *w, unsigned i)
{
	const struct coded *coded = w->coded[i];
	const unsigned width = w->program.instr[i].width, size = word_nbytes(width);
	const bool any = coded->table->kind == TABLE_RANS || (coded->table->kind == TABLE_WIDE && coded->table->wide.has_escape) ||
			 (coded->table->kind == TABLE_ALIAS && coded->table->alias.has_escape);

	for (uint64_t k = 0; k < w->nwords[i]; k++) {
		const uint64_t r = draw(w->f), near = MIN(r % coded->nwords, (r >> 16) % coded->nwords);
		const bool outlier = any && w->tensor->outliers && (r >> 32) % w->tensor->outliers == 0;
		set_word(w->reg[i], size, k, outlier ? draw(w->f) & mask_bits(width) : coded->word[near]);
	}
}

/* base + words of pack_bits bits. */
static void draw_packed(struct work *w, unsigned i)
{
	const unsigned width = w->program.instr[i].width, bits = MIN(w->tensor->pack_bits, width);
	const uint64_t base = draw(w->f);

	for (uint64_t k = 0; k < w->nwords[i]; k++)
		set_word(w->reg[i], word_nbytes(width), k, (base + (k ? draw(w->f) & mask_bits(bits) : 0)) & mask_bits(width));
}

static bool copy_ref(struct work *w, unsigned i)
{
	const unsigned size = word_nbytes(w->program.instr[i].width);
	const struct hm_stream *from = &w->f->hm->stream[w->tensor->ref_stream];
	const uint64_t first = w->tensor->ref_first + w->first;

	if (w->tensor->ref_stream == 0 || w->tensor->ref_stream >= w->f->hm->nstreams || from->kind != AR_TENSOR ||
	    word_nbytes(from->width) != size || first + w->nwords[i] > from->nwords)
		return false;
	memcpy(w->reg[i], w->f->data.data + w->f->data_at[w->tensor->ref_stream] + first * size, w->nwords[i] * size);
	return true;
}

static void run_model(struct work *w, unsigned i)
{
	const struct bc_instr *in = &w->program.instr[i];
	uint8_t start[8];
	struct kn_args args = { .n = w->nwords[i],
				.op = in->op,
				.width = in->width,
				.nsrc = in->nargs,
				.imm = in->imm,
				.pay = start,
				.row_class = w->f->classes[w->tensor->rows],
				.row_words = w->tensor->geometry,
				.first = w->first };

	for (unsigned k = 0; k < in->nargs; k++) {
		const unsigned arg = w->program.arg[w->program.arg_at[i] + k];
		args.src[k] = w->reg[arg], args.src_n[k] = w->nwords[arg], args.src_width[k] = w->program.instr[arg].width;
	}
	/* The first word of a scan is its index in the program, which is as good as any. */
	store_u64(start, i & mask_bits(in->width));
	model_op(&args, w->reg[i]);
}

static uint64_t words_in(const void *context, uint64_t set)
{
	const struct work *w = context;
	uint64_t count = 0;

	for (uint64_t i = w->first; i < w->first + w->n; i++)
		count += set >> w->f->classes[w->tensor->rows][i / w->tensor->geometry] & 1;
	return count;
}

static void free_registers(struct work *w)
{
	for (unsigned i = 0; i < w->program.ninstr; i++) {
		free(w->reg[i]);
		w->reg[i] = NULL;
	}
}

/* Whether the fields of the last word that a cut makes no word of are 0. */
static bool cut_is_even(const struct work *w, unsigned i)
{
	const unsigned arg = w->program.arg[w->program.arg_at[i]], width = w->program.instr[i].width, from = w->program.instr[arg].width;
	const uint64_t left = w->nwords[i] % (from / width);

	return left == 0 || get_word(w->reg[arg], word_nbytes(from), w->nwords[arg] - 1) >> left * width == 0;
}

/* As many entries as indices can name, and the words of a mask that are 1: what the count of instruction i has to be for the words there are. */
static uint64_t count_for(const struct work *w, unsigned i)
{
	const struct bc_instr *in = &w->program.instr[i];
	const unsigned last = i - 1;
	uint64_t ones = 0;

	if (w->nwords[i] == 0)
		return 0;
	if (in->op == OP_LOOKUP)
		return lookup_nblocks(in->imm, w->nwords[i]) << w->program.instr[last].width;
	for (uint64_t k = 0; w->reg[last] && k < w->nwords[last]; k++)
		ones += w->reg[last][k];
	return ones;
}

/* Words of register i, which has nwords[i]. */
static bool make_register(struct work *w, unsigned i)
{
	w->reg[i] = calloc(w->nwords[i] + 1, 8);
	switch (w->program.instr[i].op) {
	case OP_LIT_RAW: draw_any(w, i); break;
	case OP_LIT_PACK: draw_packed(w, i); break;
	case OP_LIT_HUFF:
	case OP_LIT_RANS:
	case OP_LIT_WIDE:
	case OP_LIT_ALIAS: draw_coded(w, i); break;
	case OP_REF: return copy_ref(w, i);
	case OP_CUT:
		if (!cut_is_even(w, i))
			return false;
		run_model(w, i);
		break;
	case OP_SCATTER: /* unless the mask wants other counts: then these words are made again */
		if (count_for(w, i) == w->nwords[w->program.arg[w->program.arg_at[i]]])
			run_model(w, i);
		break;
	default: run_model(w, i);
	}
	return true;
}

/* Makes all words with the counts there are, each register from a seed of its own, so that it does not change with the size of others; then
 * says which counts these words want. False: some instruction has words that no archive may have. */
static bool try_counts(struct work *w, uint64_t seed, bool *settled)
{
	unsigned nth = 0;
	bool good = true;

	free_registers(w);
	for (unsigned i = 0; i < w->program.ninstr; i++) {
		w->f->random = seed + ((uint64_t)i << 32);
		good = make_register(w, i) && good;
	}
	*settled = true;
	for (unsigned i = 0; i < w->program.ninstr; i++) {
		if (bc_opinfo(w->program.instr[i].op)->words != WORDS_COUNT)
			continue;
		const uint64_t count = count_for(w, i);
		*settled = *settled && count == w->count[nth];
		w->count[nth++] = count;
	}
	return good;
}

/* Sizes from the root down, counts made to fit them: a lookup's follows from its words, a scatter's cannot be more than they. */
static enum brv_status fit_counts(struct work *w, const struct bc_rows *rows)
{
	for (unsigned i = w->program.ninstr, nth = w->program.ncounts; i-- > 0;) {
		if (bc_opinfo(w->program.instr[i].op)->words != WORDS_COUNT)
			continue;
		/* Right down to i, whatever it says of what is below. */
		(void)program_words(&w->program, w->n, rows, w->count, w->nwords, NULL);
		nth--;
		w->count[nth] = w->program.instr[i].op == OP_LOOKUP ? count_for(w, i) : MIN(w->count[nth], w->nwords[i]);
	}
	return program_words(&w->program, w->n, rows, w->count, w->nwords, NULL);
}

/* Counts depend on words, and words on counts: those of the outermost instruction are right first. */
static bool make_counted_words(struct work *w, const struct bc_rows *rows)
{
	const uint64_t seed = draw(w->f);
	bool settled = false, good = true;

	memset(w->count, 0, sizeof(w->count));
	for (unsigned pass = 0; pass < 2u * w->program.ncounts + 2 && !settled; pass++) {
		if (fit_counts(w, rows) != BRV_OK)
			return false;
		good = try_counts(w, seed, &settled);
	}
	w->f->random = seed;
	return good && settled;
}

static bool make_words(struct work *w)
{
	const struct bc_rows rows = { words_in, w }, *there = w->tensor->rows ? &rows : NULL;

	if (w->program.ncounts)
		return make_counted_words(w, there);
	if (program_words(&w->program, w->n, there, NULL, w->nwords, NULL) != BRV_OK)
		return false;
	for (unsigned i = 0; i < w->program.ninstr; i++) {
		if (!make_register(w, i))
			return false;
	}
	return true;
}

/* --- Payload --- */

static void put_pack_item(const struct work *w, unsigned i, struct buffer *payload)
{
	const unsigned width = w->program.instr[i].width, size = word_nbytes(width);
	struct buffer item = { 0 };
	const uint64_t base = get_word(w->reg[i], size, 0);
	uint8_t *over = malloc(w->nwords[i] * 8);

	buffer_put_u8(&item, (uint8_t)MIN(w->tensor->pack_bits, width));
	buffer_put(&item, &base, (width + 7) / 8);
	for (uint64_t k = 0; k < w->nwords[i]; k++)
		set_word(over, size, k, (get_word(w->reg[i], size, k) - base) & mask_bits(width));
	if (w->tensor->pack_bits)
		for (uint64_t k = 0; k < w->nwords[i]; k++)
			set_word(over, word_nbytes(MIN(w->tensor->pack_bits, width)), k, get_word(over, size, k));
	if (w->tensor->pack_bits)
		hm_packed(&item, MIN(w->tensor->pack_bits, width), over, w->nwords[i]);
	hm_item(payload, item.data, item.nbytes);
	buffer_free(&item);
	free(over);
}

/* Where the words of a CLASSED instruction of this chunk stand among its words in all chunks. */
static uint64_t classed_first(const struct work *w, unsigned i)
{
	return w->first ? program_classed_first(&w->program, i, w->tensor->chunk, w->first / w->tensor->chunk) : 0;
}

/* Whether all of them lie in rows that have classes. */
static bool has_rows(const struct work *w)
{
	const uint64_t rows = w->f->hm->stream[w->tensor->rows].nwords;

	for (unsigned i = 0; w->tensor->rows && i < w->program.ninstr; i++)
		if (w->program.instr[i].flags & BC_CLASSED && w->program.instr[i].op != OP_GATE &&
		    classed_first(w, i) + w->nwords[i] > rows * w->tensor->geometry)
			return false;
	return true;
}

static bool put_coded_item(const struct work *w, unsigned i, const uint8_t *carry, struct buffer *payload)
{
	const bool classed = w->program.instr[i].flags & BC_CLASSED;
	const size_t bound = kn_encode_bound(w->nwords[i]);
	struct kn_enc_args args = { .src = w->reg[i],
				    .n = w->nwords[i],
				    .table = w->coded[i]->table,
				    .first = classed ? classed_first(w, i) : w->first,
				    .carry = carry,
				    .dst = malloc(bound),
				    .scratch = malloc(bound) };
	const struct kn_set *set = kn_sets[0];

	if (classed) {
		args.row_class = w->f->classes[w->tensor->rows], args.col_class = w->f->classes[w->tensor->columns];
		args.row_words = w->tensor->geometry;
	}
	const size_t nbytes = set->enc[args.table->kind](&args);
	if (nbytes)
		hm_item(payload, args.dst, nbytes);
	free(args.dst);
	free(args.scratch);
	return nbytes != 0;
}

/* Whether the carry of register i, or to it, has what it needs. */
static bool carry_fits(const struct work *w, unsigned i)
{
	const bool carries = w->program.instr[i].flags & BC_CARRY;
	const unsigned to = carries ? w->program.instr[i].aux : i, from = w->program.carry_of[to];

	return from == 255 || (w->nwords[from] && packed_nbytes(w->nwords[to], w->program.instr[to].width) >= program_carried_nbytes(&w->program, to));
}

static bool put_payload(const struct work *w, struct buffer *payload)
{
	for (unsigned i = 0; i < w->program.ninstr; i++) {
		const struct bc_instr *in = &w->program.instr[i];
		struct buffer packed = { 0 };
		bool good = true;
		const uint64_t start = i & mask_bits(in->width);
		if (!carry_fits(w, i))
			return false;
		if (w->nwords[i] == 0)
			continue;
		switch (bc_opinfo(in->op)->payload) {
		case PAYLOAD_FIRST: buffer_put(payload, &start, (in->width + 7u) / 8); break;
		case PAYLOAD_PACKED:
			hm_packed(&packed, in->width, w->reg[i], w->nwords[i]);
			buffer_put(payload, packed.data, packed.nbytes - program_carried_nbytes(&w->program, i));
			break;
		case PAYLOAD_ITEM:
			if (in->op == OP_LIT_PACK) {
				put_pack_item(w, i, payload);
				break;
			}
			if (in->flags & BC_CARRY)
				hm_packed(&packed, w->program.instr[in->aux].width, w->reg[in->aux], w->nwords[in->aux]);
			good = put_coded_item(w, i, packed.data ? packed.data + packed.nbytes - bc_carry_nbytes(w->program.instr[i].op) : NULL, payload);
			break;
		default: break;
		}
		buffer_free(&packed);
		if (!good)
			return false;
	}
	return true;
}

static void put_operands(const struct work *w, struct hm_chunk *chunk)
{
	for (unsigned i = 0; i < w->program.ninstr; i++)
		if (w->coded[i])
			chunk->operand[chunk->noperands++] = w->coded[i]->number;
	for (unsigned i = 0; i < w->program.nrefs; i++) {
		chunk->operand[chunk->noperands++] = w->tensor->ref_stream;
		chunk->operand[chunk->noperands++] = w->tensor->ref_first + w->first;
	}
	for (unsigned i = 0; i < w->program.ncounts; i++)
		chunk->operand[chunk->noperands++] = w->count[i];
}

/* --- Streams --- */

static bool make_program(struct work *w, const struct forge_program *program)
{
	if (program->ninstr > HM_INSTR)
		return false;
	w->program.ninstr = (uint16_t)program->ninstr;
	memcpy(w->program.instr, program->instr, program->ninstr * sizeof(*program->instr));
	if (program_link(&w->program, NULL) != BRV_OK || w->program.ntables + 2u * w->program.nrefs + w->program.ncounts > HM_OPERANDS)
		return false;
	for (unsigned i = 0; i < program->ninstr; i++) {
		const uint8_t op = program->instr[i].op;
		if (op == OP_GATE && (!w->tensor->rows || program->instr[i].imm >> w->f->nclasses[w->tensor->rows]))
			return false;
		if (bc_opinfo(op)->table != TABLE_NONE && !make_table(w, i))
			return false;
	}
	return true;
}

static void free_program(struct work *w)
{
	for (unsigned i = 0; i < BC_MAX_INSTR; i++) {
		if (w->coded[i])
			free(w->coded[i]->table);
		free(w->coded[i]);
	}
}

/* One chunk: its words behind `words`, its payload and operands into `chunk`. */
static bool make_chunk(struct work *w, uint64_t first, uint64_t n, struct buffer *words, struct hm_chunk *chunk)
{
	const unsigned root = w->program.ninstr - 1u;

	w->first = first, w->n = n;
	const bool good = make_words(w) && has_rows(w) && put_payload(w, &chunk->payload);
	if (good) {
		buffer_put(words, w->reg[root], n * word_nbytes(w->program.instr[root].width));
		put_operands(w, chunk);
	}
	free_registers(w);
	return good;
}

void forge_begin(struct forge *f, uint64_t seed)
{
	static const struct bc_instr raw8 = { .op = OP_LIT_RAW, .width = 8 };

	*f = (struct forge){ .hm = alloc_handmade(), .random = seed };
	hm_program(f->hm, 1, &raw8);
	hm_stream(f->hm, AR_HEADER, 8, "", 0, 0, PROGRAM_RAW8);
	buffer_put_u8(&f->json, '{');
	buffer_put_u8(&f->marked, '{');
}

unsigned forge_classes(struct forge *f, uint64_t n, unsigned k)
{
	const unsigned width = k <= 2 ? 1 : k <= 4 ? 2 : k <= 8 ? 3 : 4, number = f->hm->nstreams;
	const struct bc_instr raw = { .op = OP_LIT_RAW, .width = (uint8_t)width };
	uint8_t *classes = malloc(n + KN_CLASS_PAD);

	for (uint64_t i = 0; i < n + KN_CLASS_PAD; i++)
		classes[i] = i < n ? (uint8_t)(draw(f) % k) : classes[i - n];
	f->classes[number] = classes, f->nclasses[number] = k;
	struct hm_stream *stream = hm_stream(f->hm, AR_CLASS, width, classes, n, 0, hm_program(f->hm, 1, &raw));
	hm_packed(&stream->chunks[0].payload, width, classes, n);
	return number;
}

static void put_json(struct forge *f, const char *text) { buffer_put(&f->json, text, strlen(text)); }

/* The tensor's entry in the header. Its name is found in the header unless JSON has to escape it. */
static void put_entry(struct forge *f, struct hm_stream *stream, uint64_t nbytes)
{
	char text[160];

	put_json(f, f->json.nbytes == 1 ? "\"" : f->flags & AR_FLAG_ENTRIES ? ",\"" : ",\n\"");
	buffer_put_u8(&f->marked, PACKED_NAME);
	buffer_put(&f->marked, stream->name, stream->name_nbytes);
	stream->name_in_header = !strpbrk(stream->name, "\"\\\n");
	stream->name_distance = (int64_t)f->json.nbytes;
	for (const char *c = stream->name; *c; c++) {
		snprintf(text, sizeof(text), *c == '\n' ? "\\n" : *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
		put_json(f, text);
	}
	snprintf(text, sizeof(text), "\":{\"dtype\":\"%s\",\"shape\":[", stream->dtype_name);
	put_json(f, text);
	for (unsigned i = 0; i < stream->ndim; i++) {
		snprintf(text, sizeof(text), "%s%llu", i ? "," : "", (unsigned long long)stream->dim[i]);
		put_json(f, text);
	}
	snprintf(text, sizeof(text), "],\"data_offsets\":[%zu,%llu]}", f->data.nbytes, (unsigned long long)(f->data.nbytes + nbytes));
	put_json(f, text);
}

static void add_stream(struct forge *f, const struct forge_tensor *tensor, const struct buffer *words, unsigned width,
		       struct hm_chunk *chunk, const unsigned program[FORGE_PROGRAMS])
{
	const unsigned number = f->hm->nstreams;
	const struct ar_dtype *dtype = dtype_by_name(tensor->dtype, strlen(tensor->dtype));
	const uint64_t elements = words->nbytes * 8 / (dtype ? dtype->bits : 8);
	const bool matrix = tensor->geometry && elements % (tensor->nwords / tensor->geometry) == 0;
	const uint64_t dim[2] = { matrix ? tensor->nwords / tensor->geometry : elements,
				  matrix ? elements / (tensor->nwords / tensor->geometry) : 0 };
	struct hm_stream *stream = hm_stream(f->hm, AR_TENSOR, width, words->data, tensor->nwords, tensor->chunk, program[0]);

	for (unsigned k = 0; k < stream->nchunks; k++) {
		chunk[k].sum = stream->chunks[k].sum;
		stream->chunks[k] = chunk[k];
	}
	stream->geometry = tensor->geometry, stream->kr = (uint8_t)f->nclasses[tensor->rows],
	stream->kc = (uint8_t)f->nclasses[tensor->columns];
	stream->rows = tensor->rows ? tensor->rows + 1 : 0, stream->columns = tensor->columns ? tensor->columns + 1 : 0;
	if (tensor->nwords && tensor->program[1].ninstr)
		stream->nvariants = 2, stream->program[1] = program[1];
	hm_tensor(stream, tensor->name, tensor->dtype, 1u + matrix, dim);
	put_entry(f, stream, words->nbytes);
	f->data_at[number] = f->data.nbytes;
	buffer_put(&f->data, words->data, words->nbytes);
}

bool forge_tensor(struct forge *f, const struct forge_tensor *tensor)
{
	struct handmade *hm = f->hm;
	const unsigned nprograms = tensor->program[1].ninstr ? 2 : 1, ntables = hm->ntables;
	const uint64_t step = tensor->chunk ? tensor->chunk : MAX(tensor->nwords, 1), nchunks = ceil_div(tensor->nwords, step);
	struct work *work = calloc(FORGE_PROGRAMS, sizeof(*work));
	struct hm_chunk *chunk = calloc(HM_CHUNKS, sizeof(*chunk));
	struct buffer words = { 0 };
	unsigned number[FORGE_PROGRAMS] = { 0 };
	bool good = hm->nstreams < HM_STREAMS && hm->nprograms + nprograms <= HM_PROGRAMS && nchunks <= HM_CHUNKS;

	for (unsigned p = 0; p < nprograms && good; p++) {
		work[p].f = f, work[p].tensor = tensor;
		good = make_program(&work[p], &tensor->program[p]);
	}
	for (uint64_t k = 0; k < nchunks && good; k++) {
		chunk[k].variant = (uint8_t)(k % nprograms);
		good = make_chunk(&work[k % nprograms], k * step, MIN(step, tensor->nwords - k * step), &words, &chunk[k]);
	}
	for (unsigned p = 0; p < nprograms && good; p++)
		number[p] = hm_program(hm, tensor->program[p].ninstr, tensor->program[p].instr);
	if (good)
		add_stream(f, tensor, &words, work[0].program.instr[work[0].program.ninstr - 1].width, chunk, number);
	for (uint64_t k = 0; k < HM_CHUNKS && !good; k++)
		buffer_free(&chunk[k].payload);
	for (; !good && hm->ntables > ntables; hm->ntables--)
		buffer_free(&hm->table[hm->ntables - 1]);
	for (unsigned p = 0; p < FORGE_PROGRAMS; p++)
		free_program(&work[p]);
	buffer_free(&words);
	free(chunk);
	free(work);
	return good;
}

static void put_number(struct buffer *out, uint64_t value)
{
	for (; value > 63; value >>= 6)
		buffer_put_u8(out, (uint8_t)(64 | value % 64));
	buffer_put_u8(out, (uint8_t)value);
}

/* Text packed: copies from anywhere, of any length, wherever there are some. */
static void put_commands(struct forge *f, const struct buffer *text, struct buffer *out)
{
	size_t distance = 1;

	put_number(out, text->nbytes);
	for (size_t at = 0, n; at < text->nbytes; at += n) {
		const size_t other = at ? 1 + draw(f) % at : 1, from = draw(f) % 2 ? distance : other;
		const bool again = from == distance;
		const size_t least = again ? 2 : 3, most = again ? 14 : 18;
		for (n = 0; from <= at && at + n < text->nbytes && text->data[at + n] == text->data[at + n - from];)
			n++;
		if (n >= least) {
			n -= draw(f) % 4 ? 0 : n - least;
			buffer_put_u8(out, (uint8_t)((again ? 3 : 16) + MIN(n, most) - least));
			if (n >= most)
				put_number(out, n - most);
			if (!again)
				put_number(out, from - 1);
			distance = from;
			continue;
		}
		n = 1;
		const uint8_t byte = text->data[at];
		if (byte == PACKED_LITERAL || (byte >= PACKED_AGAIN && byte < PACKED_COPY_END) || draw(f) % 16 == 0)
			buffer_put_u8(out, PACKED_LITERAL);
		buffer_put_u8(out, byte);
	}
}

void forge_end(struct forge *f)
{
	struct handmade *hm = f->hm;
	const unsigned nstreams = hm->nstreams;
	struct buffer packed = { 0 };
	int64_t end = 0;

	if (f->marked.nbytes > 1)
		buffer_put_u8(&f->marked, PACKED_REST);
	for (bool last = true; last || f->json.nbytes % 8; last = false) {
		put_json(f, last ? "}" : " ");
		buffer_put_u8(&f->marked, last ? '}' : ' ');
	}
	const struct buffer *text = f->flags & AR_FLAG_ENTRIES ? &f->marked : &f->json;
	if (f->flags & AR_FLAG_PACKED)
		put_commands(f, text, &packed), text = &packed;
	hm->flags = f->flags;
	hm->nstreams = 0;
	struct hm_stream *header = hm_stream(hm, AR_HEADER, 8, text->data, text->nbytes, 0, PROGRAM_RAW8);
	hm_packed(&header->chunks[0].payload, 8, text->data, text->nbytes);
	buffer_free(&packed);
	hm->nstreams = nstreams;
	for (unsigned i = 0; i < nstreams; i++) {
		struct hm_stream *stream = &hm->stream[i];
		if (!stream->name_in_header) {
			stream->name_distance = 0;
			continue;
		}
		const int64_t at = stream->name_distance;
		stream->name_distance = at - end;
		end = at + (int64_t)stream->name_nbytes;
	}
}

void forge_expected(const struct forge *f, struct buffer *checkpoint)
{
	buffer_put_u64(checkpoint, f->json.nbytes);
	buffer_put(checkpoint, f->json.data, f->json.nbytes);
	buffer_put(checkpoint, f->data.data, f->data.nbytes);
}

void forge_free(struct forge *f)
{
	free_handmade(f->hm);
	for (unsigned i = 0; i < HM_STREAMS; i++)
		free(f->classes[i]);
	buffer_free(&f->json);
	buffer_free(&f->marked);
	buffer_free(&f->data);
}

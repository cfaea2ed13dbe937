/* verify_index.c: each check of the verifier, on whatever the parser may have left, and all of them over archives of a few streams.
 *
 * Numbers are any, but for what the parser has promised (parse_streams.c): variants name programs, chunks lie in the array, their words divide the stream's.
 * program_words() and program_path_words(), which have a proof of their own, give any sizes or refuse. SPDX-License-Identifier: Apache-2.0 */
#include "common/bytecode.h"
#define program_words proved_program_words
#define program_path_words proved_program_path_words
#define program_since proved_program_since
#include "common/bytecode.c"
#undef program_words
#undef program_path_words
#undef program_since
#include "runtime/verify.c"

enum { TABLES = 2, STREAMS = 3, CHUNKS = 4, MOST_WORDS = 4, BODY = 8 };

static struct bc_program program[1];
static struct stream stream[STREAMS];
static struct chunk chunk[CHUNKS];
static struct table_body table[TABLES];
static struct table_head head[TABLES];
static uint16_t variant[STREAMS];
static uint64_t operand[CHUNKS * 4];
static struct view view;
static struct error err;

enum brv_status program_words(const struct bc_program *of, uint64_t n, const struct bc_rows *rows, const uint64_t *counts, uint64_t nwords[BC_MAX_INSTR],
			      struct error *why)
{
	(void)of, (void)n, (void)rows, (void)counts;
	why->text[0] = 0;
	anything(nwords, BC_MAX_INSTR * sizeof *nwords);
	return any_u32(0, 1) ? BRV_OK : BRV_DAMAGED;
}

bool program_path_words(const struct bc_program *of, unsigned i, uint64_t n, uint64_t *out)
{
	(void)of, (void)i, (void)n;
	*out = any_u64();
	return any_u32(0, 1);
}

unsigned program_since(const struct bc_program *of)
{
	(void)of;
	return any_u32(1, AR_VERSION);
}

static struct verifier start(void)
{
	view = (struct view){ .program = program, .table = table, .stream = stream, .chunk = chunk, .variant = variant, .operand = operand, .nprograms = 1 };
	return (struct verifier){ .view = &view, .table = head, .record = &stream[0], .err = &err };
}

/* The head of a table, whose body ends where memory ends. */
static void tables(unsigned kind, unsigned nbytes)
{
	uint8_t body[BODY];
	const struct verifier v = start();

	anything(body, sizeof body);
	view.ntables = 1, table[0] = (struct table_body){ (uint8_t)kind, { body + BODY - nbytes, nbytes } };
	if (verify_table(&v, 0) == BRV_OK) {
		//@ assert 1 <= head[0].kr <= 255 && 1 <= head[0].kc <= 16;
	}
}

/* A stream of any numbers; without rows of words it has no classes either. */
static void any_stream(struct stream *of)
{
	anything(of, sizeof *of);
	if (of->geometry == 0)
		of->rows = of->columns = 0, of->kr = of->kc = 0;
}

/* An operand that may name any table, which may have any head. */
static void operands(unsigned ntables)
{
	struct bc_instr instr;
	const struct verifier v = start();

	anything(table, sizeof table), anything(head, sizeof head), anything(&instr, sizeof instr);
	any_stream(&stream[0]);
	view.ntables = ntables;
	for (unsigned kind = TABLE_HUFF; kind <= TABLE_WIDE; kind++)
		verify_operand(&v, &instr, kind, any_u64());
}

/* Kinds and classes of a stream beside others. */
static void geometry(unsigned nstreams, bool rows)
{
	const struct verifier v = start();

	for (unsigned i = 0; i < STREAMS; i++)
		any_stream(&stream[i]);
	if (rows)
		stream[0].geometry = Frama_C_unsigned_long_long_interval(1, UINT64_MAX), stream[0].rows = any_u32(1, UINT32_MAX);
	else
		stream[0].rows = 0;
	view.nstreams = nstreams;
	verify_kind(&v);
	if (verify_geometry(&v) != BRV_OK)
		return;
	anything(program, sizeof program);
	program[0].ninstr = 2;
	verify_variant(&v, &program[0]);
}

/* A stream of nwords in chunks of chunk_words, whose chunks are those from `at` on. */
static void cut(struct stream *of, uint64_t nwords, uint64_t chunk_words, uint64_t at)
{
	any_stream(of);
	of->nwords = nwords, of->chunk_words = chunk_words, of->nchunks = (nwords + chunk_words - 1) / chunk_words, of->chunk_at = at;
	of->variants_at = 0, of->nvariants = nwords > 0;
}

/* A ref of any words of any stream: stream 1 has one, stream 0 may be a tensor. */
static void refs(uint64_t nwords, uint64_t chunk_words)
{
	uint64_t words[BC_MAX_INSTR];

	start();
	anything(operand, sizeof operand), anything(words, sizeof words), anything(program, sizeof program), anything(chunk, sizeof chunk);
	cut(&stream[0], nwords, chunk_words, 0);
	cut(&stream[1], 1, 1, stream[0].nchunks);
	struct chunk *with = &chunk[stream[0].nchunks];
	with->operands_at = 0, with->variant = 0, variant[0] = 0;
	program[0].ninstr = 1, program[0].instr[0].op = OP_REF, program[0].nrefs = 1, program[0].ntables = 0;
	view.nstreams = 2, view.nchunks = stream[0].nchunks + 1;
	for (uint64_t first = 0; first <= MOST_WORDS + 1; first++)
		for (uint64_t n = 0; n <= MOST_WORDS + 1; n++) {
			operand[1] = first <= MOST_WORDS ? first : Frama_C_unsigned_long_long_interval(MOST_WORDS + 1, UINT64_MAX);
			words[0] = n <= MOST_WORDS ? n : Frama_C_unsigned_long_long_interval(MOST_WORDS + 1, UINT64_MAX);
			if (verify_refs(&view, &stream[1], with, words, &err) == BRV_OK) {
				//@ assert first + n <= nwords;
			}
		}
}

/* Its row classes are in stream rows - 1; 0: it has none; more than there are: any of those. */
static void set_rows(struct stream *of, uint32_t rows)
{
	of->rows = rows <= STREAMS ? rows : any_u32(STREAMS + 1, UINT32_MAX);
	if (rows)
		of->geometry = Frama_C_unsigned_long_long_interval(1, UINT64_MAX);
}

/* All of it: a program of two instructions with a table and a ref, tables, and streams of some words each. */
static void whole(unsigned nstreams, unsigned ntables, uint32_t rows)
{
	uint8_t body[BODY];
	uint64_t nchunks = 0;

	start();
	anything(body, sizeof body), anything(operand, sizeof operand), anything(chunk, sizeof chunk), anything(program, sizeof program);
	for (unsigned i = 0; i < ntables; i++)
		table[i] = (struct table_body){ (uint8_t)any_u32(0, 255), { body, BODY } };
	for (unsigned i = 0; i < nstreams; i++) {
		cut(&stream[i], i, 1, nchunks);
		set_rows(&stream[i], rows);
		nchunks += stream[i].nchunks;
	}
	for (unsigned i = 0; i < nchunks; i++)
		chunk[i].operands_at = 3 * i, chunk[i].variant = 0;
	program[0].ninstr = 2, program[0].ntables = 1, program[0].nrefs = 1, program[0].ncounts = 0, variant[0] = 0;
	program[0].instr[0].op = OP_REF, program[0].instr[1].op = OP_LIT_RANS;
	view.prelude.version = (uint16_t)any_u32(1, AR_VERSION);
	view.nstreams = nstreams, view.ntables = ntables, view.nchunks = nchunks, view.nclasses = any_u32(0, nstreams), view.ntensors = any_u32(0, nstreams);
	if (verify(&view, &err) == BRV_OK) {
		//@ assert nstreams > 0 && stream[0].nwords <= 100000000;
	}
}

int main(void)
{
	for (unsigned nbytes = 0; nbytes <= BODY; nbytes++)
		for (unsigned kind = 0; kind <= TABLE_WIDE + 1; kind++)
			tables(kind, nbytes);
	for (unsigned ntables = 0; ntables <= TABLES; ntables++)
		operands(ntables);
	for (unsigned nstreams = 1; nstreams <= STREAMS; nstreams++)
		geometry(nstreams, false), geometry(nstreams, true);
	for (uint64_t nwords = 0; nwords <= MOST_WORDS - 1; nwords++)
		for (uint64_t chunk_words = 1; chunk_words <= 2; chunk_words++)
			refs(nwords, chunk_words);
	for (unsigned nstreams = 0; nstreams <= STREAMS; nstreams++)
		for (unsigned ntables = 0; ntables <= TABLES; ntables++)
			for (uint32_t rows = 0; rows <= STREAMS + 1; rows++)
				whole(nstreams, ntables, rows);
	return 0;
}

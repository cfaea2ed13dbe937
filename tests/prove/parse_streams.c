/* parse_streams.c: the records of chunks, from any state that the parser may be in before them, and of streams with theirs, and the index of one or two.
 *
 * What parse_records.c and cursor.c prove stands here by what it gives. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/parse.c"

#include "tests/prove/havoc_cursor.h"

enum { N = 8, PROGRAMS = 2, CHUNKS = 2, VARIANTS = 2, OPERANDS = 3, DIMS = 2 };

static uint8_t memory[N];
static struct bc_program program[PROGRAMS];
static struct view view;
static struct error err;

/* A parser before N bytes, behind the programs, which take `noperands` operands each and one of them a ref. */
static struct parser start(unsigned noperands, const struct havoc *byte, unsigned nbyte, const struct havoc *number, unsigned nnumber)
{
	view = (struct view){ .program = program, .nprograms = PROGRAMS, .section = { [AR_INDX] = { memory, N } } };
	for (unsigned i = 0; i < PROGRAMS; i++)
		program[i] = (struct bc_program){ .nrefs = noperands >= 2, .ntables = (uint16_t)(noperands >= 2 ? noperands - 2 : noperands) };
	havoc_start(memory, N, byte, nbyte, number, nnumber);
	return (struct parser){ .view = &view, .at = { memory, memory + N, false }, .limit = any_u64(), .err = &err };
}

/* --- A chunk: operands and payload --- */

static void chunk(unsigned noperands, unsigned nvariants, size_t used, size_t capacity, uint64_t payload_nbytes, uint64_t payload_at)
{
	uint16_t variant[VARIANTS];
	struct chunk chunks[CHUNKS];
	const struct stream stream = { .nvariants = (uint8_t)nvariants, .variants_at = VARIANTS - nvariants };
	struct parser p = start(noperands, NULL, 0, NULL, 0);

	for (unsigned i = 0; i < VARIANTS; i++)
		variant[i] = (uint16_t)any_u32(0, PROGRAMS - 1);
	view.variant = variant, view.chunk = chunks, view.nchunks = CHUNKS - 1;
	view.prelude.payload_nbytes = payload_nbytes;
	p.operands = (struct grown){ used, capacity };
	if (capacity && !(view.operand = malloc(capacity * sizeof *view.operand)))
		return;
	if (parse_chunk(&p, &stream, &payload_at) == BRV_OK) {
		//@ assert nvariants > 0 && chunks[1].variant < nvariants;
		//@ assert chunks[1].operands_at == used && p.operands.count == used + noperands <= p.operands.capacity;
		//@ assert chunks[1].payload_offset <= payload_at <= payload_nbytes;
	}
	free(view.operand);
}

static void chunks_of(uint64_t payload_nbytes, uint64_t payload_at)
{
	for (unsigned noperands = 0; noperands <= OPERANDS; noperands++)
		for (unsigned nvariants = 0; nvariants <= VARIANTS; nvariants++)
			for (unsigned capacity = 0; capacity <= 2; capacity++)
				chunk(noperands, nvariants, capacity - (nvariants == 2 && capacity), capacity, payload_nbytes, payload_at);
}

/* --- A stream: its sizes, and as many chunks as there are checksums for --- */

static void stream_of(unsigned noperands, const struct havoc *byte, unsigned nbyte, const struct havoc *number, unsigned nnumber)
{
	static const unsigned sums[][2] = { { 0, 0 }, { 1, 0 }, { 2, 1 }, { 2, 2 } };

	for (unsigned i = 0; i < ARRAY_LEN(sums); i++) {
		const unsigned nchunks = sums[i][0], before = sums[i][1];
		struct stream streams[1];
		struct parser p = start(noperands, byte, nbyte, number, nnumber);
		uint64_t payload_at = 0;
		view.stream = streams;
		view.nchunks = before;
		view.prelude.payload_nbytes = any_u64();
		view.chunk = malloc(nchunks ? nchunks * sizeof *view.chunk : 1);
		if (!view.chunk)
			return;
		if (parse_stream(&p, nchunks, &payload_at) == BRV_OK) {
			//@ assert view.nstreams == 1 && view.nchunks <= nchunks;
			//@ assert streams[0].chunk_words > 0 && streams[0].kind <= 2;
			//@ assert streams[0].kind < 2 || streams[0].width == 8 || streams[0].width == 16 || streams[0].width == 32 || streams[0].width == 64;
		}
		free(view.chunk);
		free(view.operand), free(view.variant), free(view.dim), free(view.text);
	}
}

/* A header, a class stream, or of no kind that there is. */
static void plain_stream(unsigned noperands, unsigned nvariants)
{
	const struct havoc byte[] = { { 0, AR_CLASS } }, number[] = { HAVOC_ANY, HAVOC_ANY, HAVOC_IS(nvariants) };
	stream_of(noperands, byte, 1, number, 3);
}

/* A tensor of a known type, whose name lies in the header, with or without geometry. */
static void tensor(unsigned noperands, unsigned nvariants, unsigned ndim, bool geometry)
{
	const struct havoc byte[] = { HAVOC_IS(AR_TENSOR), { 0, AR_DTYPE_OTHER - 1 } };
	const struct havoc name = HAVOC_IS(6), any = HAVOC_ANY, dims = { ndim, ndim }, none = { 0, 0 }, some = { 1, UINT64_MAX }, variants = { nvariants, nvariants };
	struct havoc number[8 + DIMS];
	unsigned n = 0;
	number[n++] = name, number[n++] = dims;
	for (unsigned i = 0; i < ndim; i++)
		number[n++] = any;
	number[n++] = any;
	number[n++] = geometry ? some : none;
	if (geometry)
		number[n++] = any, number[n++] = any;
	number[n++] = variants;
	stream_of(noperands, byte, 2, number, n);
}

int main(void)
{
	for (uint64_t nbytes = 0; nbytes <= 2; nbytes++)
		for (uint64_t at = 0; at <= nbytes; at++)
			chunks_of(nbytes, at);
	chunks_of(1ull << 62, 1ull << 61);
	for (unsigned noperands = 0; noperands <= OPERANDS; noperands += OPERANDS)
		for (unsigned nvariants = 0; nvariants <= VARIANTS; nvariants++) {
			plain_stream(noperands, nvariants);
			if (nvariants > 0)
				tensor(noperands, nvariants, noperands ? 0 : DIMS, noperands > 0);
			if (nvariants > 0 && noperands == 0)
				tensor(noperands, nvariants, 1, nvariants == 1);
		}
	return 0;
}

/* parse.h: an archive's sections as arrays: what everything behind the parser works on.
 *
 * Arrays and no object per tensor, since a checkpoint may have hundreds of thousands. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_PARSE_H
#define RUNTIME_PARSE_H

#include "common/archive.h"
#include "common/bytecode.h"
#include "runtime/source.h"

/* A stream record of INDX (docs/FORMAT.md, 4), and where its parts lie in the view's arrays. */
struct stream {
	uint8_t kind, dtype, width, kr, kc, nvariants;
	bool name_in_header;
	uint32_t ndim;
	uint32_t rows, columns;         /* index of the class stream + 1, 0: none */
	uint32_t variants_at;           /* in view->variant */
	uint32_t record_nbytes;         /* of the decoded INDX */
	uint32_t name_nbytes;
	uint64_t dims_at;               /* in view->dim */
	int64_t name_at;                /* distance d as stored; after names_resolve(), or if the header marks names, an offset in the header; or in view->text */
	uint64_t dtype_at;              /* of an unknown type's name in view->text, NUL behind it */
	uint64_t nwords, chunk_words;   /* chunk_words > 0, even if the record says 0 */
	uint64_t geometry;              /* words in a row, 0: none */
	uint64_t chunk_at, nchunks;     /* in view->chunk */
	uint64_t data_offset, data_nbytes; /* of a tensor; set by verify() but for dtype 255 */
};

struct chunk {
	uint64_t payload_offset;        /* from the start of the payload region */
	uint32_t payload_nbytes;
	uint32_t operands_at;           /* in view->operand: table numbers, then stream and first word of each ref, then counts */
	uint32_t refs_before;           /* number of refs in all chunks before this one: who refers to refs is found by subtraction */
	uint8_t variant;
};

/* A table's bytes in the decoded TABL. */
struct table_body {
	uint8_t kind;
	struct span body;
};

struct view {
	struct ar_prelude prelude;
	uint64_t payload_offset;        /* of the payload region in the archive */
	struct span section[AR_SECTIONS]; /* decoded; TABL and SUMS are used in place */
	uint8_t *section_bytes;         /* owned: stored sections, then the decoded ones that are not plain */

	struct bc_program *program;
	struct table_body *table;
	struct stream *stream;
	struct chunk *chunk;
	uint64_t *dim;
	uint16_t *variant;              /* program numbers */
	uint64_t *operand;
	char *text;                     /* names that are not in the header, names of unknown types */
	uint32_t nprograms, ntables, nstreams, nclasses, ntensors, nrefs;
	uint64_t nchunks;
	uint64_t nbytes;                /* allocated for all this */
};

/* Reads the prelude and the sections of an archive and fills the view; structure only: counts and
 * sizes agree with the bytes there are, indices that the reader itself uses are in range. Allocates at most `limit` bytes. On
 * failure the view is empty. BRV_DAMAGED, BRV_VERSION, BRV_IO, BRV_LIMIT, BRV_MEMORY. */
enum brv_status parse(struct view *view, struct source *source, uint64_t limit, struct error *err);
void view_free(struct view *view);

/* Words of chunk k of a stream. */
static inline uint64_t chunk_nwords(const struct stream *stream, uint64_t k)
{
	return MIN(stream->chunk_words, stream->nwords - k * stream->chunk_words);
}

static inline const struct bc_program *chunk_program(const struct view *view, const struct stream *stream, const struct chunk *chunk)
{
	return &view->program[view->variant[stream->variants_at + chunk->variant]];
}

/* The chunk's counts: words of the first argument of each instruction that has them, in order. */
static inline const uint64_t *chunk_counts(const struct view *view, const struct bc_program *program, const struct chunk *chunk)
{
	return view->operand + chunk->operands_at + program->ntables + 2u * program->nrefs;
}

/* The checksum of a chunk, by its number in the whole archive. */
static inline uint64_t chunk_sum(const struct view *view, uint64_t chunk) { return load_u64(view->section[AR_SUMS].ptr + 8 * chunk); }

#endif

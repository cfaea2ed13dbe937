/* encode.h: a stream of words turned into a coded stream: program variants, tables, chunk payloads, checksums.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_ENCODE_H
#define SYNTH_ENCODE_H

#include "synth/classes.h"
#include "synth/expr.h"
#include "synth/train.h"

enum { ENCODE_MAX_VARIANTS = 4, ENCODE_MAX_TABLES = 16, ENCODE_MAX_COUNTS = 2 };

struct coded_chunk {
	uint8_t variant;
	uint32_t payload_nbytes;
	uint32_t count[ENCODE_MAX_COUNTS]; /* words of the first argument of each instruction whose chunks say them */
	uint64_t sum;                   /* XXH3 of the chunk's words */
	uint64_t ref_first;             /* first word, for a variant that is a ref; SAME_NOTHING (same.h) otherwise */
};

/* A way to code a chunk: a program and its tables. Tables are owned by the stream. */
struct coded_variant {
	struct bc_program program;
	uint8_t node[BC_MAX_INSTR];     /* node of expr for each instruction */
	uint8_t table[BC_MAX_INSTR];    /* of instructions that take one: index into stream->table_body */
};

struct coded_stream {
	unsigned width;
	uint64_t nwords, chunk_words;
	struct classes classes;         /* kr = kc = 1, rows 0: none used */
	struct expr expr;
	unsigned nvariants, ntables;
	unsigned ncoded;                /* variants that chunks are tried with, the last of them raw or the only one; behind them may be a ref */
	struct coded_variant variant[ENCODE_MAX_VARIANTS];
	struct buffer table_body[ENCODE_MAX_TABLES];
	struct kn_table *table[ENCODE_MAX_TABLES];
	uint64_t nchunks;
	struct coded_chunk *chunk;
	uint64_t ref_tensor;            /* index of the tensor that the chunks of a variant that is a ref refer to */
	double share;                   /* of chunks that the first variant coded, for reports */
};

/* Lays out a stream that expr is to produce: variants (with carries, without, raw), tables trained on counts of all words. The
 * classes move into the stream if the program uses them. BRV_MEMORY. */
enum brv_status encode_prepare(struct coded_stream *stream, const struct expr *expr, const void *words, uint64_t nwords, unsigned width,
			       uint64_t chunk_words, struct classes *classes);

/* Makes refs to a tensor of the chunks whose first[] is not SAME_NOTHING (same.h): from that word of it on. */
void encode_set_refs(struct coded_stream *stream, uint64_t tensor, const uint64_t *first);

/* What one thread needs to encode chunks of a stream. */
struct encoder {
	uint8_t *arena, *scratch;       /* grow as needed */
	size_t arena_nbytes, scratch_nbytes;
	struct buffer payload;          /* of the chunk encoded last */
};
void encoder_free(struct encoder *encoder);

/* Encodes chunk `index`, whose words begin at `words`, into encoder->payload and stream->chunk[index]: with the first variant that can
 * produce it, or raw if that is smaller. */
enum brv_status encode_chunk(struct encoder *encoder, struct coded_stream *stream, uint64_t index, const void *words);

void coded_stream_free(struct coded_stream *stream);

#endif

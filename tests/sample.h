/* sample.h: one small archive that uses every op, kind of table, class axis and chunk shape, and what it stands for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SAMPLE_H
#define TESTS_SAMPLE_H

#include "tests/handmade.h"

/* Streams of the sample, by number. */
enum sample_stream {
	S_HEADER, S_ROWS, S_COLUMNS, /* 3 row classes of 8 rows; 2 column classes of 32 columns */
	S_CLASSED,      /* BF16 [8, 32], 2 chunks: map.rot(merge(lit.raw, lit.rans classed, carrying), 1) */
	S_REF,          /* BF16 [256]: the same words, ref */
	S_GATE,         /* U8 [8, 16]: gate */
	S_EMPTY,        /* F32 [0, 7] */
	S_SCALAR,       /* I64 []: const */
	S_OTHER,        /* an unknown type, 12 bytes: concat(const, repeat(lit.raw)) */
	S_WEAVE,        /* U16 [60]: weave(scan.add(lit.pack), maps over lit.raw) */
	S_HUFF,         /* U8 [300], 2 chunks of 2 variants: lit.huff, lit.raw */
	S_WIDE,         /* U16 [200]: merge(lit.raw:6, lit.wide:10 carrying) */
	S_SCAN,         /* U64 [3]: scan.xor; its name is not in the header */
	S_LOOKUP,       /* F32 [30], 2 chunks: lookup(lit.raw:32, lit.raw:3), dictionaries of 2 and 3 words for 8 */
	S_SCATTER,      /* U8 [21]: scatter(lit.raw:8, cut(lit.raw:4)) */
	S_COUNT,
};
enum sample_program {
	P_RAW8, P_CLASSES2, P_CLASSES1, P_CLASSED, P_REF, P_GATE, P_SCALAR, P_OTHER, P_WEAVE, P_HUFF, P_WIDE, P_SCAN, P_LOOKUP, P_SCATTER,
	P_COUNT,
};
enum sample_table { T_RANS, T_HUFF, T_WIDE };

struct sample {
	struct handmade *hm;
	struct buffer header, data;     /* expected */
	uint64_t data_offset[S_COUNT + 1]; /* of each tensor in data */
};

void sample_make(struct sample *sample);
void sample_free(struct sample *sample);

#endif

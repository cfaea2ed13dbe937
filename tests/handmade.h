/* handmade.h: archives made by hand, field by field, so that each can be wrong. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_HANDMADE_H
#define TESTS_HANDMADE_H

#include "common/archive.h"
#include "common/bytecode.h"

enum { HM_PROGRAMS = 24, HM_INSTR = 20, HM_TABLES = 8, HM_STREAMS = 20, HM_CHUNKS = 40, HM_VARIANTS = 4, HM_OPERANDS = 8 };

struct hm_chunk {
	uint8_t variant;
	unsigned noperands;
	uint64_t operand[HM_OPERANDS];  /* as in the record: tables, then refs */
	struct buffer payload;
	uint64_t payload_claim;         /* size in the record; set to payload.nbytes when the archive is written unless changed */
	bool claims;
	uint64_t sum;
};

struct hm_stream {
	uint8_t kind;
	const char *name;               /* tensor */
	uint64_t name_nbytes;
	bool name_in_header;
	int64_t name_distance;
	uint8_t dtype;
	const char *dtype_name;
	uint64_t dtype_nbytes, data_nbytes;
	uint64_t ndim, dim[4];
	uint64_t nwords;                /* header and classes: as in the record; tensors: what hm_words() was given */
	uint8_t width;
	uint64_t chunk, geometry, rows, columns;
	uint8_t kr, kc;
	uint64_t nvariants, program[HM_VARIANTS];
	unsigned nchunks;
	struct hm_chunk chunks[HM_CHUNKS];
};

struct hm_section {
	struct buffer extra;            /* bytes behind what belongs there */
	int64_t count_change;           /* of the count at its start */
	bool huffman, predicted;        /* stored as form 1; as form 2 */
	uint64_t form;
	int64_t stored_change, decoded_change; /* of the sizes in the prelude */
};

/* A large object: allocate it. */
struct handmade {
	unsigned nprograms, ninstr[HM_PROGRAMS];
	struct bc_instr instr[HM_PROGRAMS][HM_INSTR];
	unsigned ntables;
	uint8_t table_kind[HM_TABLES];
	struct buffer table[HM_TABLES];
	int64_t table_change[HM_TABLES];  /* of the size in the record */
	unsigned nstreams;
	struct hm_stream stream[HM_STREAMS];
	struct hm_section section[AR_SECTIONS];
	struct buffer payload_extra;
	unsigned version;               /* 0: the lowest that has all ops of the programs, and the flags */
	uint16_t flags;                 /* of the prelude; stream 0 has to be as they say */
	int64_t archive_change, payload_change; /* of the sizes in the prelude */
	bool bad_sections_sum;
};

struct handmade *alloc_handmade(void);
void free_handmade(struct handmade *hm);

unsigned hm_program(struct handmade *hm, unsigned ninstr, const struct bc_instr *instr);
unsigned hm_table(struct handmade *hm, uint8_t kind, const void *body, size_t nbytes);

/* A stream of n words (word_nbytes(width) each) with `chunk` words a chunk and one program; chunk records without payload; sums
 * of the words. */
struct hm_stream *hm_stream(struct handmade *hm, uint8_t kind, unsigned width, const void *words, uint64_t n, uint64_t chunk,
			    unsigned program);
void hm_tensor(struct hm_stream *stream, const char *name, const char *dtype, uint64_t ndim, const uint64_t *dim);

/* Payload: n packed words; an item with its length. */
void hm_packed(struct buffer *payload, unsigned width, const void *words, uint64_t n);
void hm_item(struct buffer *payload, const void *bytes, size_t nbytes);

/* The archive's bytes. */
void hm_write(const struct handmade *hm, struct buffer *out);

/* Corrects the two checksums of an archive's prelude after its bytes have been changed, as far as its sizes allow. */
void hm_fix_sums(uint8_t *archive, size_t nbytes);

#endif

/* forge.h: archives around any program: words of the literals are drawn at random and coded by the real encoders; what a program makes of them
 * is worked out by tests/model.h, which shares nothing with the kernels.
 *
 * For golden archives and for fuzzers, so nothing here needs criterion. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FORGE_H
#define TESTS_FORGE_H

#include "tests/handmade.h"

enum { FORGE_PROGRAMS = 2 };

struct forge {
	struct handmade *hm;
	struct buffer json, data;     /* of the checkpoint that the archive stands for; json is complete after forge_end() */
	struct buffer marked;	      /* json without its entries */
	uint16_t flags;		      /* of the prelude; set before the first tensor, AR_FLAG_ENTRIES if no name needs escapes */
	uint64_t random;	      /* SplitMix64: set it for other words */
	uint64_t data_at[HM_STREAMS]; /* of a tensor in data */
	uint8_t *classes[HM_STREAMS]; /* of a class stream, extended by KN_CLASS_PAD */
	unsigned nclasses[HM_STREAMS];
};

struct forge_program {
	unsigned ninstr;
	const struct bc_instr *instr;
};
#define FORGE_PROGRAM(...)                                                                                                            \
	{                                                                                                                             \
		sizeof((const struct bc_instr[]){ __VA_ARGS__ }) / sizeof(struct bc_instr), (const struct bc_instr[]) { __VA_ARGS__ } \
	}

struct forge_tensor {
	const char *name, *dtype;
	struct forge_program program[FORGE_PROGRAMS]; /* the second, if there is one, makes every other chunk */
	uint64_t nwords, chunk;
	uint64_t geometry;		/* words in a row; 0: no classes */
	unsigned rows, columns;		/* class streams, as forge_classes() numbers them; 0: none */
	unsigned log2_nb;		/* lit.rans; 0: 4 */
	unsigned base;			/* of a lit.rans table of at most 8 bits */
	unsigned symbols;		/* about how many different words coded literals have; 0: 12 */
	unsigned outliers;		/* lit.rans and lit.wide: one word in so many is any word; 0: none */
	unsigned pack_bits;		/* lit.pack */
	uint64_t ref_stream, ref_first; /* of every `ref`; ref_first moves on with the chunks */
};

void forge_begin(struct forge *forge, uint64_t seed);

/* A class stream of n words below k, 2 <= k <= 16; its number. Before the first tensor. */
unsigned forge_classes(struct forge *forge, uint64_t n, unsigned k);

/* False, and nothing added, if the program is wrong, does not fit the words, or no table can be made for it; or there is no room. */
bool forge_tensor(struct forge *forge, const struct forge_tensor *tensor);

/* Adds the header and the names. Then forge->hm can be written, and forge_expected() tells what it stands for. */
void forge_end(struct forge *forge);
void forge_expected(const struct forge *forge, struct buffer *checkpoint);
void forge_free(struct forge *forge);

#endif

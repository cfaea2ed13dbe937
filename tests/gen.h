/* gen.h: calls of kernels, made for tests: shaped words, payloads, sources between guard pages.
 *
 * A case is one call that every kernel set can be given. Its sources end exactly where a kernel may no longer read, or begin where it must not
 * read before; what lies in the pad changes from run to run, so that nothing may depend on it. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_GEN_H
#define TESTS_GEN_H

#include "kernels/kernel.h"

enum { GEN_BLOCKS = 32, GEN_BLOCK_NBYTES = 1 << 20, GEN_PLAIN = -1 };

enum gen_verdict {
	GEN_GOOD,               /* the kernel has to succeed */
	GEN_DAMAGED,            /* it has to refuse the payload */
	GEN_ANY,                /* either, but all sets the same */
};

struct gen_case {
	struct kn_args args;            /* all but dst, and carry: not NULL stands for the runner's */
	int fused;                      /* enum kn_id, or GEN_PLAIN: the kernel of args.op */
	enum gen_verdict verdict;
	uint8_t *expect;                /* the n words; NULL: what the scalar set makes of it */
	const uint8_t *expect_carry;    /* bc_carry_nbytes(), in a block; NULL likewise */
	char what[160];                 /* the parameters, for messages */
	/* Owned memory. */
	unsigned nblocks, nowned;
	bool at_left;                   /* blocks begin behind a guard page instead of ending before one */
	struct { uint8_t *at; size_t nbytes; } pad[GEN_BLOCKS];
	void *owned[8];                 /* freed by gen_end() */
};

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t gen_random(uint64_t *state);
/* lo..hi, both included. */
uint64_t gen_between(uint64_t *state, uint64_t lo, uint64_t hi);

enum gen_shape { GEN_UNIFORM, GEN_LOW, GEN_HIGH, GEN_BELL, GEN_RUNS, GEN_SHAPES };
/* n words of w bits, word_nbytes(w) each. LOW and HIGH: 0 or the largest word and near them; BELL: around a centre, like exponents;
 * RUNS: few values, each for a while. */
void gen_words(uint64_t *state, enum gen_shape shape, unsigned width, size_t n, void *words);

/* A width of lo..hi: often 8, 16, 32, 64 or a neighbour, if they are among those. */
unsigned gen_width(uint64_t *state, unsigned lo, unsigned hi);

/* Begins a case for the op; gen_end() must follow. */
void gen_begin(struct gen_case *out, const struct bc_opinfo *op, unsigned seed, size_t n);
void gen_end(struct gen_case *gen);

/* A block of nbytes with `pad` bytes behind it that may be read. It belongs to the case. */
uint8_t *gen_block(struct gen_case *gen, size_t nbytes, size_t pad);
/* A copy of the bytes in such a block, with KN_PAD. */
uint8_t *gen_copy(struct gen_case *gen, const void *bytes, size_t nbytes);
/* What lies in the pads from now on. */
void gen_fill_pads(const struct gen_case *gen, uint8_t value);

/* Adds an argument stream of n words; NULL: shaped at random, else a copy. */
void gen_source(struct gen_case *gen, uint64_t *state, unsigned width, size_t n, const void *words);

/* A block for destinations of up to GEN_BLOCK_NBYTES, of which there are two, between guard pages of their own. */
uint8_t *gen_destination(unsigned which);

/* A case for an op without tables, n > 0. False: this op has no kernel, or there is no case for this n and seed. */
bool gen_case(const struct bc_opinfo *op, unsigned seed, size_t n, struct gen_case *out);

/* The same for ops with tables (fused: GEN_PLAIN) and for fused kernels (op: a rANS literal); in gen_entropy.c. */
bool gen_entropy_case(const struct bc_opinfo *op, int fused, unsigned seed, size_t n, struct gen_case *out);

#endif

/* kin.h: what was found for tensors of the same type, shape and name but for its digits: the layers of a model repeat each other, so that a few programs do for all of a kind.
 *
 * A kind has examples: tensors that were searched, with the programs that came out best. Another tensor of the kind whose bytes look alike is given the
 * best of an example's programs, and is searched itself only if none does as well on it as on the example; then it becomes an example.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_KIN_H
#define SYNTH_KIN_H

#include "synth/search.h"

enum { KIN_PROGRAMS = 4, KIN_EXAMPLES = 16 };

/* How the bytes of a sample look: bits of ideal codes for byte k of each word, each with a code of its own. */
struct look { float bits[8]; };
void look_at(struct look *look, const void *words, size_t n, unsigned width);

struct kin_example {
	struct look look;
	double word_cost;               /* of the first program: bytes + lambda * cycles for each word */
	unsigned n;
	struct expr expr[KIN_PROGRAMS]; /* the best first */
};

/* Type, shape, and the name without its digits. */
struct kind {
	unsigned width, dtype;
	uint64_t nwords, rows, name;
};
uint64_t kind_name(const char *name, size_t nbytes);

struct kin {
	struct kind kind;
	bool met;                       /* a tensor of it: for the caller */
	unsigned n;
	struct kin_example *example[KIN_EXAMPLES];      /* owned */
};

/* The best programs of a search. */
void kin_learn(struct kin_example *out, const struct look *look, const struct search_result *result, double nwords);

/* The example that looks like this, or NULL. */
const struct kin_example *kin_like(const struct kin *kin, const struct look *look);

/* The best of an example's programs for the search's tensor: best, cost, nbytes and cycles are set. False if none
 * does as well as on the example, what the bytes' ideal codes differ by allowed for. */
bool kin_follow(struct search *search, const struct kin_example *example, const struct look *look, double nwords, struct search_result *result);

/* All kinds of a checkpoint: a kind is made if there is none yet (NULL: no memory). */
struct kinds;
struct kinds *alloc_kinds(void);
void free_kinds(struct kinds *kinds);
struct kin *kinds_find(struct kinds *kinds, const struct kind *kind);

/* Takes over an example (malloc'ed) while there is room; else it is freed. */
void kin_add(struct kin *kin, struct kin_example *example);

#endif

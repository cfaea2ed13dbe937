/* prior.h: how likely each production is in a context, learned from programs that won.
 *
 * The context of a hole is the tensor's dtype, the hole's width, its depth, the op above it and the tensor's size class. Probabilities are
 * counts smoothed with a broader context: P(p | context) = (count(context, p) + strength * P(p | width)) / (count(context) + strength), and
 * P(p | width) is smoothed the same way with the uniform distribution. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_PRIOR_H
#define SYNTH_PRIOR_H

#include "common/base.h"
#include "common/status.h"

enum { PRIOR_MAX_PRODUCTIONS = 96, PRIOR_MAX_CONTEXTS = 4096 };

struct prior_context {
	uint8_t dtype, width, depth, parent_op, size_class;
};

struct prior;

/* An empty prior is the uniform one. NULL if there is no memory. */
struct prior *alloc_prior(void);
void free_prior(struct prior *prior);

/* Adds `weight` observations of a production in a context; beyond PRIOR_MAX_CONTEXTS contexts nothing more is learned. */
void prior_observe(struct prior *prior, const struct prior_context *context, unsigned production, double weight);

/* Adds what another one has observed. Sums are exact: the order of additions makes no difference but to which contexts come too late. */
void prior_add(struct prior *prior, const struct prior *more);

/* -log2 probability of every production in a context; smallest of them in *least. */
void prior_bits(const struct prior *prior, const struct prior_context *context, double bits[PRIOR_MAX_PRODUCTIONS], double *least);

/* A JSON file that names productions, so that it outlives their numbers; whole under its name or not there. What is loaded gives the very bits that
 * what was saved gives. BRV_IO, BRV_INPUT, BRV_MEMORY. */
enum brv_status prior_load(struct prior *prior, const char *path, struct error *err);
/* Saving: a file that is there already is replaced if it is a prior, or if forced; else BRV_USAGE. */
enum brv_status prior_save(const struct prior *prior, const char *path, bool force, struct error *err);

/* 0 for up to 2^10 words, then one more for each factor of 8, at most 7. */
unsigned prior_size_class(uint64_t nwords);

#endif

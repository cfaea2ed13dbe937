/* prior.c: production probabilities. SPDX-License-Identifier: Apache-2.0 */
#include "synth/prior.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "synth/productions.h"

/* Pseudo-observations that the broader context is worth. */
static const double strength = 1.0;

struct counts {
	struct prior_context context;
	double total, of[PRIOR_MAX_PRODUCTIONS];
};

struct prior {
	unsigned ncontexts;
	struct counts width[65];                /* by width alone */
	struct counts *context[PRIOR_MAX_CONTEXTS];
};

struct prior *alloc_prior(void) { return calloc(1, sizeof(struct prior)); }

void free_prior(struct prior *prior)
{
	if (!prior)
		return;
	for (unsigned i = 0; i < prior->ncontexts; i++)
		free(prior->context[i]);
	free(prior);
}

static struct counts *find(const struct prior *prior, const struct prior_context *context)
{
	for (unsigned i = 0; i < prior->ncontexts; i++)
		if (!memcmp(&prior->context[i]->context, context, sizeof(*context)))
			return prior->context[i];
	return NULL;
}

void prior_observe(struct prior *prior, const struct prior_context *context, unsigned production, double weight)
{
	struct counts *c = find(prior, context);

	prior->width[context->width].total += weight;
	prior->width[context->width].of[production] += weight;
	if (!c && prior->ncontexts < PRIOR_MAX_CONTEXTS && (c = calloc(1, sizeof(*c)))) {
		c->context = *context;
		prior->context[prior->ncontexts++] = c;
	}
	if (c)
		c->total += weight, c->of[production] += weight;
}

void prior_bits(const struct prior *prior, const struct prior_context *context, double bits[PRIOR_MAX_PRODUCTIONS], double *least)
{
	const struct counts *wide = &prior->width[context->width], *narrow = find(prior, context);

	*least = HUGE_VAL;
	for (unsigned p = 0; p < nproductions; p++) {
		double broad = (wide->of[p] + strength / nproductions) / (wide->total + strength);
		double chance = narrow ? (narrow->of[p] + strength * broad) / (narrow->total + strength) : broad;
		bits[p] = -log2(chance);
		*least = bits[p] < *least ? bits[p] : *least;
	}
}

unsigned prior_size_class(uint64_t nwords)
{
	unsigned size = 0;

	for (uint64_t limit = 1024; nwords > limit && size < 7; limit *= 8)
		size++;
	return size;
}

/* "name/width": several productions share a name, never with the same width. */
static void production_key(unsigned index, char key[64])
{
	snprintf(key, 64, "%s/%u", productions[index].name, productions[index].width);
}

static int production_by_key(const char *key)
{
	char own[64];

	for (unsigned i = 0; i < nproductions; i++) {
		production_key(i, own);
		if (!strcmp(own, key))
			return (int)i;
	}
	return -1;
}

static enum brv_status load_context(struct prior *prior, const json_t *entry, struct error *err)
{
	int dtype, width, depth, parent, size;
	json_t *counts, *value;
	const char *key;

	if (json_unpack((json_t *)entry, "{s:i,s:i,s:i,s:i,s:i,s:o}", "dtype", &dtype, "width", &width, "depth", &depth, "parent", &parent, "size",
			&size, "counts", &counts) ||
	    !json_is_object(counts))
		return fail(err, BRV_INPUT, "prior: a context needs dtype, width, depth, parent, size and counts");
	if (dtype < 0 || dtype > 255 || width < 1 || width > 64 || depth < 0 || depth > 255 || parent < 0 || parent > 255 || size < 0 || size > 7)
		return fail(err, BRV_INPUT, "prior: a context is out of range");
	const struct prior_context context = { (uint8_t)dtype, (uint8_t)width, (uint8_t)depth, (uint8_t)parent, (uint8_t)size };
	json_object_foreach(counts, key, value) {
		int production = production_by_key(key);
		double weight = json_number_value(value);
		if (!json_is_number(value) || !(weight >= 0 && weight < 1e15))
			return fail(err, BRV_INPUT, "prior: count of \"%.60s\" is not a number from 0 to 10^15", key);
		if (production >= 0) /* a production that this version does not know says nothing */
			prior_observe(prior, &context, (unsigned)production, weight);
	}
	return BRV_OK;
}

enum brv_status prior_load(struct prior *prior, const char *path, struct error *err)
{
	json_error_t why;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
	enum brv_status status = BRV_OK;
	const json_t *contexts = json_object_get(root, "contexts");

	if (!root)
		status = fail(err, why.line < 0 && errno ? BRV_IO : BRV_INPUT, "%s: %.150s", path, why.text);
	else if (json_integer_value(json_object_get(root, "brevis_prior")) != 1 || !json_is_array(contexts))
		status = fail(err, BRV_INPUT, "%s: not a prior of version 1", path);
	for (size_t i = 0; status == BRV_OK && i < json_array_size(contexts); i++)
		status = load_context(prior, json_array_get(contexts, i), err);
	json_decref(root);
	return status;
}

enum brv_status prior_save(const struct prior *prior, const char *path, struct error *err)
{
	json_t *contexts = json_array();
	char key[64];

	for (unsigned i = 0; i < prior->ncontexts; i++) {
		const struct counts *c = prior->context[i];
		json_t *counts = json_object();
		for (unsigned p = 0; p < nproductions; p++) {
			production_key(p, key);
			if (c->of[p] > 0)
				json_object_set_new(counts, key, json_real(c->of[p]));
		}
		json_array_append_new(contexts, json_pack("{s:i,s:i,s:i,s:i,s:i,s:o}", "dtype", c->context.dtype, "width", c->context.width, "depth",
							  c->context.depth, "parent", c->context.parent_op, "size", c->context.size_class, "counts",
							  counts));
	}
	json_t *root = json_pack("{s:i,s:o}", "brevis_prior", 1, "contexts", contexts);
	int bad = json_dump_file(root, path, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
	json_decref(root);
	return bad ? fail(err, BRV_IO, "%s: %s", path, strerror(errno)) : BRV_OK;
}

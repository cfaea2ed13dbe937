/* prior.c: production probabilities. SPDX-License-Identifier: Apache-2.0 */
#include "synth/prior.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/archive.h"
#include "common/outfile.h"
#include "synth/json_memory.h"
#include "synth/productions.h"

/* Pseudo-observations that the broader context is worth. */
static const double strength = 1.0;

/* Weights are whole multiples of 1 / units: then sums are exact in any order, and a prior that was saved and loaded is the same one to the last bit. */
static const double units = 1 << 20;

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
	struct counts *c = find(prior, context), *wide = &prior->width[context->width];

	weight = rint(weight * units) / units;
	if (!c && prior->ncontexts < PRIOR_MAX_CONTEXTS && (c = calloc(1, sizeof(*c)))) {
		c->context = *context;
		prior->context[prior->ncontexts++] = c;
	}
	if (!c)
		return;
	c->total += weight, c->of[production] += weight;
	wide->total += weight, wide->of[production] += weight;
}

void prior_add(struct prior *prior, const struct prior *more)
{
	for (unsigned i = 0; i < more->ncontexts; i++)
		for (unsigned p = 0; p < nproductions; p++)
			if (more->context[i]->of[p] > 0)
				prior_observe(prior, &more->context[i]->context, p, more->context[i]->of[p]);
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

	json_memory_watch();
	if (json_unpack((json_t *)entry, "{s:i,s:i,s:i,s:i,s:i,s:o}", "dtype", &dtype, "width", &width, "depth", &depth, "parent", &parent, "size",
			&size, "counts", &counts) ||
	    !json_is_object(counts))
		return fail(err, json_memory_verdict(), "prior: a context needs dtype, width, depth, parent, size and counts");
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
	FILE *file;
	enum brv_status status = BRV_OK;

	do {
		errno = 0;
		file = fopen(path, "re");
	} while (!file && errno == EINTR);
	if (!file)
		return fail(err, errno == ENOMEM ? BRV_MEMORY : BRV_IO, "%s: %s", path, strerror(errno));
	json_memory_watch();
	json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &why);
	const json_t *contexts = json_object_get(root, "contexts");
	if (ferror(file))
		status = fail(err, BRV_IO, "%s: cannot read it", path);
	else if (!root)
		status = fail(err, json_memory_verdict(), "%s: %.150s", path, why.text);
	else if (json_integer_value(json_object_get(root, "brevis_prior")) != 1 || !json_is_array(contexts))
		status = fail(err, BRV_INPUT, "%s: not a prior of version 1", path);
	for (size_t i = 0; status == BRV_OK && i < json_array_size(contexts); i++)
		status = load_context(prior, json_array_get(contexts, i), err);
	json_decref(root);
	fclose(file);
	return status;
}

/* The value unless the object could not be made or filled; then NULL. Not json_pack(): short of memory it makes objects with wrong keys. */
static json_t *whole(json_t *value, bool ok)
{
	if (ok)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *counts_json(const struct counts *c)
{
	json_t *counts = json_object();
	char key[64];
	bool ok = counts != NULL;

	for (unsigned p = 0; p < nproductions && ok; p++) {
		production_key(p, key);
		ok = c->of[p] <= 0 || !json_object_set_new(counts, key, json_real(c->of[p]));
	}
	return whole(counts, ok);
}

/* One context as JSON; NULL: no memory. */
static json_t *context_json(const struct counts *c)
{
	const struct prior_context *x = &c->context;
	const struct { const char *key; int value; } number[] = {
		{ "dtype", x->dtype }, { "width", x->width }, { "depth", x->depth }, { "parent", x->parent_op }, { "size", x->size_class },
	};
	json_t *context = json_object();
	bool ok = context != NULL;

	for (size_t i = 0; i < ARRAY_LEN(number) && ok; i++)
		ok = !json_object_set_new(context, number[i].key, json_integer(number[i].value));
	return whole(context, ok && !json_object_set_new(context, "counts", counts_json(c)));
}

/* json_dump_callback_t */
static int put_text(const char *bytes, size_t nbytes, void *context)
{
	struct buffer *text = context;
	buffer_put(text, bytes, nbytes);
	return text->failed ? -1 : 0;
}

/* False: no memory. jansson does not always notice that put_text() fails, the buffer does. */
static bool prior_text(const struct prior *prior, struct buffer *text)
{
	json_t *root = json_object(), *contexts = json_array();
	bool ok = root && contexts && !json_object_set_new(root, "brevis_prior", json_integer(1));

	for (unsigned i = 0; i < prior->ncontexts && ok; i++)
		ok = !json_array_append_new(contexts, context_json(prior->context[i]));
	contexts = whole(contexts, ok);
	root = whole(root, !json_object_set_new(root, "contexts", contexts));
	ok = root && !json_dump_callback(root, put_text, text, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	json_decref(root);
	return ok && !text->failed;
}

/* Whether the file is a prior, or not there. */
static bool may_replace(const char *path)
{
	struct prior *there = alloc_prior();
	struct stat st;
	const bool may = (stat(path, &st) != 0 && errno == ENOENT) || !S_ISREG(st.st_mode) || (there && prior_load(there, path, NULL) == BRV_OK);
	free_prior(there);
	return may;
}

enum brv_status prior_save(const struct prior *prior, const char *path, bool force, struct error *err)
{
	if (!force && !may_replace(path))
		return fail(err, BRV_USAGE, "%.150s: the file exists already and is no prior; -f overwrites it", path);
	struct error why = { "" };
	struct buffer text = { 0 };

	const enum brv_status status = prior_text(prior, &text) ? outfile_put(path, text.data, text.nbytes, true, &why) :
								  fail(&why, BRV_MEMORY, "no memory for a prior");
	buffer_free(&text);
	return status == BRV_OK ? BRV_OK : fail(err, status, "%.100s: %s", path, why.text);
}

/* targets.c: hole targets: derived lazily, shared. SPDX-License-Identifier: Apache-2.0 */
#include "synth/targets.h"

#include <stdlib.h>

static struct target *add(struct targets *targets)
{
	if (targets->count == TARGETS_MAX)
		return NULL;
	struct target *t = calloc(1, sizeof(*t));
	if (t)
		targets->target[targets->count++] = t;
	return t;
}

bool targets_init(struct targets *targets, void *sample, unsigned width, unsigned nsegments, const size_t *n, const size_t *first)
{
	memset(targets, 0, sizeof(*targets));
	struct target *t = add(targets);
	if (!t) {
		free(sample);
		return false;
	}
	targets->nsegments = nsegments, targets->scale = 1;
	*t = (struct target){ .width = (uint8_t)width, .positional = true, .made = true, .exact = true, .words = sample };
	for (unsigned s = 0; s < nsegments; s++)
		targets->first[s] = first[s], t->n[s] = n[s], t->total += n[s];
	return true;
}

void targets_free(struct targets *targets)
{
	for (unsigned i = 0; i < targets->count; i++) {
		free(targets->target[i]->words);
		free(targets->target[i]);
	}
	targets->count = 0;
}

int targets_derive(struct targets *targets, unsigned parent, enum bc_op op, uint64_t imm, unsigned nargs, const uint8_t *width)
{
	for (unsigned i = parent + 1; i < targets->count; i++) {
		const struct target *t = targets->target[i];
		bool same = t->parent == parent && t->op == op && t->imm == imm && t->nargs == nargs && t->slot == 0;
		for (unsigned k = 0; same && k < nargs; k++)
			same = targets->target[i + k]->width == width[k];
		if (same)
			return (int)i;
	}
	unsigned first = targets->count;
	if (first + nargs > TARGETS_MAX)
		return -1;
	for (unsigned k = 0; k < nargs; k++) {
		struct target *t = add(targets);
		if (!t) { /* all of them or none: the search above looks at nargs targets side by side */
			while (targets->count > first)
				free(targets->target[--targets->count]);
			return -1;
		}
		t->width = width[k], t->op = op, t->imm = imm, t->nargs = (uint8_t)nargs, t->slot = (uint8_t)k;
		t->varies = targets->target[parent]->varies || (bc_opinfo(op)->words == WORDS_COUNT && (op == OP_LOOKUP || k == 0));
		t->parent = (uint16_t)parent, t->first = (uint16_t)first, t->positional = targets->target[parent]->positional && keeps_step(bc_opinfo(op), k);
	}
	return (int)first;
}

/* Makes the words of all arguments of one op. */
static void make(struct targets *targets, unsigned first)
{
	struct target *head = targets->target[first];
	const struct target *parent = targets_get(targets, head->parent);
	const unsigned nargs = head->nargs;
	struct words_out out[EXPR_MAX_ARGS];
	size_t at = 0;

	for (unsigned k = 0; k < nargs; k++)
		targets->target[first + k]->made = true;
	if (!parent)
		return;
	for (unsigned k = 0; k < nargs; k++) {
		struct target *t = targets->target[first + k];
		t->words = malloc(parent->total * word_nbytes(t->width) + 8);
		if (!t->words)
			return;
	}
	for (unsigned s = 0; s < targets->nsegments; at += parent->n[s], s++) {
		const struct words in = { (const uint8_t *)parent->words + at * word_nbytes(parent->width), parent->n[s], parent->width };
		const struct classes *c = targets->classes;
		const struct row_view rows = { c ? c->row : NULL, c ? c->row_words : 1, targets->first[s] };
		if (in.n == 0)
			continue;
		for (unsigned k = 0; k < nargs; k++) {
			struct target *t = targets->target[first + k];
			out[k] = (struct words_out){ (uint8_t *)t->words + t->total * word_nbytes(t->width), 0, t->width };
		}
		if (!invert(head->op, head->imm, in, &rows, out, nargs))
			return;
		for (unsigned k = 0; k < nargs; k++) {
			struct target *t = targets->target[first + k];
			t->n[s] = out[k].n, t->total += out[k].n;
		}
	}
	for (unsigned k = 0; k < nargs; k++)
		targets->target[first + k]->exact = true;
}

const struct target *targets_get(struct targets *targets, unsigned index)
{
	struct target *t = targets->target[index];

	if (!t->made)
		make(targets, t->first);
	return t->exact ? t : NULL;
}

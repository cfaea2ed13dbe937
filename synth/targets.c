/* targets.c: hole targets: derived lazily, shared. SPDX-License-Identifier: Apache-2.0 */
#include "synth/targets.h"

#include <stdlib.h>

#include "common/deal.h"

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

static void set_classed(const struct targets *targets, struct target *t)
{
	t->classed = t->row_words && targets->classes && targets->classes->row_words == t->row_words;
}

void targets_set_rows(struct targets *targets, uint64_t row_words, const struct classes *classes)
{
	targets->classes = classes;
	targets->target[0]->row_words = row_words;
	set_classed(targets, targets->target[0]);
}

size_t target_first(const struct targets *targets, const struct target *t, unsigned s)
{
	const uint64_t whole = targets->target[0]->row_words, first = targets->first[s];
	return (size_t)(first / whole * t->row_words + first % whole * t->row_words / whole);
}

/* Words that a row of the parent has of argument k; 0 if rows are not whole records. */
static uint64_t row_words_below(const struct target *parent, enum bc_op op, uint64_t imm, unsigned k, unsigned width)
{
	const uint64_t words = parent->row_words;
	uint64_t period = 0;
	struct deal deal;

	if (keeps_step(bc_opinfo(op), k))
		return words;
	switch (op) {
	case OP_WEAVE:
		for (unsigned i = 0; i < 4; i++)
			period += imm >> (16 * i) & 0xffff;
		return words % period ? 0 : words / period * (imm >> (16 * k) & 0xffff);
	case OP_CUT:
		period = width / parent->width;
		return words % period ? 0 : words / period;
	case OP_DEAL: return deal_parse(imm, parent->width, width, &deal) && words % deal.nwords == 0 ? words / deal.nwords * deal.block : 0;
	default: return 0;
	}
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
		t->row_words = row_words_below(targets->target[parent], op, imm, k, width[k]);
		set_classed(targets, t);
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
		t->words = malloc(parent->total * (head->op == OP_DEAL ? deal_most_words(parent->width, t->width) : 1) * word_nbytes(t->width) + 8);
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

/* test_literal_merge.c: the fused merge under every rANS literal: all fast shapes and others, every field that a carry may complete, lengths
 * around those where words begin to wait for it. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/gen.h"
#include "tests/model_literal.h"

static const struct shape { uint8_t coded, rotate, nfield, field[3]; } shapes[] = {
	{ 8, 1, 1, { 8 } }, { 9, 1, 1, { 7 } }, { 9, 0, 1, { 7 } }, { 8, 0, 1, { 8 } }, { 5, 1, 2, { 8, 3 } }, { 6, 0, 2, { 8, 2 } }, { 7, 0, 2, { 8, 1 } },
	{ 8, 1, 1, { 24 } }, { 9, 1, 1, { 23 } }, { 8, 1, 2, { 16, 8 } }, { 6, 0, 1, { 2 } }, { 5, 0, 1, { 3 } }, { 4, 0, 1, { 4 } },
	{ 8, 3, 1, { 8 } }, { 3, 5, 3, { 1, 1, 1 } }, { 12, 0, 1, { 52 } }, { 16, 63, 1, { 48 } }, { 1, 0, 1, { 63 } }, { 10, 13, 3, { 13, 1, 9 } },
	{ 11, 0, 1, { 5 } }, { 11, 0, 1, { 21 } }, { 11, 3, 1, { 5 } },
};

/* The k-th call: by turns around the length whose packed words take two carries, with and without it; and any length. */
static struct literal_call some_call(const struct literal *literal, const struct shape *shape, unsigned k, uint64_t *state)
{
	struct literal_call call = { .nfield = shape->nfield, .rotate = shape->rotate };
	const size_t carry_nbytes = bc_carry_nbytes(literal->op);

	memcpy(call.field, shape->field, sizeof(call.field));
	call.carried = (unsigned)gen_between(state, 0, call.nfield - 1u);
	const unsigned field = call.field[call.carried];
	call.n = k < 4 ? 8 * carry_nbytes / field + gen_between(state, 1, 2 * KN_GROUP) : gen_between(state, 1, k < 8 ? 700 : 3000);
	call.carry = k % 2 == 0 && packed_nbytes(call.n, field) >= carry_nbytes;
	if (literal->kr * literal->kc > 1)
		call.row_words = gen_between(state, 1, k & 2 ? 20 : 500), call.first = gen_between(state, 0, 1000);
	return call;
}

static unsigned exercise(uint8_t op, const struct shape *shape, uint64_t *state)
{
	unsigned made = 0;

	for (unsigned i = 0; i < 6; i++) {
		struct literal literal;
		char what[80];
		if (!test_literal_random(&literal, op, shape->coded, i & 1 ? CLASSES_BOTH : CLASSES_NONE, i, state))
			continue;
		made++;
		for (unsigned k = 0; k < 10; k++) {
			const struct literal_call call = some_call(&literal, shape, k, state);
			snprintf(what, sizeof(what), "shape %u+%u, table %u, field %u%s", shape->coded, shape->field[0], i, call.carried,
				 call.carry ? " carried" : "");
			literal_exercise(&literal, call, 4, state, what);
		}
		literal_free(&literal);
	}
	return made;
}

Test(op_literal_merge, shapes, .timeout = 600)
{
	uint64_t state = 6;

	for (unsigned op = 0; op < 256; op++) {
		unsigned made = 0;
		if (!bc_is_rans((uint8_t)op))
			continue;
		for (unsigned s = 0; s < ARRAY_LEN(shapes); s++)
			made += exercise((uint8_t)op, &shapes[s], &state);
		cr_assert(made > 4 * ARRAY_LEN(shapes), "%s: only %u tables", bc_opinfo((uint8_t)op)->name, made);
	}
}

/* test_literal_random.c: every entropy-coded literal with random tables: coded and decoded by every set, then damaged.
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/gen.h"
#include "tests/model_literal.h"

/* Around the lanes of all, around where lit.huff takes eight segments, and longer. */
static const size_t lengths[] = { 1, 2, 7, 8, 60, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 263, 264, 265, 300, 1000, 4099 };

static struct literal_call some_call(const struct literal *literal, unsigned k, uint64_t *state)
{
	struct literal_call call = { .n = lengths[gen_between(state, 0, ARRAY_LEN(lengths) - 1)], .carry = k & 1 && bc_is_rans(literal->op) };

	if (literal->kr * literal->kc > 1)
		call.row_words = gen_between(state, 1, k & 2 ? 20 : 500), call.first = gen_between(state, 0, 1000);
	return call;
}

Test(op_literal_random, tables, .timeout = 600)
{
	enum { TABLES = 90 };
	uint64_t state = 4;

	for (unsigned op = 0; op < 256; op++) {
		const struct bc_opinfo *info = bc_opinfo((uint8_t)op);
		unsigned made = 0;
		if (!info || info->table == TABLE_NONE)
			continue;
		for (unsigned i = 0; i < TABLES; i++) {
			struct literal literal;
			char what[40];
			if (!test_literal_random(&literal, (uint8_t)op, gen_width(&state, 1, info->max_width),
						 bc_is_rans((uint8_t)op) ? (enum test_classes)(i % 3) : CLASSES_NONE, i / 3, &state))
				continue;
			made++;
			snprintf(what, sizeof(what), "table %u", i);
			for (unsigned k = 0; k < 4; k++)
				literal_exercise(&literal, some_call(&literal, k, &state), 6, &state, what);
			literal_free(&literal);
		}
		cr_assert(made > TABLES * 2 / 3, "%s: only %u tables", info->name, made);
	}
}

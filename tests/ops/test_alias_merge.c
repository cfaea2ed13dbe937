/* test_alias_merge.c: the fused merge under lit.alias: all fast shapes and others, every field that a carry may complete, lengths around those where
 * words begin to wait for it. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/gen.h"
#include "tests/model_literal.h"

static const struct { uint8_t coded, rotate, nfield, field[3]; } shapes[] = {
	{ 11, 0, 1, { 5 } }, { 8, 0, 1, { 8 } }, { 11, 0, 1, { 21 } }, { 8, 1, 1, { 8 } }, { 9, 1, 1, { 7 } }, { 11, 3, 1, { 5 } }, { 8, 1, 1, { 24 } },
	{ 4, 0, 1, { 4 } }, { 3, 5, 3, { 1, 1, 1 } }, { 16, 63, 1, { 48 } }, { 1, 0, 1, { 63 } }, { 10, 13, 3, { 13, 1, 9 } },
};

Test(op_alias_merge, shapes, .timeout = 300)
{
	unsigned made = 0;
	uint64_t state = 9;

	for (unsigned s = 0; s < ARRAY_LEN(shapes); s++)
		for (unsigned i = 0; i < 6; i++) {
			struct literal literal;
			const unsigned width = shapes[s].coded, kr = i & 1 ? (unsigned)gen_between(&state, 1, width > 12 ? 2 : 8) : 1;
			char what[60];
			const unsigned kc = i & 1 ? 1u << gen_between(&state, 0, 2) : 1, log2_nb = 4 + (s + i) % (kc > 2 ? 3 : kc > 1 ? 4 : 5);
			if (!test_literal_train(&literal, OP_LIT_ALIAS, width, log2_nb, kr, kc,
					   (unsigned)gen_between(&state, 2, MIN(1u << width, 300u)), &state))
				continue;
			made++;
			for (unsigned k = 0; k < 10; k++) {
				struct literal_call call = { .nfield = shapes[s].nfield, .rotate = shapes[s].rotate };
				memcpy(call.field, shapes[s].field, sizeof(call.field));
				call.carried = (unsigned)gen_between(&state, 0, call.nfield - 1u);
				/* around the length whose packed words take 256 bytes, or any */
				const size_t least = 2048 / call.field[call.carried];
				call.n = k < 4 ? least + gen_between(&state, 1, 2 * KN_GROUP) : gen_between(&state, 1, k < 8 ? 700 : 3000);
				call.carry = k % 2 == 0 && packed_nbytes(call.n, call.field[call.carried]) >= BC_CARRY_MAX_NBYTES;
				if (literal.kr * literal.kc > 1)
					call.row_words = gen_between(&state, 1, k & 2 ? 20 : 500), call.first = gen_between(&state, 0, 1000);
				snprintf(what, sizeof(what), "shape %u, table %u, field %u%s", s, i, call.carried, call.carry ? " carried" : "");
				literal_exercise(&literal, call, 4, &state, what);
			}
			literal_free(&literal);
		}
	cr_assert(made > 4 * ARRAY_LEN(shapes), "only %u tables", made);
}

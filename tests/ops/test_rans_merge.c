/* test_rans_merge.c: the fused merge under lit.rans: all fast shapes and others, every field that a carry may complete, lengths around those where
 * words begin to wait for it. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/gen.h"
#include "tests/model_literal.h"

static const struct { uint8_t coded, rotate, nfield, field[3]; } shapes[] = {
	{ 8, 1, 1, { 8 } }, { 9, 1, 1, { 7 } }, { 9, 0, 1, { 7 } }, { 8, 0, 1, { 8 } }, { 5, 1, 2, { 8, 3 } }, { 6, 0, 2, { 8, 2 } }, { 7, 0, 2, { 8, 1 } },
	{ 8, 1, 1, { 24 } }, { 9, 1, 1, { 23 } }, { 8, 1, 2, { 16, 8 } }, { 6, 0, 1, { 2 } }, { 5, 0, 1, { 3 } }, { 4, 0, 1, { 4 } },
	{ 8, 3, 1, { 8 } }, { 3, 5, 3, { 1, 1, 1 } }, { 12, 0, 1, { 52 } }, { 16, 63, 1, { 48 } }, { 1, 0, 1, { 63 } }, { 10, 13, 3, { 13, 1, 9 } },
};

Test(op_rans_merge, shapes, .timeout = 300)
{
	unsigned made = 0;
	uint64_t state = 6;

	for (unsigned s = 0; s < ARRAY_LEN(shapes); s++)
		for (unsigned i = 0; i < 6; i++) {
			struct literal literal;
			const unsigned width = shapes[s].coded, kr = i & 1 ? (unsigned)gen_between(&state, 1, width > 12 ? 2 : 8) : 1;
			char what[60];
			if (!test_literal_train(&literal, OP_LIT_RANS, width, 4 + i % 3, kr, i & 1 ? 1u << gen_between(&state, 0, 2) : 1,
					   (unsigned)gen_between(&state, 2, MIN(1u << width, 80u)), &state))
				continue;
			made++;
			for (unsigned k = 0; k < 10; k++) {
				struct literal_call call = { .nfield = shapes[s].nfield, .rotate = shapes[s].rotate };
				memcpy(call.field, shapes[s].field, sizeof(call.field));
				call.carried = (unsigned)gen_between(&state, 0, call.nfield - 1u);
				/* around the length whose packed words take 128 bytes, or any */
				const size_t least = 1024 / call.field[call.carried];
				call.n = k < 4 ? least + gen_between(&state, 1, 2 * KN_GROUP) : gen_between(&state, 1, k < 8 ? 700 : 3000);
				call.carry = k % 2 == 0 && packed_nbytes(call.n, call.field[call.carried]) >= BC_CARRY_NBYTES;
				if (literal.kr * literal.kc > 1)
					call.row_words = gen_between(&state, 1, k & 2 ? 20 : 500), call.first = gen_between(&state, 0, 1000);
				snprintf(what, sizeof(what), "shape %u, table %u, field %u%s", s, i, call.carried, call.carry ? " carried" : "");
				literal_exercise(&literal, call, 4, &state, what);
			}
			literal_free(&literal);
		}
	cr_assert(made > 4 * ARRAY_LEN(shapes), "only %u tables", made);
}

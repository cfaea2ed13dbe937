/* set.c: the table of one set's kernels, made from the op table; compiled once for each set. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/cpu.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

/* The kernel, or NULL for NONE: ops that the executor does itself. CELL_NONE brings a second argument before the kernel's name. */
#define CELL_NONE ~, NULL
#define SECOND(first, second, ...) second
#define PICK(...) SECOND(__VA_ARGS__, )
#define CELL(kernel) PICK(CELL_##kernel, KN(kernel))

extern const struct kn_set KN(set);
const struct kn_set KN(set) = {
	.name = TEXT(KN_SET),
	.supported = KN(supported),
	.why = KN(why),
	.fn = {
#define OP(code, since, id, name, lo, hi, width, words, widths, payload, table, kernel, effect) [code] = CELL(kernel),
#include "common/ops.def"
#undef OP
	},
	.fused = {
#define OP(...)
#define FUSED(id, kernel, effect) [KN_FUSED_##id] = KN(kernel),
#include "common/ops.def"
#undef OP
#undef FUSED
	},
	.can_fuse = KN(can_fuse),
	.enc_huff = KN(enc_huff), .enc_rans = KN(enc_rans), .enc_wide = KN(enc_wide),
};

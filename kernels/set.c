/* set.c: the table of one set's kernels, made from the op table; compiled once for each set. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/cpu.h"

/* Ops that the executor does itself have no kernel. */
bool KN(NONE)(const struct kn_args *args)
{
	(void)args;
	return false;
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

extern const struct kn_set KN(set);
const struct kn_set KN(set) = {
	.name = TEXT(KN_SET),
	.supported = KN(supported),
	.fn = {
#define OP(code, id, name, lo, hi, width, words, widths, payload, table, kernel, effect) [code] = KN(kernel),
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

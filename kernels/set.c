/* set.c: the table of one set's kernels, made from the op table; compiled once for each set. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "kernels/cpu.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

/* A set that is avx512 but for lit.rans. */
#ifdef KN_SET_avx512i
#define OP(code, since, id, name, lo, hi, width, words, widths, payload, table, kernel, effect) kn_fn kn_##kernel##_avx512;
#define FUSED(id, kernel, effect) kn_fn kn_##kernel##_avx512;
#include "common/ops.def"
#undef OP
#undef FUSED
kn_enc_fn kn_enc_huff_avx512, kn_enc_rans_avx512, kn_enc_wide_avx512, kn_enc_alias_avx512;
kn_past_fn kn_copy_past_avx512;
kn_class_fn kn_class_costs_avx512;
kn_field_fn kn_take_field_avx512;
kn_scale_fn kn_class_symbols_avx512;
kn_pack_fn kn_pack_words_avx512;
#define KN_REST(kernel) kn_##kernel##_avx512
#define CELL_rans ~, KN(rans)
#define CELL_rans_merge ~, KN(rans_merge)
#else
#define KN_REST(kernel) KN(kernel)
#endif

/* The kernel, or NULL for NONE: ops that the executor does itself. CELL_NONE brings a second argument before the kernel's name. */
#define CELL_NONE ~, NULL
#define SECOND(first, second, ...) second
#define PICK(...) SECOND(__VA_ARGS__, )
#define CELL(kernel) PICK(CELL_##kernel, KN_REST(kernel))

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
#define FUSED(id, kernel, effect) [KN_FUSED_##id] = CELL(kernel),
#include "common/ops.def"
#undef OP
#undef FUSED
	},
	.can_fuse = KN(can_fuse),
	.enc = { [TABLE_HUFF] = KN_REST(enc_huff), [TABLE_RANS] = KN_REST(enc_rans), [TABLE_WIDE] = KN_REST(enc_wide), [TABLE_ALIAS] = KN_REST(enc_alias) },
#ifdef KN_HAS_PAST
	.copy_past = KN_REST(copy_past),
#endif
	.class_costs = KN_REST(class_costs), .take_field = KN_REST(take_field), .class_symbols = KN_REST(class_symbols), .pack_words = KN_REST(pack_words),
};

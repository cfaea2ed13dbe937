/* body.h: included by every file that is compiled once per kernel set (kernels/op_*.c, enc_*.c, past.c, set.c).
 *
 * KN(map) is the name of this set's map kernel: kn_map_avx2, say. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_BODY_H
#define KERNELS_BODY_H

#include "kernels/kernel.h"

#define KN_PASTE2(name, set) kn_##name##_##set
#define KN_PASTE(name, set) KN_PASTE2(name, set)
#define KN(name) KN_PASTE(name, KN_SET)

/* The bodies of this set, declared from the op table (ops that share a kernel declare it again, which C allows). */
#define OP(code, since, id, name, lo, hi, width, words, widths, payload, table, kernel, effect) kn_fn KN(kernel);
#define FUSED(id, kernel, effect) kn_fn KN(kernel);
#include "common/ops.def"
#undef OP
#undef FUSED
bool KN(can_fuse)(enum kn_id id, const struct kn_args *shape);
kn_enc_fn KN(enc_huff), KN(enc_rans), KN(enc_wide), KN(enc_alias);
#if defined(KN_SET_avx512) || defined(KN_SET_avx2)
#define KN_HAS_PAST 1
kn_past_fn KN(copy_past);
#endif
kn_class_fn KN(class_costs);
kn_field_fn KN(take_field);
kn_scale_fn KN(class_symbols);
kn_pack_fn KN(pack_words);

#endif

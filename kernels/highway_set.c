/* highway_set.c: the kernel set `hwy`: Highway's loops where it has them, the scalar bodies in the other cells. Empty without KN_HAVE_HWY.
 *
 * Vectors for CPUs that have no hand-written set, and a second opinion for those that do. BREVIS_ISA=hwy selects it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifdef KN_HAVE_HWY
#define KN_SET scalar
#include "kernels/body.h"
#include "kernels/cpu.h"
#include "kernels/highway.h"

static kn_fn map_hwy, scan_hwy, merge_hwy, pack_hwy, raw_hwy;

static bool map_hwy(const struct kn_args *a)
{
	static const uint8_t op_of[256] = {
		[OP_MAP_XOR] = KN_HWY_XOR, [OP_MAP_ADD] = KN_HWY_ADD, [OP_MAP_ZIGZAG] = KN_HWY_ZIGZAG,
		[OP_MAP_GRAY] = KN_HWY_GRAY, [OP_MAP_ROT] = KN_HWY_ROT,
	};
	return kn_hwy_map(op_of[a->op], a->dst, a->src[0], a->n, word_nbytes(a->width), a->width, a->imm) || kn_map_scalar(a);
}

static bool scan_hwy(const struct kn_args *a)
{
	uint64_t first = 0;

	memcpy(&first, a->pay, (a->width + 7u) / 8);
	if (first > mask_bits(a->width))
		return false;
	return kn_hwy_scan(a->op == OP_SCAN_XOR ? KN_HWY_XOR : KN_HWY_ADD, a->dst, a->src[0], a->n - 1, word_nbytes(a->width), a->width, first) ||
	       kn_scan_scalar(a);
}

static bool merge_hwy(const struct kn_args *a)
{
	bool planes = true;

	for (unsigned k = 0; k < a->nsrc; k++)
		planes = planes && a->src_width[k] == 8;
	return (planes && kn_hwy_merge_planes(a->dst, a->src, a->nsrc, a->n)) || kn_merge_scalar(a);
}

static bool raw_hwy(const struct kn_args *a)
{
	const unsigned w = a->width;
	return (w != 8 * word_nbytes(w) && kn_hwy_unpack(a->dst, a->pay, a->n, word_nbytes(w), w, w, 0)) || kn_raw_scalar(a);
}

static bool pack_hwy(const struct kn_args *a)
{
	const size_t head = 1 + (a->width + 7u) / 8;
	uint64_t base = 0;

	if (a->pay_nbytes < head || a->pay[0] > a->width || a->pay_nbytes != head + packed_nbytes(a->n, a->pay[0]))
		return false;
	memcpy(&base, a->pay + 1, head - 1);
	if (base > mask_bits(a->width))
		return false;
	return kn_hwy_unpack(a->dst, a->pay + head, a->n, word_nbytes(a->width), a->width, a->pay[0], base) || kn_pack_scalar(a);
}

bool kn_supported_hwy(void) { return true; }
const char *kn_why_hwy(void) { return kn_hwy_target(); }

/* Cells as in set.c: a second argument stands before the scalar kernel's name where there is something else. */
#define CELL_NONE ~, NULL
#define CELL_map ~, map_hwy
#define CELL_scan ~, scan_hwy
#define CELL_merge ~, merge_hwy
#define CELL_raw ~, raw_hwy
#define CELL_pack ~, pack_hwy
#define SECOND(first, second, ...) second
#define PICK(...) SECOND(__VA_ARGS__, )
#define CELL(kernel) PICK(CELL_##kernel, kn_##kernel##_scalar)

extern const struct kn_set kn_set_hwy;
const struct kn_set kn_set_hwy = {
	.name = "hwy",
	.supported = kn_supported_hwy,
	.why = kn_why_hwy,
	.fn = {
#define OP(code, since, id, name, lo, hi, width, words, widths, payload, table, kernel, effect) [code] = CELL(kernel),
#include "common/ops.def"
#undef OP
	},
	.fused = {
#define OP(...)
#define FUSED(id, kernel, effect) [KN_FUSED_##id] = kn_##kernel##_scalar,
#include "common/ops.def"
#undef OP
#undef FUSED
	},
	.can_fuse = kn_can_fuse_scalar,
	.enc = { [TABLE_HUFF] = kn_enc_huff_scalar, [TABLE_RANS] = kn_enc_rans_scalar, [TABLE_WIDE] = kn_enc_wide_scalar,
		 [TABLE_ALIAS] = kn_enc_alias_scalar },
	.class_costs = kn_class_costs_scalar, .take_field = kn_take_field_scalar, .class_symbols = kn_class_symbols_scalar, .pack_words = kn_pack_words_scalar,
};
#endif

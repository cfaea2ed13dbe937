/* op_rans.c: lit.rans, and its merge with raw fields (docs/FORMAT.md, 5.3).
 *
 * kernels/rans_plain.h is the reference of every set. Sets with vectors bring a backend; kernels/rans_run.h is what is
 * around it. Shapes without a vector body of their own are left to the plain body.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

#if defined(KN_SET_avx512)
#include "kernels/x86/rans_avx512.h"
#define HAVE_VECTORS 1
#endif
#ifdef KN_SET_avx2
#include "kernels/x86/rans_avx2.h"
#define HAVE_VECTORS 1
#endif
#ifdef KN_SET_neon
#include "kernels/arm/rans_neon.h"
#define HAVE_VECTORS 1
#endif
#include "kernels/rans_plain.h"
#ifdef HAVE_VECTORS
#include "kernels/rans_run.h"
#endif

#ifdef HAVE_VECTORS
#ifdef RANS_ANY_TABLE
/* The backend takes log2_nb and kc as variables: one instance of the vector body a shape. */
#define INSTANCES(I) I(BYTES) I(8_8_ROT) I(7_9_ROT) I(8_2_6) I(8_1_7) I(24_8_ROT) I(23_9_ROT) I(2_6) I(3_5)
#define DEFINE(shape) \
	static bool run_##shape(const struct kn_args *a) { return rans_run_all(a, SHAPE_##shape, a->table->rans.log2_nb, a->table->rans.kc); }
#define ENTRY(shape) [SHAPE_##shape] = run_##shape,
INSTANCES(DEFINE)
static kn_fn *const run_of[SHAPE_COUNT] = { INSTANCES(ENTRY) };

static kn_fn *instance(unsigned shape, const struct kn_rans *t) { return (void)t, run_of[shape]; }
#else
/* Instances of the vector body: I(shape, log2_nb, kc). Each costs some kilobytes and a second of compilation, so there are only those that the
 * synthesizer makes: what has none goes through the bytes alone, or through the plain body. */
#define TWO(I, shape, log2_nb) I(shape, log2_nb, 1) I(shape, log2_nb, 4)
#define INSTANCES(I)                                                                                                              \
	I(BYTES, 4, 1) I(BYTES, 4, 2) I(BYTES, 4, 4) I(BYTES, 5, 1) I(BYTES, 5, 2) I(BYTES, 5, 4)                                  \
	I(BYTES, 6, 1) I(BYTES, 6, 2) I(BYTES, 6, 4) TWO(I, 8_8_ROT, 4) TWO(I, 8_8_ROT, 5) TWO(I, 7_9_ROT, 4) TWO(I, 7_9_ROT, 5)   \
	TWO(I, 7_9_ROT, 6) TWO(I, 8_2_6, 5) TWO(I, 8_2_6, 6) TWO(I, 8_1_7, 5) TWO(I, 8_1_7, 6) TWO(I, 24_8_ROT, 4)                 \
	TWO(I, 24_8_ROT, 5) TWO(I, 23_9_ROT, 4) TWO(I, 23_9_ROT, 5) TWO(I, 2_6, 5) TWO(I, 2_6, 6) TWO(I, 3_5, 5)
#define DEFINE(shape, log2_nb, kc) \
	static bool run_##shape##_##log2_nb##_##kc(const struct kn_args *a) { return rans_run_all(a, SHAPE_##shape, log2_nb, kc); }
#define ENTRY(shape, log2_nb, kc) [SHAPE_##shape][log2_nb - 4][kc / 2] = run_##shape##_##log2_nb##_##kc,
INSTANCES(DEFINE)
static kn_fn *const run_of[SHAPE_COUNT][3][3] = { INSTANCES(ENTRY) };

/* NULL: none. */
static kn_fn *instance(unsigned shape, const struct kn_rans *t) { return run_of[shape][t->log2_nb - 4][t->kc / 2]; }
#endif

/* The shape of a fused call, or SHAPE_BYTES: none. */
static unsigned shape_of(const struct kn_args *a)
{
	for (unsigned s = SHAPE_BYTES + 1; s < SHAPE_COUNT; s++) {
		const unsigned nfield = rans_shape_of[s].raw[1] ? 2 : 1;
		if (instance(s, &a->table->rans) && a->width == rans_shape_of[s].width && a->coded_width == rans_shape_of[s].coded && a->rotate == rans_shape_of[s].rotate &&
		    a->nfield == nfield && a->field[0].width == rans_shape_of[s].raw[0] && (nfield == 1 || a->field[1].width == rans_shape_of[s].raw[1]))
			return s;
	}
	return SHAPE_BYTES;
}
#endif

bool KN(rans)(const struct kn_args *args)
{
#ifdef HAVE_VECTORS
	kn_fn *run = args->width <= 8 ? instance(SHAPE_BYTES, &args->table->rans) : NULL;
	if (run)
		return run(args);
#endif
	return plain_rans(args);
}

bool KN(rans_merge)(const struct kn_args *args)
{
#ifdef HAVE_VECTORS
	const unsigned shape = shape_of(args);
	if (shape != SHAPE_BYTES)
		return instance(shape, &args->table->rans)(args);
#endif
	return plain_rans_merge(args);
}

bool KN(can_fuse)(enum kn_id id, const struct kn_args *shape)
{
	/* The plain bodies join fields in the first-level cache, whatever the shape. */
#ifdef HAVE_VECTORS
	return id != KN_FUSED_RANS_MERGE || shape_of(shape) != SHAPE_BYTES;
#else
	return (void)id, (void)shape, true;
#endif
}

/* op_alias.c: lit.alias, and its merge with raw fields (docs/FORMAT.md, 5.3): rANS with 12-bit probabilities and alias tables.
 *
 * kernels/alias_plain.h is the reference of every set, and the body of shapes that vectors do not have.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

#if defined(KN_SET_avx512)
#include "kernels/x86/alias_avx512.h"
#define HAVE_VECTORS 1
#endif
#ifdef KN_SET_avx2
#include "kernels/x86/alias_avx2.h"
#endif
#include "kernels/alias_plain.h"

#ifdef HAVE_VECTORS
bool KN(alias)(const struct kn_args *args) { return vector_alias(args); }

bool KN(alias_merge)(const struct kn_args *args)
{
	struct alias_join join;
	const unsigned shape = alias_shape_of(args, &join);

	return shape == ALIAS_SHAPES ? plain_alias_merge(args) : vector_alias_merge(args, shape, &join);
}
#else
bool KN(alias)(const struct kn_args *args) { return plain_alias(args); }

bool KN(alias_merge)(const struct kn_args *args) { return plain_alias_merge(args); }
#endif

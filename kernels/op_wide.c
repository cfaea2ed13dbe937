/* op_wide.c: lit.wide, and its merge with raw fields (docs/FORMAT.md, 5.3): rANS with 12-bit probabilities for up to 256 symbols.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

#if defined(KN_SET_avx512)
#include "kernels/x86/wide_avx512.h"
#elif defined(KN_SET_avx2)
#include "kernels/x86/wide_avx2.h"
#endif
#include "kernels/wide_plain.h"

bool KN(wide)(const struct kn_args *args) { return wide_alone(args); }

bool KN(wide_merge)(const struct kn_args *args) { return wide_merged(args); }

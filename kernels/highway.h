/* highway.h: the loops that highway.cc brings, as C sees them. They pick the best of Highway's targets that this CPU runs.
 *
 * All return false, and have done nothing, for what they have no body for: the caller then takes the scalar kernel. Words take
 * `size` = 1, 2, 4 or 8 bytes at any address. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_HIGHWAY_H
#define KERNELS_HIGHWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum kn_hwy_op { KN_HWY_XOR, KN_HWY_ADD, KN_HWY_ZIGZAG, KN_HWY_GRAY, KN_HWY_ROT };

/* The maps of docs/FORMAT.md, 5.2, of n words of `width` bits. */
bool kn_hwy_map(enum kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, uint64_t imm);

/* Running XOR or sum that starts with `first`; dst has n + 1 words. */
bool kn_hwy_scan(enum kn_hwy_op op, uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, uint64_t first);

/* nplanes = 2..4 planes of n bytes into words of 2 or 4 bytes, first plane lowest. */
bool kn_hwy_merge_planes(uint8_t *dst, const void *const *plane, unsigned nplanes, size_t n);

/* n packed words of b bits, base added, as words of `width` bits. Reads at most 32 bytes beyond them. */
bool kn_hwy_unpack(uint8_t *dst, const uint8_t *src, size_t n, unsigned size, unsigned width, unsigned b, uint64_t base);

/* The name of the target in use. */
const char *kn_hwy_target(void);

#ifdef __cplusplus
}
#endif

#endif

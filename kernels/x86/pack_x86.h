/* pack_x86.h: the joins of enc_pack.c by PEXT (Intel SDM, volume 2), which is one operation on all CPUs that have AVX-512.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_PACK_X86_H
#define KERNELS_PACK_X86_H

#include "kernels/x86/simd_x86.h"

/* 8 bytes -> 8 * bits bits, bits < 8. */
static inline uint64_t join_bytes(uint64_t v, unsigned bits) { return _pext_u64(v, mask_bits(bits) * 0x0101010101010101ull); }

/* 4 words of 2 bytes -> 4 * bits bits, bits < 16. */
static inline uint64_t join_halves(uint64_t v, unsigned bits) { return _pext_u64(v, mask_bits(bits) * 0x0001000100010001ull); }

/* 4 words of 4 bytes -> 4 * bits bits, bits < 32. */
static inline unsigned __int128 join_words(const uint32_t *v, unsigned bits)
{
	const uint64_t mask = mask_bits(bits) * 0x0000000100000001ull;

	return _pext_u64(load_u64(v), mask) | (unsigned __int128)_pext_u64(load_u64(v + 2), mask) << 2 * bits;
}

#endif

/* past_avx2.h: a line stored past the caches, in two halves. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_PAST_AVX2_H
#define KERNELS_X86_PAST_AVX2_H

#include "kernels/x86/lookup_avx2.h"

enum { PAST_LINE = 64 };

static inline void past_line(uint8_t *to, const uint8_t *from)
{
	const __m256i low = load256(from), high = load256(from + 32);

	_mm256_stream_si256((void *)to, low);
	_mm256_stream_si256((void *)(to + 32), high);
}

static inline void past_wait(void) { _mm_sfence(); }

#endif

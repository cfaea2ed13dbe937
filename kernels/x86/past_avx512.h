/* past_avx512.h: a line stored past the caches. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_X86_PAST_AVX512_H
#define KERNELS_X86_PAST_AVX512_H

#include <immintrin.h>
#include <stdint.h>

enum { PAST_LINE = 64 };

static inline void past_line(uint8_t *to, const uint8_t *from) { _mm512_stream_si512((void *)to, _mm512_loadu_si512(from)); }
static inline void past_wait(void) { _mm_sfence(); }

#endif

/* past.c: copies past the caches, in the sets that have stores for it. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

#ifdef KN_SET_avx512
#include "kernels/x86/past_avx512.h"
#elif defined(KN_SET_avx2)
#include "kernels/x86/past_avx2.h"
#endif

#ifdef KN_HAS_PAST
/* Lines that are not whole are stored as usual: a store past the caches of a part of one would go to memory alone. */
void KN(copy_past)(void *dst, const void *src, size_t nbytes)
{
	uint8_t *to = dst;
	const uint8_t *from = src;
	const size_t head = MIN((size_t)(-(uintptr_t)dst % PAST_LINE), nbytes), whole = (nbytes - head) / PAST_LINE * PAST_LINE, tail = nbytes - head - whole;

	if (nbytes == 0) {
		past_wait();
		return;
	}
	memcpy(to, from, head);
	to += head, from += head;
	for (size_t i = 0; i < whole; i += PAST_LINE)
		past_line(to + i, from + i);
	memcpy(to + whole, from + whole, tail);
}
#endif

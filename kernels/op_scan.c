/* op_scan.c: scan: running XOR and running sum (docs/FORMAT.md, 5.2).
 *
 * Sixteen bytes at a time: to each word the one before is added, then the two before, the four before, ... What came before the
 * vector is added last, so that one vector waits for another a single step only. Compiler vectors: one text serves all sets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

typedef uint8_t v16 __attribute__((vector_size(16)));
typedef uint16_t v8 __attribute__((vector_size(16)));
typedef uint32_t v4 __attribute__((vector_size(16)));

/* The words moved up by k places, zeros below; and the last word in all places. */
#define UP_v16(v, k)                                                                                                            \
	__builtin_shufflevector((v16){ 0 }, v, 16 - k, 17 - k, 18 - k, 19 - k, 20 - k, 21 - k, 22 - k, 23 - k, 24 - k, 25 - k,  \
				26 - k, 27 - k, 28 - k, 29 - k, 30 - k, 31 - k)
#define UP_v8(v, k) __builtin_shufflevector((v8){ 0 }, v, 8 - k, 9 - k, 10 - k, 11 - k, 12 - k, 13 - k, 14 - k, 15 - k)
#define UP_v4(v, k) __builtin_shufflevector((v4){ 0 }, v, 4 - k, 5 - k, 6 - k, 7 - k)
#define LAST_v16(v) __builtin_shufflevector(v, v, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15)
#define LAST_v8(v) __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7)
#define LAST_v4(v) __builtin_shufflevector(v, v, 3, 3, 3, 3)
#define STEPS_v16(x, op) x = x op UP_v16(x, 1), x = x op UP_v16(x, 2), x = x op UP_v16(x, 4), x = x op UP_v16(x, 8)
#define STEPS_v8(x, op) x = x op UP_v8(x, 1), x = x op UP_v8(x, 2), x = x op UP_v8(x, 4)
#define STEPS_v4(x, op) x = x op UP_v4(x, 1), x = x op UP_v4(x, 2)

/* What a scan goes through: the sum so far, and the words from i on. */
#define VECTORS(T, V, op)                                                                                       \
	do {                                                                                                    \
		V sum = (V){ 0 } + (T)first;                                                                    \
		for (; i + 16 / sizeof(T) <= n; i += 16 / sizeof(T)) {                                          \
			V x;                                                                                    \
			memcpy(&x, src + i * sizeof(T), 16);                                                    \
			STEPS_##V(x, op);                                                                       \
			const V out = (x op sum) & (T)keep;                                                     \
			memcpy(dst + i * sizeof(T), &out, 16);                                                  \
			sum = sum op LAST_##V(x);                                                               \
		}                                                                                               \
		first = sum[0] & keep;                                                                          \
	} while (0)

#define WORDS(size, op)                                                                                         \
	BY_SIZE(T, size, {                                                                                      \
		for (; i < n; i++) {                                                                            \
			first = (first op ((const T *)src)[i]) & keep;                                          \
			((T *)dst)[i] = (T)first;                                                               \
		}                                                                                               \
	})

/* Eight-byte words gain nothing from vectors of two. */
#define SCAN(size, op)                                                                                          \
	do {                                                                                                    \
		switch (size) {                                                                                 \
		case 1: VECTORS(uint8_t, v16, op); break;                                                       \
		case 2: VECTORS(uint16_t, v8, op); break;                                                       \
		case 4: VECTORS(uint32_t, v4, op); break;                                                       \
		default: break;                                                                                 \
		}                                                                                               \
		WORDS(size, op)                                                                                 \
	} while (0)

bool KN(scan)(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width);
	const uint64_t keep = mask_bits(args->width);
	const size_t n = args->n - 1;
	const uint8_t *src = args->src[0];
	uint8_t *dst = (uint8_t *)args->dst + size;
	uint64_t first = 0;
	size_t i = 0;

	memcpy(&first, args->pay, (args->width + 7u) / 8);
	if (first > keep)
		return false;
	set_word(args->dst, size, 0, first);
	if (args->op == OP_SCAN_XOR)
		SCAN(size, ^);
	else
		SCAN(size, +);
	return true;
}

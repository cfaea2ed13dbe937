/* base.h: the ground of every file: spans, checked arithmetic, little-endian loads and stores.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_BASE_H
#define COMMON_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
/* The smaller and the larger of two numbers; each argument is evaluated once. */
#define MIN(a, b) PICK_(<, a, b, __COUNTER__)
#define MAX(a, b) PICK_(>, a, b, __COUNTER__)
#ifdef __cppcheck__ /* its parser gives a file up that has a statement in an expression */
#define PICK_(op, a, b, id) ((a) op (b) ? (a) : (b))
#else
#define PICK_(op, a, b, id) PICK_2_(op, a, b, id)
#endif
#define PICK_2_(op, a, b, id) \
	({ const __typeof__((a) + (b)) pick_a_##id = (a), pick_b_##id = (b); pick_a_##id op pick_b_##id ? pick_a_##id : pick_b_##id; })

static_assert(sizeof(size_t) == 8, "sizes of checkpoints need 64 bits");

/* Bytes that somebody else owns. */
struct span {
	const uint8_t *ptr;
	size_t nbytes;
};

/* a + b and a * b into *out; false if the result does not fit 64 bits. */
static inline bool add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }

/* a / b rounded up; b > 0, and a + b must not wrap. */
static inline uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* The w low bits set, 0 <= w <= 64. */
static inline uint64_t mask_bits(unsigned w) { return w >= 64 ? ~0ull : (1ull << w) - 1; }

/* Bytes that one word of w bits, 1 <= w <= 64, takes in memory: 1, 2, 4 or 8. */
static inline unsigned word_nbytes(unsigned w) { return w <= 8 ? 1 : w <= 16 ? 2 : w <= 32 ? 4 : 8; }

/* Bytes of n packed words of w bits; n <= 2^40 keeps it in range. */
static inline uint64_t packed_nbytes(uint64_t n, unsigned w) { return (n * w + 7) / 8; }

static inline uint16_t load_u16(const void *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t load_u32(const void *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t load_u64(const void *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline void store_u16(void *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void store_u32(void *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void store_u64(void *p, uint64_t v) { memcpy(p, &v, 8); }
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "loads and stores assume a little-endian machine");

/* Word i of a stream whose words take `size` bytes (word_nbytes of its width). For cold paths. */
static inline uint64_t get_word(const void *stream, unsigned size, size_t i)
{
	const uint8_t *p = (const uint8_t *)stream + i * size;
	switch (size) {
	case 1: return *p;
	case 2: return load_u16(p);
	case 4: return load_u32(p);
	default: return load_u64(p);
	}
}

static inline void set_word(void *stream, unsigned size, size_t i, uint64_t v)
{
	memcpy((uint8_t *)stream + i * size, &v, size);
}

#endif

/* enc_pack.c: words into packed words, eight a step, which are `bits` whole bytes: neighbours are joined pairwise, all pairs of a 64-bit number at once, or all
 * at once where the CPU can. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

#ifdef KN_SET_avx512
#include "kernels/x86/pack_x86.h"
#else

/* 8 bytes -> 8 * bits bits, bits < 8. */
static inline uint64_t join_bytes(uint64_t v, unsigned bits)
{
	const uint64_t m1 = mask_bits(bits) * 0x0001000100010001ull, m2 = mask_bits(2 * bits) * 0x0000000100000001ull;

	v = (v & m1) | (v >> (8 - bits) & m1 << bits);
	v = (v & m2) | (v >> (16 - 2 * bits) & m2 << 2 * bits);
	return (v & mask_bits(4 * bits)) | v >> 32 << 4 * bits;
}

/* 4 words of 2 bytes -> 4 * bits bits, bits < 16. */
static inline uint64_t join_halves(uint64_t v, unsigned bits)
{
	const uint64_t m1 = mask_bits(bits) * 0x0000000100000001ull;

	v = (v & m1) | (v >> (16 - bits) & m1 << bits);
	return (v & mask_bits(2 * bits)) | v >> 32 << 2 * bits;
}

/* 4 words of 4 bytes -> 4 * bits bits, bits < 32. */
static inline unsigned __int128 join_words(const uint32_t *v, unsigned bits)
{
	const uint64_t a = v[0] | (uint64_t)v[1] << bits, b = v[2] | (uint64_t)v[3] << bits;
	return a | (unsigned __int128)b << 2 * bits;
}
#endif

/* Writes two numbers of 4 * bits bits one after the other. */
static inline void store_two(uint8_t *out, unsigned __int128 a, unsigned __int128 b, unsigned bits)
{
	const unsigned odd = bits % 2 * 4;      /* a ends within a byte */

	memcpy(out, &a, 16);
	b = odd ? b << 4 | (a >> (4 * bits - 4) & 15) : b;
	memcpy(out + bits / 2, &b, 16);
}

static void pack_bytes(uint8_t *out, const uint8_t *words, size_t n, uint8_t base, unsigned bits)
{
	for (size_t i = 0; i < n; i += 8, out += bits) {
		uint8_t v[8];
		for (unsigned k = 0; k < 8; k++)
			v[k] = (uint8_t)(words[i + k] - base) & (uint8_t)mask_bits(bits);
		store_u64(out, bits == 8 ? load_u64(v) : join_bytes(load_u64(v), bits));
	}
}

static void pack_halves(uint8_t *out, const uint8_t *words, size_t n, uint16_t base, unsigned bits)
{
	for (size_t i = 0; i < n; i += 8, out += bits) {
		uint16_t v[8];
		memcpy(v, words + 2 * i, 16);
		for (unsigned k = 0; k < 8; k++)
			v[k] = (uint16_t)(v[k] - base) & (uint16_t)mask_bits(bits);
		const uint64_t a = bits == 16 ? load_u64(v) : join_halves(load_u64(v), bits);
		const uint64_t b = bits == 16 ? load_u64(v + 4) : join_halves(load_u64(v + 4), bits);
		const unsigned __int128 both = a | (unsigned __int128)b << 4 * bits;
		memcpy(out, &both, 16);
	}
}

static void pack_quads(uint8_t *out, const uint8_t *words, size_t n, uint32_t base, unsigned bits)
{
	for (size_t i = 0; i < n; i += 8, out += bits) {
		uint32_t v[8];
		memcpy(v, words + 4 * i, 32);
		for (unsigned k = 0; k < 8; k++)
			v[k] = (v[k] - base) & (uint32_t)mask_bits(bits);
		store_two(out, join_words(v, bits), join_words(v + 4, bits), bits);
	}
}

/* One word at a time. */
static void pack_few(uint8_t *out, const uint8_t *words, size_t n, unsigned size, uint64_t base, unsigned bits)
{
	unsigned __int128 held = 0;
	unsigned filled = 0;

	for (size_t i = 0; i < n; i++) {
		held |= (unsigned __int128)((get_word(words, size, i) - base) & mask_bits(bits)) << filled;
		filled += bits;
		if (filled >= 64) {
			store_u64(out, (uint64_t)held);
			out += 8, held >>= 64, filled -= 64;
		}
	}
	for (; (int)filled > 0; filled -= MIN(filled, 8u), held >>= 8)
		*out++ = (uint8_t)held;
}

void KN(pack_words)(uint8_t *out, const void *words, size_t n, unsigned width, uint64_t base, unsigned bits)
{
	const unsigned size = word_nbytes(width);
	size_t whole = n / 8 * 8;

	if (bits == 0)
		return;
	if (bits == size * 8 && base == 0) {
		memcpy(out, words, n * size);
		return;
	}
	switch (size) {
	case 1: pack_bytes(out, words, whole, (uint8_t)base, bits); break;
	case 2: pack_halves(out, words, whole, (uint16_t)base, bits); break;
	case 4: bits == 32 ? (void)(whole = 0) : pack_quads(out, words, whole, (uint32_t)base, bits); break;
	default: whole = 0;
	}
	pack_few(out + whole / 8 * bits, (const uint8_t *)words + whole * size, n - whole, size, base, bits);
}

/* enc_field.c: bit fields of words, which merges are made of, and the symbols that classes are found by (synth/classes.c).
 *
 * 16-bit words in GNU C vectors of the set's size, since compilers widen them to 32 bits for a shift that is not constant. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"

#include "common/by_size.h"

#ifdef KN_SET_avx512
enum { VECTOR = 64 };
#elif defined(KN_SET_avx2)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif
typedef uint16_t halves __attribute__((vector_size(VECTOR)));
typedef uint8_t bytes __attribute__((vector_size(VECTOR / 2)));
enum { STEP = VECTOR / 2 };     /* words of a vector */

static inline __attribute__((always_inline)) halves take(const uint8_t *words, const bool rotated, unsigned rotate, unsigned shift, uint16_t mask)
{
	halves v;

	memcpy(&v, words, sizeof(v));
	if (rotated)
		v = v << (uint16_t)rotate | v >> (uint16_t)(16 - rotate);
	return v >> (uint16_t)shift & mask;
}

static inline __attribute__((always_inline)) size_t vectors(const uint8_t *words, size_t n, const bool rotated, unsigned rotate, unsigned shift, unsigned bits,
							    uint8_t *out)
{
	const uint16_t mask = (uint16_t)mask_bits(bits);
	size_t i = 0;

	for (; bits > 8 && i + STEP <= n; i += STEP) {
		const halves v = take(words + 2 * i, rotated, rotate, shift, mask);
		memcpy(out + 2 * i, &v, sizeof(v));
	}
	for (; bits <= 8 && i + STEP <= n; i += STEP) {
		const bytes v = __builtin_convertvector(take(words + 2 * i, rotated, rotate, shift, mask), bytes);
		memcpy(out + i, &v, sizeof(v));
	}
	return i;
}

static void field_of_halves(const void *words, size_t n, unsigned rotate, unsigned shift, unsigned bits, void *out)
{
	size_t i = rotate ? vectors(words, n, true, rotate, shift, bits, out) : vectors(words, n, false, 0, shift, bits, out);

	for (; i < n; i++) {
		const unsigned word = load_u16((const uint8_t *)words + 2 * i);
		const uint16_t v = (uint16_t)(((word << rotate | word >> (16 - rotate)) & 0xffff) >> shift & mask_bits(bits));
		if (bits <= 8)
			((uint8_t *)out)[i] = (uint8_t)v;
		else
			store_u16((uint8_t *)out + 2 * i, v);
	}
}

/* Words of up to 8 bits, two at a time: what a shift brings from one into the other is masked away. */
static void field_of_bytes(const uint8_t *words, size_t n, unsigned shift, unsigned bits, uint8_t *out)
{
	const uint8_t mask = (uint8_t)mask_bits(bits);
	const uint16_t both = (uint16_t)(mask * 0x0101);
	size_t i = 0;

	for (; i + VECTOR <= n; i += VECTOR) {
		const halves v = take(words + i, false, 0, shift, both);
		memcpy(out + i, &v, sizeof(v));
	}
	for (; i < n; i++)
		out[i] = words[i] >> shift & mask;
}

void KN(take_field)(const void *words, size_t n, unsigned width, unsigned rotate, unsigned shift, unsigned bits, void *out)
{
	const unsigned right = rotate ? width - rotate : 0;
	const uint64_t whole = mask_bits(width), mask = mask_bits(bits);

	if (width == 16) {
		field_of_halves(words, n, rotate, shift, bits, out);
		return;
	}
	if (width <= 8 && !rotate) {
		field_of_bytes(words, n, shift, bits, out);
		return;
	}
	BY_SIZE(IN, word_nbytes(width), {
		const IN *v = words;
		BY_SIZE(T, word_nbytes(bits), {
			T *o = out;
			const IN w = (IN)whole;
			const T m = (T)mask;
			for (size_t i = 0; i < n; i++)
				o[i] = (T)((IN)((IN)(v[i] << rotate | v[i] >> right) & w) >> shift) & m;
		})
	})
}

enum { LAST = KN_SCALES - 1, MINUS = KN_SCALES };

/* What one word's symbol is. */
static inline __attribute__((always_inline)) uint8_t symbol_of(const struct kn_scale *view, uint64_t word)
{
	const uint64_t negative = word >> (view->width - 1) & 1;
	const unsigned scale = (view->complement && negative ? ~word : word) >> view->shift & mask_bits(view->bits);
	const unsigned above = scale > view->base ? scale - view->base : 0;

	return (uint8_t)(MIN(above, (unsigned)LAST) | (view->sign && negative ? MINUS : 0));
}

static inline __attribute__((always_inline)) size_t symbols_of_halves(const struct kn_scale *view, const uint8_t *words, size_t n, const bool sign, uint8_t *out)
{
	const uint16_t mask = (uint16_t)mask_bits(view->bits), low = view->base;
	const halves last = (halves){ 0 } + LAST;
	size_t i = 0;

	for (; i + STEP <= n; i += STEP) {
		const halves v = take(words + 2 * i, false, 0, 0, 0xffff), e = v >> (uint16_t)view->shift & mask;
		const halves above = (e - low) & (halves)(e > low), within = (halves)(above < last);
		halves symbol = (above & within) | (last & ~within);
		if (sign)
			symbol |= v >> 15 << 4;
		const bytes b = __builtin_convertvector(symbol, bytes);
		memcpy(out + i, &b, sizeof(b));
	}
	return i;
}

void KN(class_symbols)(const struct kn_scale *scale, const void *words, size_t n, uint8_t *out)
{
	const struct kn_scale view = *scale;    /* so that stores to out do not make it be read again */
	size_t i = 0;

	if (view.width == 16 && !view.complement)
		i = view.sign ? symbols_of_halves(&view, words, n, true, out) : symbols_of_halves(&view, words, n, false, out);
	BY_SIZE(T, word_nbytes(view.width), {
		const T *v = words;
		const T mask = (T)mask_bits(view.bits), flip = (T)(view.complement ? ~(T)0 : 0);
		const uint8_t low = view.base, minus = view.sign ? MINUS : 0;
		for (; sizeof(T) != 2 && i < n / 64 * 64; i += 64) {
			uint8_t e[64];
			for (unsigned k = 0; k < 64; k++)
				e[k] = (uint8_t)((T)(v[i + k] ^ (flip & (T)-(T)(v[i + k] >> (8 * sizeof(T) - 1)))) >> view.shift & mask);
			for (unsigned k = 0; k < 64; k++) {
				const uint8_t above = e[k] > low ? (uint8_t)(e[k] - low) : 0;
				e[k] = above < LAST ? above : LAST;
			}
			for (unsigned k = 0; k < 64; k++)
				out[i + k] = (uint8_t)(e[k] | (minus & (uint8_t)-(uint8_t)(v[i + k] >> (8 * sizeof(T) - 1))));
		}
		for (; i < n; i++)
			out[i] = symbol_of(&view, v[i]);
	})
}

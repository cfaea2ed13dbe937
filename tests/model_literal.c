/* model_literal.c: lit.huff, lit.rans and lit.wide straight from docs/FORMAT.md, 5.3, 6 and 7 (model_literal.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/model_literal.h"

#include <stdlib.h>

/* A string of bits, least significant bit of each byte first. */
struct model_bits {
	const uint8_t *bytes;
	size_t nbits, at;
};

static unsigned next_bit(struct model_bits *bits)
{
	const size_t at = bits->at++;
	return at < bits->nbits ? bits->bytes[at / 8] >> at % 8 & 1 : 0;
}

static unsigned next_bits(struct model_bits *bits, unsigned n)
{
	unsigned v = 0;

	for (unsigned b = 0; b < n; b++)
		v |= next_bit(bits) << b;
	return v;
}

/* Canonical codes in their order: by length, then by symbol. */
struct model_code {
	unsigned length, code, symbol;
};

static unsigned huff_codes(const uint8_t *body, struct model_code *out)
{
	const unsigned first = body[0], last = body[1];
	unsigned n = 0;

	for (unsigned length = 1; length <= 12; length++)
		for (unsigned s = first; s <= last; s++)
			if ((body[2 + (s - first) / 2] >> (s - first) % 2 * 4 & 15) == length) {
				out[n] = (struct model_code){ length, 0, s };
				if (n)
					out[n].code = (out[n - 1].code + 1) << (length - out[n - 1].length);
				n++;
			}
	return n;
}

static bool huff_segment(const struct model_code *codes, unsigned ncodes, const uint8_t *bytes, size_t nbytes, size_t n, uint8_t *words)
{
	struct model_bits bits = { bytes, 8 * nbytes, 0 };

	for (size_t i = 0; i < n; i++) {
		unsigned length = 0, code = 0, found = ncodes;
		while (found == ncodes) {
			code = code << 1 | next_bit(&bits), length++;
			for (unsigned k = 0; k < ncodes && found == ncodes; k++)
				if (codes[k].length == length && codes[k].code == code)
					found = k;
		}
		words[i] = (uint8_t)codes[found].symbol;
	}
	if (bits.at > bits.nbits || bits.nbits - bits.at >= 8)
		return false;
	while (bits.at < bits.nbits)
		if (next_bit(&bits))
			return false;
	return true;
}

static bool model_huff(const struct literal *l, const struct literal_call *call, uint8_t *words)
{
	struct cursor c = { call->item, call->item + call->item_nbytes, false };
	const unsigned nsegments = call->n < 256 ? 1 : 8;
	const size_t q = (call->n + nsegments - 1) / nsegments;
	struct model_code codes[256];
	const unsigned ncodes = huff_codes(l->body.data, codes);
	uint64_t nbytes[8];

	for (unsigned s = 0; s + 1 < nsegments; s++)
		nbytes[s] = cursor_varint(&c);
	for (unsigned s = 0; s < nsegments && !c.bad; s++) {
		const size_t from = MIN(s * q, call->n), to = MIN(from + q, call->n);
		if (s + 1 == nsegments)
			nbytes[s] = cursor_left(&c);
		const uint8_t *bytes = cursor_bytes(&c, nbytes[s]);
		if (c.bad || !huff_segment(codes, ncodes, bytes, nbytes[s], to - from, words + from))
			return false;
	}
	return !c.bad;
}

/* The number of a word's class pair. */
static unsigned pair_of(const struct literal *l, const struct literal_call *call, size_t i)
{
	const unsigned r = l->kr > 1 && call->row_class ? call->row_class[(call->first + i / 128 * 128) / call->row_words] : 0;
	const unsigned c = l->kc > 1 && call->col_class ? call->col_class[(call->first + i) % call->row_words] : 0;

	return r * l->kc + c;
}

struct model_rans {
	unsigned nb, base, escape;
	const uint8_t *map, *tail, *buckets;
};

/* One decoding step: the symbol's index, by counting positions. */
static unsigned rans_step(const struct model_rans *t, const uint8_t *bucket, unsigned *x)
{
	const unsigned c = 256 / t->nb, lo = *x & 255, hi = *x >> 8, b = lo / c, at = lo % c;
	const unsigned j = at < bucket[b] % c ? b : bucket[b] / c;
	unsigned freq = bucket[j] % c, rank = at;

	for (unsigned k = 0; k < t->nb; k++)
		if (bucket[k] / c == j) {
			if (k == b && j == bucket[b] / c && at >= bucket[b] % c)
				rank = freq + (at - bucket[b] % c);
			freq += c - bucket[k] % c;
		}
	*x = freq * hi + rank;
	return j;
}

static bool model_rans(const struct literal *l, const struct literal_call *call, void *words, uint8_t *carry)
{
	const uint8_t *body = l->body.data;
	const unsigned nb = 1u << body[0], size = word_nbytes(l->width);
	const struct model_rans t = { nb, load_u16(body + 4), body[6], body + 8, body + 8 + nb, body + 8 + nb + 15 };
	const uint64_t mask = mask_bits(l->width);
	struct cursor c = { call->item, call->item + call->item_nbytes, false };
	const uint64_t nescapes = cursor_varint(&c), nliterals = cursor_varint(&c), npatches = cursor_varint(&c);
	uint64_t escapes = 0, literals = 0;
	bool good = true;

	if (c.bad || nescapes > call->n || nliterals > call->n || npatches > call->n)
		return false;
	const uint8_t *nibbles = cursor_bytes(&c, (nescapes + 1) / 2), *literal = cursor_bytes(&c, nliterals);
	const uint8_t *patches = cursor_bytes(&c, 6 * npatches), *states = cursor_bytes(&c, 256);
	unsigned x[128];
	if (c.bad || (nescapes % 2 && nibbles[nescapes / 2] >> 4))
		return false;
	for (unsigned k = 0; k < 128; k++)
		x[k] = states[k] | (unsigned)states[128 + k] << 8;
	for (size_t i = 0; i < call->n; i++) {
		const unsigned j = rans_step(&t, t.buckets + pair_of(l, call, i) * nb, &x[i % 128]);
		if (x[i % 128] < 256)
			x[i % 128] = x[i % 128] << 8 | cursor_u8(&c);
		unsigned byte = t.map[j];
		if (j == t.escape) {
			if (escapes == nescapes)
				return false;
			const unsigned v = nibbles[escapes / 2] >> escapes % 2 * 4 & 15;
			escapes++;
			if (v == 15 && literals == nliterals)
				return false;
			byte = v < 15 ? t.tail[v] : literal[literals++];
		}
		set_word(words, size, i, (t.base + byte) & mask);
	}
	for (uint64_t p = 0, last = 0; p < npatches; p++) {
		const uint32_t at = load_u32(patches + 6 * p);
		if (at >= call->n || (p && at <= last) || load_u16(patches + 6 * p + 4) > mask)
			return false;
		set_word(words, size, at, load_u16(patches + 6 * p + 4));
		last = at;
	}
	for (unsigned k = 0; k < 128; k++) {
		good = good && x[k] >> 8 == 1 && (call->carry || x[k] == 256);
		carry[k] = (uint8_t)x[k];
	}
	return good && !c.bad && cursor_left(&c) == 0 && escapes == nescapes && literals == nliterals;
}

/* Frequencies of all class pairs; the values of the symbols. */
static void wide_table(const struct literal *l, unsigned nsym, unsigned escape, uint16_t *value, unsigned *freq)
{
	struct cursor c = { l->body.data + 5, l->body.data + l->body.nbytes, false };

	for (unsigned j = 0; j < nsym - escape; j++)
		value[j] = (uint16_t)(cursor_varint(&c) + (j ? value[j - 1] + 1u : 0));
	struct model_bits bits = { c.at, 8 * cursor_left(&c), 0 };
	for (unsigned i = 0; i < l->kr * l->kc * nsym; i++) {
		const unsigned k = next_bits(&bits, 4);
		freq[i] = k ? (1u << (k - 1)) + next_bits(&bits, k - 1) : 0;
	}
}

static bool model_wide(const struct literal *l, const struct literal_call *call, void *words, uint8_t *carry)
{
	const unsigned escape = l->body.data[3], nsym = l->body.data[4] + 1u, size = word_nbytes(l->width), literal_nbytes = (l->width + 7) / 8;
	uint16_t value[256];
	unsigned freq[KN_MAX_ROWS * KN_MAX_COLS * 256];
	struct cursor c = { call->item, call->item + call->item_nbytes, false };
	const uint64_t nliterals = cursor_varint(&c);
	uint64_t literals = 0;
	bool good = true;

	wide_table(l, nsym, escape, value, freq);
	if (c.bad || nliterals > call->n)
		return false;
	const uint8_t *literal = cursor_bytes(&c, nliterals * literal_nbytes), *states = cursor_bytes(&c, 256);
	uint32_t x[64];
	if (c.bad)
		return false;
	memcpy(x, states, sizeof(x));
	for (size_t i = 0; i < call->n; i++) {
		const unsigned *f = freq + pair_of(l, call, i) * nsym, slot = x[i % 64] & 4095;
		unsigned j = 0, cum = 0;
		while (slot >= cum + f[j])
			cum += f[j++];
		x[i % 64] = f[j] * (x[i % 64] >> 12) + slot - cum;
		if (x[i % 64] < 65536) {
			x[i % 64] = x[i % 64] << 16 | cursor_u8(&c);
			x[i % 64] |= (uint32_t)cursor_u8(&c) << 8;
		}
		unsigned word = escape && j == nsym - 1 ? 0 : value[j];
		if (escape && j == nsym - 1) {
			if (literals == nliterals)
				return false;
			memcpy(&word, literal + literals++ * literal_nbytes, literal_nbytes);
			good = good && word <= mask_bits(l->width);
		}
		set_word(words, size, i, word);
	}
	for (unsigned k = 0; k < 64; k++) {
		good = good && x[k] >> 16 == 1 && (call->carry || x[k] == 65536);
		carry[2 * k] = (uint8_t)x[k], carry[2 * k + 1] = (uint8_t)(x[k] >> 8);
	}
	return good && !c.bad && cursor_left(&c) == 0 && literals == nliterals;
}

bool model_literal(const struct literal *literal, const struct literal_call *call, void *words, uint8_t carry[BC_CARRY_NBYTES])
{
	switch (literal->op) {
	case OP_LIT_HUFF: return model_huff(literal, call, words);
	case OP_LIT_RANS: return model_rans(literal, call, words, carry);
	default: return model_wide(literal, call, words, carry);
	}
}

/* model_literal.c: lit.huff, lit.rans, lit.wide and lit.alias straight from docs/FORMAT.md, 5.3, 6 and 7 (model_literal.h).
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

/* A class pair of lit.alias, drawn as the list of all positions: whose each is, and which of its symbol's. */
struct model_positions {
	unsigned freq[256];             /* by symbol */
	uint8_t symbol[4096];
	uint16_t rank[4096];
};

/* The symbols' buckets, in their order; then the rest of each. */
static void alias_positions(unsigned nb, unsigned nsym, struct model_positions *p)
{
	unsigned order[256], rest[256], threshold[256], alias[256], next[256] = { 0 }, done = 0;
	const unsigned size = 4096 / nb;
	bool full[256] = { false };

	for (unsigned j = 0; j < nb; j++) {
		unsigned at = j;
		for (; at && j < nsym && p->freq[order[at - 1]] < p->freq[j]; at--)
			order[at] = order[at - 1];
		order[at] = j;
	}
	for (unsigned b = 0; b < nb; b++)
		rest[b] = order[b] < nsym ? p->freq[order[b]] : 0, threshold[b] = size, alias[b] = b;
	while (done < nb) {
		unsigned b = 0, most = nb;
		while (b < nb && (full[b] || rest[b] >= size))
			b++;
		if (b == nb)
			break;
		for (unsigned l = 0; l < nb; l++)
			if (!full[l] && rest[l] >= size && (most == nb || rest[l] > rest[most]))
				most = l;
		threshold[b] = rest[b], alias[b] = most, full[b] = true, done++;
		rest[most] -= size - rest[b];
	}
	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned b = 0; b < nb; b++)
			for (unsigned t = turn ? threshold[b] : 0; t < (turn ? size : threshold[b]); t++) {
				const unsigned owner = order[turn ? alias[b] : b];
				p->symbol[b * size + t] = (uint8_t)owner, p->rank[b * size + t] = (uint16_t)next[owner]++;
			}
}

static void alias_table(const struct literal *l, unsigned nsym, unsigned escape, uint16_t *value, struct model_positions *p)
{
	struct cursor c = { l->body.data + 6, l->body.data + l->body.nbytes, false };

	for (unsigned j = 0; j < nsym - escape; j++)
		value[j] = (uint16_t)(cursor_varint(&c) + (j ? value[j - 1] + 1u : 0));
	struct model_bits bits = { c.at, 8 * cursor_left(&c), 0 };
	for (unsigned i = 0; i < l->kr * l->kc; i++) {
		for (unsigned j = 0, k = 0; j < nsym; j++) {
			unsigned zeros = 0;
			while (!next_bit(&bits))
				zeros++;
			k += zeros && next_bit(&bits) ? 0 - zeros : zeros;
			p[i].freq[j] = k ? (1u << (k - 1)) + next_bits(&bits, k - 1) : 0;
		}
		alias_positions(1u << l->body.data[0], nsym, &p[i]);
	}
}

static bool model_alias(const struct literal *l, const struct literal_call *call, void *words, uint8_t *carry)
{
	const unsigned escape = l->body.data[4], nsym = l->body.data[5] + 1u, size = word_nbytes(l->width), literal_nbytes = (l->width + 7) / 8;
	struct cursor c = { call->item, call->item + call->item_nbytes, false };
	const uint64_t nliterals = cursor_varint(&c);
	uint64_t literals = 0;
	uint16_t value[256];
	uint32_t x[128];
	bool good = true;

	if (c.bad || nliterals > call->n)
		return false;
	const uint8_t *literal = cursor_bytes(&c, nliterals * literal_nbytes), *flags = cursor_bytes(&c, 16), *low = cursor_bytes(&c, 192);
	const uint8_t *high = cursor_bytes(&c, 128);
	if (c.bad)
		return false;
	struct model_bits bits = { low, 8 * 192, 0 };
	for (unsigned k = 0; k < 128; k++) {
		x[k] = next_bits(&bits, 12);
		x[k] |= (uint32_t)high[k] << 12;
		x[k] |= (uint32_t)(flags[k / 8] >> k % 8 & 1 ? cursor_u8(&c) : 0) << 20;
	}
	struct model_positions *pair = calloc((size_t)l->kr * l->kc, sizeof(*pair));
	alias_table(l, nsym, escape, value, pair);
	for (size_t i = 0; i < call->n; i++) {
		const struct model_positions *p = &pair[pair_of(l, call, i)];
		const unsigned at = x[i % 128] & 4095, j = p->symbol[at];
		x[i % 128] = p->freq[j] * (x[i % 128] >> 12) + p->rank[at];
		if (x[i % 128] < 4096) {
			x[i % 128] = x[i % 128] << 16 | cursor_u8(&c);
			x[i % 128] |= (uint32_t)cursor_u8(&c) << 8;
		}
		unsigned word = escape && j == nsym - 1 ? 0 : value[j];
		if (escape && j == nsym - 1) {
			if (literals == nliterals) {
				free(pair);
				return false;
			}
			memcpy(&word, literal + literals++ * literal_nbytes, literal_nbytes);
			good = good && word <= mask_bits(l->width);
		}
		set_word(words, size, i, word);
	}
	free(pair);
	for (unsigned k = 0; k < 128; k++) {
		good = good && x[k] >= 4096 && x[k] < 4096 + 65536 && (call->carry || x[k] == 4096);
		carry[2 * k] = (uint8_t)(x[k] - 4096), carry[2 * k + 1] = (uint8_t)((x[k] - 4096) >> 8);
	}
	return good && !c.bad && cursor_left(&c) == 0 && literals == nliterals;
}

bool model_literal(const struct literal *literal, const struct literal_call *call, void *words, uint8_t carry[BC_CARRY_MAX_NBYTES])
{
	switch (literal->op) {
	case OP_LIT_HUFF: return model_huff(literal, call, words);
	case OP_LIT_RANS: return model_rans(literal, call, words, carry);
	case OP_LIT_ALIAS: return model_alias(literal, call, words, carry);
	default: return model_wide(literal, call, words, carry);
	}
}

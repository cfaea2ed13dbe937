/* enc_huff.c: the encoder of lit.huff. Returns 0 if a word has no code.
 *
 * Four codes are joined before they join the bits that wait, which whole bytes leave at once: no branch, and one addition of lengths in the chain from
 * four words to the next. Two segments side by side fill each other's waiting. SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"
#include "kernels/body.h"

enum { SEGMENTS = 8, ONE_SEGMENT_BELOW = 256, TOGETHER = 2 };

/* What is known of each byte in one load: the code, its length above it, and a mark if there is none. */
enum { LENGTH_SHIFT = 16, LENGTH_MASK = 15 };
#define NO_CODE 0x80000000u
static_assert((int)HUFF_BITS <= (int)LENGTH_MASK && 4 * HUFF_BITS + 7 <= 64, "four codes fit beside what waits for a byte's end");

struct segment {
	const uint8_t *word, *end;
	uint8_t *out;
	uint64_t bits;
	unsigned count;                 /* bits that wait: fewer than 8 between calls */
	uint32_t seen;                  /* all entries used */
};

static void make_codes(const struct kn_huff *t, uint32_t code[256])
{
	for (unsigned v = 0; v < 256; v++)
		code[v] = t->length[v] ? t->code[v] | (uint32_t)t->length[v] << LENGTH_SHIFT : NO_CODE;
}

static inline unsigned length_of(uint32_t code) { return code >> LENGTH_SHIFT & LENGTH_MASK; }
static inline uint64_t bits_of(uint32_t code) { return (uint16_t)code; }

static inline __attribute__((always_inline)) void put_bits(struct segment *s, uint64_t bits, unsigned count)
{
	s->bits |= bits << s->count;
	s->count += count;
	store_u64(s->out, s->bits);
	s->out += s->count / 8;
	s->bits >>= s->count & ~7u;     /* 56 at most */
	s->count %= 8;
}

static inline __attribute__((always_inline)) void put_four(struct segment *s, const uint32_t *code)
{
	const uint32_t word = load_u32(s->word);
	const uint32_t a = code[word & 255], b = code[word >> 8 & 255], c = code[word >> 16 & 255], d = code[word >> 24];
	const unsigned ab = length_of(a) + length_of(b), cd = length_of(c) + length_of(d);

	put_bits(s, bits_of(a) | bits_of(b) << length_of(a) | (bits_of(c) | bits_of(d) << length_of(c)) << ab, ab + cd);
	s->seen |= a | b | c | d;
	s->word += 4;
}

static void put_rest(struct segment *s, const uint32_t *code)
{
	while (s->end - s->word >= 4)
		put_four(s, code);
	for (; s->word < s->end; s->word++) {
		s->seen |= code[*s->word];
		put_bits(s, bits_of(code[*s->word]), length_of(code[*s->word]));
	}
	if (s->count)
		*s->out++ = (uint8_t)s->bits;
}

size_t KN(enc_huff)(const struct kn_enc_args *args)
{
	const unsigned nsegments = args->n < ONE_SEGMENT_BELOW ? 1 : SEGMENTS;
	const size_t q = ceil_div(args->n, nsegments), room = 2 * q + 8; /* a code has 12 bits at most; a store has 8 bytes */
	struct buffer head = { args->dst, 0, 10 * SEGMENTS, false };
	struct segment segment[SEGMENTS] = { 0 };
	uint32_t code[256], seen = 0;

	make_codes(&args->table->huff, code);
	for (unsigned s = 0; s < nsegments; s++) {
		const uint8_t *src = args->src;
		segment[s].word = src + MIN(s * q, args->n), segment[s].end = src + MIN((s + 1) * q, args->n), segment[s].out = args->scratch + s * room;
	}
	for (unsigned s = 0; s < nsegments; s++) {
		if (s % TOGETHER == 0 && s + 1 < nsegments) {
			struct segment first = segment[s], second = segment[s + 1];
			for (size_t left = (size_t)(MIN(first.end - first.word, second.end - second.word)) / 4; left; left--)
				put_four(&first, code), put_four(&second, code);
			segment[s] = first, segment[s + 1] = second;
		}
		put_rest(&segment[s], code);
		seen |= segment[s].seen;
		if (s + 1 < nsegments)
			buffer_put_varint(&head, (uint64_t)(segment[s].out - (args->scratch + s * room)));
	}
	if (seen & NO_CODE)
		return 0;
	uint8_t *dst = args->dst + head.nbytes;
	for (unsigned s = 0; s < nsegments; s++) {
		const uint8_t *from = args->scratch + s * room;
		const size_t nbytes = (size_t)(segment[s].out - from);
		memcpy(dst, from, nbytes);
		dst += nbytes;
	}
	return (size_t)(dst - args->dst);
}

/* test_fields.c: what the encoder's kernels take out of words, and pack, is what the definitions say, in every kernel set. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "synth/classes.h"
#include "tests/gen.h"

enum { WORDS = 331, OFFSET = 3 };       /* several vectors and a rest, at no aligned address */
static const size_t lengths[] = { 1, 7, 8, 15, 16, 31, 33, 64, 127, 128, WORDS };

/* Random words of `width` bits from OFFSET on. */
static void draw(uint8_t *at, unsigned width, uint64_t *state)
{
	for (size_t i = 0; i < WORDS; i++)
		set_word(at, word_nbytes(width), i, gen_random(state) & mask_bits(width));
}

/* Every field of every rotation of words of these widths: the bits by shifts of 64-bit numbers, and nothing behind the last word. */
Test(fields, are_those_of_the_definition)
{
	static const unsigned widths[] = { 5, 8, 15, 16, 23, 24, 31, 32, 64 };
	uint8_t in[8 * WORDS + OFFSET], out[8 * (WORDS + 1) + OFFSET];
	uint64_t state = 11;

	for (unsigned w = 0; w < ARRAY_LEN(widths); w++)
		for (unsigned round = 0; round < 200; round++) {
			const unsigned width = widths[w], shift = (unsigned)(gen_random(&state) % width), bits = 1 + (unsigned)(gen_random(&state) % (width - shift));
			const unsigned rotate = round % 2 ? (unsigned)(gen_random(&state) % width) : 0, size = word_nbytes(bits);
			const size_t n = lengths[round % ARRAY_LEN(lengths)];
			draw(in + OFFSET, width, &state);
			for (unsigned s = 0; kn_sets[s]; s++) {
				if (!kn_sets[s]->supported())
					continue;
				memset(out, 0xa5, sizeof(out));
				kn_sets[s]->take_field(in + OFFSET, n, width, rotate, shift, bits, out + OFFSET);
				for (size_t i = 0; i < n; i++) {
					const uint64_t v = get_word(in + OFFSET, word_nbytes(width), i);
					const uint64_t turned = (rotate ? v << rotate | v >> (width - rotate) : v) & mask_bits(width);
					cr_assert_eq(get_word(out + OFFSET, size, i), turned >> shift & mask_bits(bits), "%s: word %zu of %zu, %u bits from %u on of %u rotated by %u",
						     kn_sets[s]->name, i, n, bits, shift, width, rotate);
				}
				cr_assert_eq(out[OFFSET + n * size], 0xa5, "%s: beyond the last", kn_sets[s]->name);
			}
		}
}

/* Symbols of words in each of the views that types have, and in ones with sign and complement everywhere. */
Test(fields, symbols_are_those_of_the_definition)
{
	static const struct { unsigned width, shift, bits; } kinds[] = { { 16, 7, 8 }, { 16, 10, 5 }, { 32, 23, 8 }, { 8, 3, 4 }, { 8, 2, 5 }, { 8, 2, 6 } };
	uint8_t in[4 * WORDS + OFFSET], out[WORDS + 1 + OFFSET];
	uint64_t state = 12;

	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++)
		for (unsigned round = 0; round < 60; round++) {
			const struct kn_scale scale = { kinds[k].width, kinds[k].shift, kinds[k].bits, round & 1, round & 2, (uint8_t)(gen_random(&state) & mask_bits(kinds[k].bits)) };
			const size_t n = lengths[round % ARRAY_LEN(lengths)];
			draw(in + OFFSET, scale.width, &state);
			for (unsigned s = 0; kn_sets[s]; s++) {
				if (!kn_sets[s]->supported())
					continue;
				memset(out, 0xa5, sizeof(out));
				kn_sets[s]->class_symbols(&scale, in + OFFSET, n, out + OFFSET);
				for (size_t i = 0; i < n; i++) {
					const uint64_t v = get_word(in + OFFSET, scale.width / 8, i), negative = v >> (scale.width - 1);
					const int above = (int)((scale.complement && negative ? ~v : v) >> scale.shift & mask_bits(scale.bits)) - scale.base;
					const int expected = (above < 0 ? 0 : above > KN_SCALES - 1 ? KN_SCALES - 1 : above) + (scale.sign && negative ? KN_SCALES : 0);
					cr_assert_eq(out[OFFSET + i], expected, "%s: word %zu of %zu, width %u, base %u", kn_sets[s]->name, i, n, scale.width, scale.base);
				}
				cr_assert_eq(out[OFFSET + n], 0xa5, "%s: beyond the last", kn_sets[s]->name);
			}
		}
}

/* Words less a base, in every number of bits: bit k of packed word i is bit i * bits + k of the string. */
Test(fields, packed_words_are_those_of_the_definition)
{
	static const unsigned widths[] = { 3, 7, 8, 12, 16, 24, 31, 32, 48, 64 };
	uint8_t in[8 * WORDS + OFFSET], out[8 * WORDS + OFFSET + KN_PACK_PAD + 1];
	uint64_t state = 13;

	for (unsigned w = 0; w < ARRAY_LEN(widths); w++)
		for (unsigned bits = 0; bits <= widths[w]; bits++)
			for (unsigned round = 0; round < 4; round++) {
				const unsigned size = word_nbytes(widths[w]);
				const size_t n = lengths[(bits + round) % ARRAY_LEN(lengths)], nbytes = packed_nbytes(n, bits);
				const uint64_t base = round % 2 ? gen_random(&state) & mask_bits(widths[w]) : 0;
				draw(in + OFFSET, widths[w], &state);
				for (unsigned s = 0; kn_sets[s]; s++) {
					if (!kn_sets[s]->supported())
						continue;
					memset(out, 0xa5, sizeof(out));
					kn_sets[s]->pack_words(out + OFFSET, in + OFFSET, n, widths[w], base, bits);
					for (size_t i = 0; i < n * bits; i++) {
						const uint64_t word = get_word(in + OFFSET, size, i / bits) - base;
						cr_assert_eq(out[OFFSET + i / 8] >> i % 8 & 1, word >> i % bits & 1, "%s: bit %zu of %zu words in %u of %u bits", kn_sets[s]->name, i, n,
							     bits, widths[w]);
					}
					cr_assert_eq(out[OFFSET + nbytes + KN_PACK_PAD], 0xa5, "%s: beyond the room behind", kn_sets[s]->name);
				}
			}
}

/* Counts by class of words that lie anywhere in a tensor: those of one increment for each. Joint symbols of 16 column classes need more than 16 bits. */
Test(fields, counts_are_those_of_the_definition)
{
	static const struct { unsigned width, kr, kc; bool rows, cols; size_t n; } cases[] = {
		{ 8, 1, 1, false, false, 5000 }, { 9, 4, 4, true, true, 5000 }, { 9, 4, 4, true, false, 300 }, { 13, 2, 16, true, true, 40000 }, { 16, 1, 1, false, false, 999 },
	};
	enum { ROWS = 64, ROW_WORDS = 1024, FIRST = 5 * KN_GROUP };
	static uint8_t words[2 * ROWS * ROW_WORDS], row[ROWS], col[ROW_WORDS + KN_CLASS_PAD];
	uint64_t state = 14;

	for (unsigned k = 0; k < ARRAY_LEN(cases); k++) {
		const struct classes c = { .kr = (uint8_t)cases[k].kr, .kc = (uint8_t)cases[k].kc, .rows = ROWS, .row_words = ROW_WORDS, .row = row, .col = col };
		const size_t entries = (size_t)cases[k].kr * cases[k].kc << cases[k].width;
		uint32_t *counts = calloc(entries, sizeof(*counts)), *expected = calloc(entries, sizeof(*expected));
		cr_assert(counts && expected);
		for (size_t i = 0; i < ROWS; i++)
			row[i] = (uint8_t)(gen_random(&state) % cases[k].kr);
		for (size_t i = 0; i < ROW_WORDS + KN_CLASS_PAD; i++)
			col[i] = i < ROW_WORDS ? (uint8_t)(gen_random(&state) % cases[k].kc) : col[i - ROW_WORDS];
		for (size_t i = 0; i < cases[k].n; i++) {
			const uint64_t v = gen_random(&state) & gen_random(&state) & mask_bits(cases[k].width);
			set_word(words, word_nbytes(cases[k].width), i, v);
			const size_t r = cases[k].rows ? row[(FIRST + i) / ROW_WORDS] : 0, q = cases[k].cols ? col[(FIRST + i) % ROW_WORDS] : 0;
			expected[(r * (cases[k].cols ? cases[k].kc : 1) + q) << cases[k].width | v]++;
		}
		classes_count(&c, cases[k].rows, cases[k].cols, words, cases[k].width, cases[k].n, FIRST, counts);
		cr_expect_arr_eq(counts, expected, entries * sizeof(*counts), "case %u", k);
		free(counts), free(expected);
	}
}

/* train_huff.c: length-limited Huffman codes by package-merge (Larmore and Hirschberg, "A fast algorithm for optimal length-limited Huffman
 * codes", 1990). SPDX-License-Identifier: Apache-2.0 */
#include "synth/train.h"

enum { SYMBOLS = 256 };

/* Code lengths of at most HUFF_BITS for m >= 2 symbols in ascending order of count.
 *
 * Level by level, the list of leaves is merged with the pairs of the level before; going back, the first 2m - 2 items of the last
 * level are taken, and a leaf's code is as long as the number of levels it is taken on. */
static void package_merge(const uint64_t *count, unsigned m, uint8_t *length)
{
	uint64_t weight[2][2 * SYMBOLS];
	bool leaf[HUFF_BITS][2 * SYMBOLS];
	unsigned items = 0;

	for (unsigned level = 0; level < HUFF_BITS; level++) {
		const uint64_t *before = weight[(level + 1) & 1];
		uint64_t *now = weight[level & 1];
		const unsigned pairs = items / 2;
		unsigned a = 0, b = 0, k = 0;
		while (a < m || b < pairs) {
			const uint64_t pair = b < pairs ? before[2 * b] + before[2 * b + 1] : UINT64_MAX;
			leaf[level][k] = a < m && count[a] <= pair;
			now[k] = leaf[level][k] ? count[a++] : (b++, pair);
			k++;
		}
		items = k;
	}
	memset(length, 0, m);
	for (unsigned level = HUFF_BITS, take = 2 * m - 2; level-- > 0;) {
		unsigned leaves = 0, pairs = 0;
		for (unsigned k = 0; k < take; k++)
			if (leaf[level][k])
				length[leaves++]++;
			else
				pairs++;
		take = 2 * pairs;
	}
}

bool train_huff(unsigned width, const uint32_t *counts, struct buffer *body)
{
	uint64_t sorted[SYMBOLS];
	uint8_t symbol[SYMBOLS], sorted_length[SYMBOLS], length[SYMBOLS] = { 0 };
	unsigned m = 0;

	for (unsigned s = 0; s < 1u << width; s++) {
		unsigned at = m;
		if (!counts[s])
			continue;
		for (; at && sorted[at - 1] > counts[s]; at--)
			sorted[at] = sorted[at - 1], symbol[at] = symbol[at - 1];
		sorted[at] = counts[s], symbol[at] = (uint8_t)s, m++;
	}
	if (m < 2)
		return false;
	package_merge(sorted, m, sorted_length);
	unsigned first = SYMBOLS, last = 0;
	for (unsigned i = 0; i < m; i++) {
		length[symbol[i]] = sorted_length[i];
		first = MIN(first, symbol[i]), last = MAX(last, symbol[i]);
	}
	buffer_put_u8(body, (uint8_t)first);
	buffer_put_u8(body, (uint8_t)last);
	for (unsigned s = first; s <= last; s += 2)
		buffer_put_u8(body, (uint8_t)(length[s] | (s + 1 <= last ? length[s + 1] << 4 : 0)));
	return !body->failed;
}

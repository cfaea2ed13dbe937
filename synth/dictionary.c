/* dictionary.c: distinct words, sorted, and what stands where (dictionary.h). SPDX-License-Identifier: Apache-2.0 */
#include "synth/dictionary.h"

#include <stdlib.h>

/* Distinct words of a block, in a hash table of open addresses. slot[]: entry + 1. */
struct distinct {
	uint32_t mask, count, limit;
	uint32_t *slot;
	uint64_t *word;                 /* in order of appearance, then sorted */
	uint32_t *rank;                 /* of each, in order of appearance */
};

static void distinct_free(struct distinct *d)
{
	free(d->slot);
	free(d->word);
	free(d->rank);
	*d = (struct distinct){ 0 };
}

/* False: no memory, and nothing to free. */
static bool distinct_init(struct distinct *d, uint32_t limit)
{
	uint32_t slots = 64;

	while (slots < 2 * limit)
		slots *= 2;
	*d = (struct distinct){ .mask = slots - 1, .limit = limit, .slot = calloc(slots, sizeof(*d->slot)), .word = malloc((limit + 1) * sizeof(*d->word)),
				.rank = malloc((limit + 1) * sizeof(*d->rank)) };
	if (d->slot && d->word && d->rank)
		return true;
	distinct_free(d);
	return false;
}

static void clear_slots(struct distinct *d) { memset(d->slot, 0, (d->mask + 1) * sizeof(*d->slot)); }

static void distinct_clear(struct distinct *d)
{
	clear_slots(d);
	d->count = 0;
}

/* Where the word is, or is to be. */
static inline uint32_t *find(const struct distinct *d, uint64_t v)
{
	uint32_t at = (uint32_t)(v * 0x9e3779b97f4a7c15 >> 32) & d->mask;

	while (d->slot[at] && d->word[d->slot[at] - 1] != v)
		at = (at + 1) & d->mask;
	return &d->slot[at];
}

/* False beyond the limit. */
static bool add_words(struct distinct *d, const void *words, unsigned size, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t v = get_word(words, size, i);
		uint32_t *slot = find(d, v);
		if (*slot)
			continue;
		if (d->count == d->limit)
			return false;
		d->word[d->count++] = v;
		*slot = d->count;
	}
	return true;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Distinct words without and with the top bit. */
struct halves {
	uint32_t low, high;
};

static struct halves halves_of(const struct distinct *d, unsigned width)
{
	struct halves h = { 0, 0 };

	for (uint32_t i = 0; i < d->count; i++)
		h.high += d->word[i] >> (width - 1) & 1;
	h.low = d->count - h.high;
	return h;
}

/* The most that any block has. */
struct extent {
	struct halves half;
	uint32_t count;
};

static void extend(struct extent *most, const struct distinct *d, unsigned width)
{
	const struct halves h = halves_of(d, width);

	most->half.low = MAX(most->half.low, h.low), most->half.high = MAX(most->half.high, h.high);
	most->count = MAX(most->count, d->count);
}

/* The width of numbers below n, at least 1. */
static unsigned index_bits(uint32_t n)
{
	unsigned bits = 1;

	while (1u << bits < n)
		bits++;
	return bits;
}

/* Walks the blocks of a register; of each, *d holds the distinct words. False if they are too many. */
static bool next_block(struct distinct *d, struct words in, size_t block, size_t from)
{
	const unsigned size = word_nbytes(in.width);

	distinct_clear(d);
	return add_words(d, (const uint8_t *)in.ptr + from * size, size, MIN(block, in.n - from));
}

/* Gives the distinct words their places: sorted, those with the top bit from `middle` on (0: behind the others). */
static void sort_words(struct distinct *d, unsigned width, uint32_t middle)
{
	const uint32_t low = halves_of(d, width).low;

	qsort(d->word, d->count, sizeof(*d->word), by_value);
	clear_slots(d);
	for (uint32_t i = 0; i < d->count; i++) {
		*find(d, d->word[i]) = i + 1;
		d->rank[i] = i < low || !middle ? i : middle + (i - low);
	}
}

/* Writes the dictionary of a block, `entries` words, and its index. */
static void put_block(struct distinct *d, struct words in, size_t from, size_t n, size_t entries, uint8_t *dictionary, struct words_out *index)
{
	const unsigned size = word_nbytes(in.width), index_size = word_nbytes(index->width);
	const uint8_t *words = (const uint8_t *)in.ptr + from * size;
	uint64_t gap = 0;
	uint8_t *out = (uint8_t *)index->ptr + from * index_size;

	for (size_t e = 0, i = 0; e < entries; e++) {
		if (i < d->count && d->rank[i] == e)
			gap = d->word[i++];
		set_word(dictionary, size, e, gap);
	}
	for (size_t i = 0; i < n; i++)
		set_word(out, index_size, i, d->rank[*find(d, get_word(words, size, i)) - 1]);
}

bool invert_lookup(uint64_t imm, struct words in, struct words_out *arg)
{
	const size_t block = lookup_block(imm, in.n), nblocks = lookup_nblocks(imm, in.n);
	const uint32_t limit = 1u << arg[1].width, middle = limit / 2;
	struct distinct d;
	struct extent most = { { 0, 0 }, 0 };
	bool ok = distinct_init(&d, (uint32_t)MIN(limit, block));

	for (size_t b = 0; ok && b < nblocks; b++) {
		ok = next_block(&d, in, block, b * block);
		extend(&most, &d, in.width);
	}
	const bool apart = arg[1].width <= DICTIONARY_SMALL_BITS && most.half.low <= middle && most.half.high && most.half.high <= middle &&
			   (middle + most.half.high) * nblocks <= in.n;
	const size_t entries = apart ? middle + most.half.high : most.count;
	ok = ok && entries * nblocks <= in.n;
	for (size_t b = 0; ok && b < nblocks; b++) {
		if (nblocks > 1)
			ok = next_block(&d, in, block, b * block);
		sort_words(&d, in.width, apart ? middle : 0);
		put_block(&d, in, b * block, MIN(block, in.n - b * block), entries, (uint8_t *)arg[0].ptr + b * entries * word_nbytes(in.width), &arg[1]);
	}
	arg[0].n = entries * nblocks, arg[1].n = in.n;
	distinct_free(&d);
	return ok;
}

unsigned dictionary_bits(const void *words, uint64_t nwords, unsigned width, uint64_t chunk_words, uint64_t block)
{
	const unsigned size = word_nbytes(width);
	struct extent most = { { 0, 0 }, 0 };
	struct distinct d;
	bool ok = distinct_init(&d, (uint32_t)MIN(block ? block / 4 : chunk_words / 4, (uint64_t)1 << DICTIONARY_BITS));

	for (uint64_t from = 0, n; ok && from < nwords; from += n) {
		/* Blocks begin anew with each chunk. */
		const uint64_t end = MIN((from / chunk_words + 1) * chunk_words, nwords);
		n = MIN(block ? block : chunk_words, end - from);
		ok = next_block(&d, (struct words){ (const uint8_t *)words + from * size, n, width }, n, 0);
		extend(&most, &d, width);
	}
	distinct_free(&d);
	if (!ok)
		return 0;
	const unsigned total = index_bits(most.count), apart = index_bits(2 * MAX(most.half.low, most.half.high));
	return most.half.high && apart <= DICTIONARY_SMALL_BITS ? apart : total <= DICTIONARY_SMALL_BITS ? total : DICTIONARY_BITS;
}

/* Distinct words of 16 bits, in ascending order: what is seen is marked by value, which takes no hashing. False beyond the limit. */
static bool add_halves(struct distinct *d, const uint8_t *words, size_t n)
{
	uint8_t seen[1 << 16] = { 0 };
	uint32_t count = 0;

	for (size_t i = 0; i < n; i++)
		seen[load_u16(words + 2 * i)] = 1;
	for (unsigned v = 0; v < 1 << 16; v++)
		count += seen[v];
	if (count > d->limit)
		return false;
	for (unsigned v = 0; v < 1 << 16; v++)
		if (seen[v])
			d->word[d->count++] = v;
	return true;
}

bool dictionary_promises(const void *words, uint64_t nwords, unsigned width, uint64_t block)
{
	enum { PLACES = 4, LOOK = 2048, DENSE_LOOK = 1 << 15, MANY = 1 << 13 };
	const unsigned size = word_nbytes(width);
	const uint64_t look = MIN(block ? block : width <= 16 ? DENSE_LOOK : LOOK, nwords), step = block ? block : 1;
	const unsigned places = (unsigned)MAX(MIN(nwords / MAX(look, (uint64_t)1), (uint64_t)PLACES), (uint64_t)1), may_fail = block ? places / 4 : places / 2;
	unsigned bad = 0;
	struct distinct d;

	/* As many distinct words as a quarter of the possible ones between the smallest and the largest are no dictionary: a 16-bit float's fraction is
	 * used up by few words. */
	const uint64_t limit = block || width <= 16 ? look / 4 : look * 5 / 8;
	if (width < 16 || look < 16 || !distinct_init(&d, (uint32_t)limit))
		return false;
	for (unsigned p = 0; p < places && bad <= may_fail; p++) {
		const uint64_t at = (nwords - look) / places * p / step * step;
		distinct_clear(&d);
		const uint8_t *from = (const uint8_t *)words + at * size;
		if (!(width == 16 && look >= MANY ? add_halves(&d, from, look) : add_words(&d, from, size, look))) {
			bad++;
			continue;
		}
		uint64_t low[2] = { ~0ull, ~0ull }, high[2] = { 0, 0 }, span = 0, any = 0;
		for (uint32_t i = 0; i < d.count; i++) {
			any |= d.word[i];
			const unsigned top = d.word[i] >> (width - 1) & 1;
			if ((d.word[i] & mask_bits(width - 1)) == 0)
				continue; /* zero is far from everything */
			low[top] = MIN(low[top], d.word[i]), high[top] = MAX(high[top], d.word[i]);
		}
		for (unsigned top = 0; top < 2; top++)
			span += high[top] > low[top] ? high[top] - low[top] : 0;
		bad += d.count <= 1 || d.count >= (span >> __builtin_ctzll(any)) / 4; /* narrower floats made wide have zeros below */
	}
	distinct_free(&d);
	return bad <= may_fail;
}

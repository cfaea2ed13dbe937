/* classes.c: alternating k-means of rows and columns on code length.
 *
 * A row looks only at some columns and a column only at some rows: scale needs a few hundred words to show. Words are folded into 16 or 32 symbols once, the
 * scales of the commonest window, without or with the sign; costs of symbols in classes are small integers, so that sums are the same in every instruction set, and what a
 * symbol costs is estimated from a part of the words. SPDX-License-Identifier: Apache-2.0 */
#include "synth/classes.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/kernel.h"

enum { WINDOW = KN_SCALES, SYMBOLS = 2 * WINDOW, MAX_CLASSES = 16, COL_PAD = 256, LINE_WORDS = 64, COUNTED_WORDS = 4096, MOST_COST = 127, COST_UNITS = 32 };

/* One side of the alternation: `count` lines (rows or columns), each seen through `width` words. */
struct side {
	size_t count, width, stride;    /* stride: count, rounded up for kernels */
	uint8_t *symbol;                /* [position][line] */
	bool shared;                    /* symbol is the other side's */
	uint32_t *other;                /* the line of the other side at each position */
	uint8_t *other_label;           /* and its label */
	uint8_t *label;
	unsigned classes;
	bool sign;                      /* in the symbols */
	size_t pair_words;              /* that costs are estimated from, for each class pair */
	uint32_t *sum;                  /* [class][line]: costs */
};

/* The bits of a word that tell its scale. */
static inline unsigned scale_of(const struct class_view *view, uint64_t word)
{
	if (view->complement && word >> (view->width - 1) & 1)
		word = ~word;
	return word >> view->shift & mask_bits(view->bits);
}

/* The first of the window of scales that holds most words; those beyond it join its ends. */
static unsigned choose_base(const struct class_view *view, size_t n, size_t stride)
{
	const unsigned scales = 1u << view->bits;
	uint32_t count[256] = { 0 }, sum = 0, most;
	unsigned base = 0;

	for (size_t i = 0; i < n; i += stride)
		count[scale_of(view, get_word(view->words, word_nbytes(view->width), i))]++;
	for (unsigned e = 0; e < MIN(scales, (unsigned)WINDOW); e++)
		sum += count[e];
	most = sum;
	for (unsigned e = 1; e + WINDOW <= scales; e++) {
		sum += count[e + WINDOW - 1] - count[e - 1];
		if (sum > most)
			most = sum, base = e;
	}
	return base;
}

/* What folds words into symbols. */
struct folder {
	const struct kn_set *set;
	const uint8_t *words;
	struct kn_scale scale;
};

/* Symbols of n words from word `at` on. */
static void fold(const struct folder *f, size_t at, size_t n, uint8_t *out)
{
	f->set->class_symbols(&f->scale, f->words + at * word_nbytes(f->scale.width), n, out);
}

static bool alloc_side(struct side *s, size_t count, size_t width, unsigned classes, uint8_t *label)
{
	const size_t stride = (count + 63) & ~(size_t)63;

	*s = (struct side){ .count = count, .width = width, .stride = stride, .classes = classes, .label = label };
	s->other = malloc(width * sizeof(*s->other));
	s->other_label = malloc(width);
	s->sum = classes > 1 ? malloc(classes * stride * sizeof(*s->sum)) : NULL;
	return s->other && s->other_label && (s->sum || classes < 2);
}

static void free_side(struct side *s)
{
	if (!s->shared)
		free(s->symbol);
	free(s->other);
	free(s->other_label);
	free(s->sum);
}

/* First labels: equal parts by the mean of the symbols' scale. */
static void start_labels(struct side *s)
{
	uint32_t *sum = s->sum, bins[1024] = { 0 }, limit[MAX_CLASSES], low = UINT32_MAX, high = 0;

	memset(sum, 0, s->stride * sizeof(*sum));
	for (size_t i = 0; i < s->width; i++) {
		const uint8_t *symbol = s->symbol + i * s->stride;
		for (size_t l = 0; l < s->count; l++)
			sum[l] += symbol[l] & (WINDOW - 1);
	}
	for (size_t l = 0; l < s->count; l++)
		low = MIN(low, sum[l]), high = MAX(high, sum[l]);
	const float per_bin = high > low ? 1023.0f / (float)(high - low) : 0;
	for (size_t l = 0; l < s->count; l++)
		bins[(unsigned)((float)(sum[l] - low) * per_bin)]++;
	for (unsigned k = 0, b = 0, seen = 0; k < s->classes; k++) {
		while (b < 1023 && seen + bins[b] <= s->count * (k + 1) / s->classes)
			seen += bins[b++];
		limit[k] = b;
	}
	for (size_t l = 0; l < s->count; l++) {
		unsigned b = (unsigned)((float)(sum[l] - low) * per_bin), k = 0;
		while (k + 1 < s->classes && b > limit[k])
			k++;
		s->label[l] = (uint8_t)k;
	}
}

/* Adds up pairs of symbols, counted as pair[label][first][second], each symbol for itself. */
static void add_pairs(const uint32_t *pair, unsigned classes, uint32_t *count)
{
	for (unsigned k = 0; k < classes; k++, count += SYMBOLS)
		for (unsigned first = 0; first < SYMBOLS; first++, pair += SYMBOLS) {
			uint32_t sum = 0;
			for (unsigned second = 0; second < SYMBOLS; second++)
				sum += pair[second], count[second] += pair[second];
			count[first] += sum;
		}
}

/* Counts n indices in two tables by turns, so that increments of one counter, which equal neighbours want, do not wait for each other. */
static inline void count_indices(const uint16_t *index, size_t n, uint32_t *even, uint32_t *odd)
{
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		const uint64_t four = load_u64(&index[i]);
		even[four & 0xffff]++, odd[four >> 16 & 0xffff]++, even[four >> 32 & 0xffff]++, odd[four >> 48]++;
	}
	for (; i < n; i++)
		even[index[i]]++;
}

/* Counts the symbols of every line at two positions: one increment for both. */
static void count_two(const struct side *s, const uint8_t *first, const uint8_t *second, uint32_t (*pair)[MAX_CLASSES * SYMBOLS * SYMBOLS])
{
	enum { BLOCK = 64 };    /* lines, of which `stride` holds a multiple */
	uint16_t index[BLOCK];

	for (size_t l = 0; l < s->count; l += BLOCK) {
		const unsigned n = (unsigned)MIN(s->count - l, (size_t)BLOCK);
		for (unsigned i = 0; i < BLOCK; i++)
			index[i] = (uint16_t)(first[l + i] << 5 | second[l + i]);
		for (unsigned i = 0; i < n; i++)
			index[i] = (uint16_t)(index[i] | s->label[l + i] << 10);
		count_indices(index, n, pair[0], pair[1]);
	}
}

/* Counts of symbols by class of the position and class of the line: count[(other * classes + own) * SYMBOLS + symbol]. Positions are looked at
 * until there are pair_words for each class pair, spread evenly; two of the same class at a time. */
static void count_symbols(const struct side *s, unsigned other_classes, uint32_t *count)
{
	const size_t words = (size_t)s->classes * other_classes * s->pair_words, positions = MIN(s->width, MAX(words / s->count, (size_t)8 * other_classes));
	uint32_t pair[2][MAX_CLASSES * SYMBOLS * SYMBOLS];

	memset(count, 0, (size_t)other_classes * s->classes * SYMBOLS * sizeof(*count));
	for (unsigned o = 0; o < other_classes; o++, count += s->classes * SYMBOLS) {
		const uint8_t *waiting = NULL;
		for (unsigned t = 0; t < 2; t++)
			memset(pair[t], 0, (size_t)s->classes * SYMBOLS * SYMBOLS * sizeof(pair[t][0]));
		for (size_t p = 0; p < positions; p++) {
			const size_t i = p * s->width / positions;
			const uint8_t *symbol = s->symbol + i * s->stride;
			if (s->other_label[i] != o)
				continue;
			if (waiting)
				count_two(s, waiting, symbol, pair);
			waiting = waiting ? NULL : symbol;
		}
		for (unsigned t = 0; t < 2; t++)
			add_pairs(pair[t], s->classes, count);
		for (size_t l = 0; waiting && l < s->count; l++)
			count[s->label[l] * SYMBOLS + waiting[l]]++;
	}
}

/* Costs of symbols in each class beyond what they cost in the class in which they cost least, in 1 / COST_UNITS bits: laid out as the counts. */
static void symbol_costs(const uint32_t *count, unsigned other_classes, unsigned classes, uint8_t *cost)
{
	static const float smooth = 2.4f;
	float base[MAX_CLASSES][SYMBOLS] = { { 0 } }, length[MAX_CLASSES][SYMBOLS];

	for (unsigned k = 0; k < classes; k++) {
		float sum = 0;
		for (unsigned o = 0; o < other_classes; o++)
			for (unsigned y = 0; y < SYMBOLS; y++)
				base[k][y] += (float)count[(o * classes + k) * SYMBOLS + y], sum += (float)count[(o * classes + k) * SYMBOLS + y];
		for (unsigned y = 0; y < SYMBOLS; y++)
			base[k][y] = (base[k][y] + .01f) / (sum + .01f * SYMBOLS);
	}
	for (unsigned o = 0; o < other_classes; o++, count += classes * SYMBOLS, cost += classes * SYMBOLS) {
		for (unsigned k = 0; k < classes; k++) {
			float sum = smooth;
			for (unsigned y = 0; y < SYMBOLS; y++)
				sum += (float)count[k * SYMBOLS + y];
			for (unsigned y = 0; y < SYMBOLS; y++)
				length[k][y] = -log2f(((float)count[k * SYMBOLS + y] + smooth * base[k][y]) / sum);
		}
		for (unsigned y = 0; y < SYMBOLS; y++) {
			float least = length[0][y];
			for (unsigned k = 1; k < classes; k++)
				least = length[k][y] < least ? length[k][y] : least;
			for (unsigned k = 0; k < classes; k++) {
				const float more = (length[k][y] - least) * COST_UNITS + .5f;
				cost[k * SYMBOLS + y] = more < MOST_COST ? (uint8_t)more : MOST_COST;
			}
		}
	}
}

/* Relabels the lines of a side under the labels of the other. */
static void relabel(struct side *s, const uint8_t *other_label, unsigned other_classes, const struct kn_set *set)
{
	uint32_t count[MAX_CLASSES * MAX_CLASSES * SYMBOLS];
	uint8_t cost[MAX_CLASSES * MAX_CLASSES * SYMBOLS];

	if (s->classes < 2)
		return;
	for (size_t i = 0; i < s->width; i++)
		s->other_label[i] = other_label[s->other[i]];
	count_symbols(s, other_classes, count);
	symbol_costs(count, other_classes, s->classes, cost);
	memset(s->sum, 0, s->classes * s->stride * sizeof(*s->sum));
	set->class_costs(&(struct kn_class_args){ s->symbol, s->stride, s->width, s->other_label, s->classes, s->sign, cost, s->sum });
	for (size_t l = 0; l < s->count; l++) {
		unsigned best = 0;
		for (unsigned k = 1; k < s->classes; k++)
			best = s->sum[k * s->stride + l] < s->sum[best * s->stride + l] ? k : best;
		s->label[l] = (uint8_t)best;
	}
}

typedef uint8_t bytes16 __attribute__((vector_size(16)));
#define LOW_HALVES(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_HALVES(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* 16 rows of 16 bytes: four rounds of a perfect shuffle of all 256. */
static void transpose16(const uint8_t *in, size_t in_stride, uint8_t *out, size_t out_stride)
{
	bytes16 v[16], w[16];

	for (unsigned i = 0; i < 16; i++)
		memcpy(&v[i], in + i * in_stride, 16);
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 8; i++)
			w[2 * i] = LOW_HALVES(v[i], v[i + 8]), w[2 * i + 1] = HIGH_HALVES(v[i], v[i + 8]);
		memcpy(v, w, sizeof(v));
	}
	for (unsigned i = 0; i < 16; i++)
		memcpy(out + i * out_stride, &v[i], 16);
}

/* out[i * out_stride + r] = in[r * in_stride + i], by blocks that stay in the first-level cache. */
static void transpose(const uint8_t *in, size_t rows, size_t width, size_t in_stride, uint8_t *out, size_t out_stride)
{
	enum { BLOCK = 64 };

	for (size_t r0 = 0; r0 < rows; r0 += BLOCK)
		for (size_t i0 = 0; i0 < width; i0 += BLOCK)
			for (size_t r = r0; r < MIN(r0 + BLOCK, rows); r += 16)
				for (size_t i = i0; i < MIN(i0 + BLOCK, width); i += 16) {
					if (r + 16 <= rows && i + 16 <= width) {
						transpose16(in + r * in_stride + i, in_stride, out + i * out_stride + r, out_stride);
						continue;
					}
					for (size_t y = i; y < MIN(i + 16, width); y++)
						for (size_t x = r; x < MIN(r + 16, rows); x++)
							out[y * out_stride + x] = in[x * in_stride + y];
				}
}

/* Rows see blocks of LINE_WORDS columns spread over the row; columns see rows spread over the tensor. */
static bool gather(const struct folder *folder, struct side *rows, struct side *cols, size_t row_words)
{
	const size_t blocks = ceil_div(rows->width, LINE_WORDS), strip = (rows->width + 63) & ~(size_t)63;
	const bool all = rows->width == row_words && cols->width == rows->count;
	uint8_t *seen = NULL, *row = NULL;

	for (size_t i = 0; i < rows->width; i++) {
		size_t block = i / LINE_WORDS;
		size_t at = blocks > 1 ? block * (row_words - LINE_WORDS) / (blocks - 1) + i % LINE_WORDS : i;
		rows->other[i] = (uint32_t)MIN(at, row_words - 1);
	}
	cols->symbol = malloc(cols->width * cols->stride);
	if (!cols->symbol)
		return false;
	for (size_t i = 0; i < cols->width; i++) {
		cols->other[i] = (uint32_t)(i * rows->count / cols->width);
		fold(folder, cols->other[i] * row_words, row_words, cols->symbol + i * cols->stride);
		memset(cols->symbol + i * cols->stride + row_words, 0, cols->stride - row_words);
	}
	if (rows->classes < 2)
		return true;
	rows->symbol = calloc(rows->width, rows->stride);
	if (rows->symbol && !all)
		seen = malloc(rows->count * strip + row_words), row = seen ? seen + rows->count * strip : NULL;
	if (!rows->symbol || (!all && !seen))
		return false;
	const bool most = row_words <= 2 * rows->width; /* of a row is seen: it is folded as a whole */
	for (size_t r = 0; seen && r < rows->count; r++) {
		if (most)
			fold(folder, r * row_words, row_words, row);
		for (size_t i = 0, n; i < rows->width; i += n) {
			for (n = 1; i + n < rows->width && rows->other[i + n] == rows->other[i] + n; n++)
				;
			if (most)
				memcpy(seen + r * strip + i, row + rows->other[i], n);
			else
				fold(folder, r * row_words + rows->other[i], n, seen + r * strip + i);
		}
	}
	transpose(seen ? seen : cols->symbol, rows->count, rows->width, seen ? strip : cols->stride, rows->symbol, rows->stride);
	free(seen);
	return true;
}

bool classes_build(struct classes *out, const struct class_view *view, size_t rows, size_t row_words, unsigned kr, unsigned kc, size_t budget)
{
	struct side row = { 0 }, col = { 0 };
	const size_t effort = MAX(budget >> 20, 1), iterations = 3 + 2 * MIN(effort, 4u);
	const struct kn_set *set;
	bool ok;

	memset(out, 0, sizeof(*out));
	if (kn_choose(&set, NULL) != BRV_OK)
		return false;
	out->kr = (uint8_t)kr, out->kc = (uint8_t)kc, out->rows = rows, out->row_words = row_words;
	out->row = calloc(rows, 1);
	out->col = calloc(row_words + COL_PAD, 1);
	const unsigned base = choose_base(view, rows * row_words, MAX(1, rows * row_words / 65536));
	const struct folder folder = { set, view->words, { view->width, view->shift, view->bits, view->sign, view->complement, (uint8_t)base } };
	ok = out->row && out->col && alloc_side(&row, rows, MIN(row_words, MAX(LINE_WORDS, budget / rows / LINE_WORDS * LINE_WORDS)), kr, out->row) &&
	     alloc_side(&col, row_words, MIN(rows, MAX(LINE_WORDS, budget / row_words)), kc, out->col) && gather(&folder, &row, &col, row_words);
	row.sign = col.sign = view->sign;
	if (ok) {
		if (kr > 1)
			start_labels(&row);
		if (kc > 1)
			start_labels(&col);
	}
	row.pair_words = col.pair_words = effort * COUNTED_WORDS;
	for (size_t i = 0; ok && i < iterations; i++) {
		relabel(&row, out->col, kc, set);
		relabel(&col, out->row, kr, set);
	}
	free_side(&row);
	free_side(&col);
	for (size_t i = 0; ok && i < COL_PAD; i++)
		out->col[row_words + i] = out->col[i % row_words];
	if (!ok)
		classes_free(out);
	return ok;
}

void classes_free(struct classes *classes)
{
	free(classes->row);
	free(classes->col);
	memset(classes, 0, sizeof(*classes));
}

enum { COUNT_WORDS = KN_GROUP };
typedef uint16_t half __attribute__((aligned(1), may_alias)); /* words lie at any address */

/* counts[class << width | word] for 128 words of one row class or fewer, in two sub-tables by turns: equal words are often neighbours. */
#define COUNT_GROUP(T)                                                                                                          \
	do {                                                                                                                    \
		const T *v = (const T *)words + at;                                                                             \
		for (size_t i = 0; i < n; i++)                                                                                  \
			index[i] = (uint16_t)((col ? col[i] << width : 0) | v[i]);                                              \
	} while (0)

static void count_group(const void *words, unsigned width, size_t at, size_t n, const uint8_t *col, uint32_t *base, uint32_t *other)
{
	uint16_t index[COUNT_WORDS];

	if (width <= 8)
		COUNT_GROUP(uint8_t);
	else
		COUNT_GROUP(half);
	count_indices(index, n, base, other);
}

/* Where index and classes do not fit 16 bits. */
static void count_wide(const uint8_t *words, unsigned width, size_t at, size_t n, const uint8_t *col, uint32_t *base)
{
	for (size_t k = 0; k < n; k++)
		base[(size_t)col[k] << width | get_word(words, word_nbytes(width), at + k)]++;
}

void classes_count(const struct classes *c, bool use_rows, bool use_cols, const void *words, unsigned width, size_t n, size_t first,
		   uint32_t *counts)
{
	const unsigned kc = use_cols ? c->kc : 1;
	const size_t entries = (size_t)(use_rows ? c->kr : 1) * kc << width;
	/* Sub-tables pay if they are small against the words. */
	uint32_t *apart = entries <= n / 8 ? calloc(entries, sizeof(*apart)) : NULL;

	for (size_t at = 0; at < n; at += COUNT_WORDS) {
		const size_t some = MIN((size_t)COUNT_WORDS, n - at);
		const unsigned r = use_rows ? c->row[(first + at) / c->row_words] : 0;
		const uint8_t *col = use_cols ? c->col + (first + at) % c->row_words : NULL;
		const size_t base = (size_t)r * kc << width;
		if (col && kc << width > 1u << 16)
			count_wide(words, width, at, some, col, counts + base);
		else
			count_group(words, width, at, some, col, counts + base, (apart ? apart : counts) + base);
	}
	if (apart)
		for (size_t i = 0; i < entries; i++)
			counts[i] += apart[i];
	free(apart);
}

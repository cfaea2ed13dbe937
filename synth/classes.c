/* classes.c: alternating k-means of rows and columns on code length.
 *
 * A row looks only at some columns and a column only at some rows: scale needs a few hundred words to show. Symbols are
 * folded into bytes once; after that an iteration touches only counts. SPDX-License-Identifier: Apache-2.0 */
#include "synth/classes.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_SYMBOLS = 64, MAX_CLASSES = 8, ITERATIONS = 3, WINDOW = 32, COL_PAD = 256, LINE_WORDS = 64 };

/* One side of the alternation: `count` lines (rows or columns), each seen through `width` words. */
struct side {
	size_t count, width;
	uint8_t *symbol;                /* [line][position] */
	uint32_t *other;                /* the line of the other side at each position */
	uint8_t *label;
	unsigned classes;
	float *hist;                    /* [line][other class * symbols + symbol] */
};

/* Symbols of the top bits: sign and exponent, the exponent folded to a window of its 31 commonest values; 31 is everything else. */
static unsigned fold_table(const struct class_view *view, size_t n, size_t stride, uint8_t table[512])
{
	const unsigned exponents = 1u << view->exponent_bits, size = word_nbytes(view->width);
	uint32_t count[256] = { 0 };
	unsigned rank = 0;

	if (exponents <= WINDOW) {
		for (unsigned i = 0; i < 2 * exponents; i++)
			table[i] = (uint8_t)i;
		return 2 * exponents;
	}
	for (size_t i = 0; i < n; i += stride)
		count[get_word(view->words, size, i) >> view->shift & (exponents - 1)]++;
	memset(table, WINDOW - 1, 256);
	for (; rank < WINDOW - 1; rank++) {
		unsigned best = 0;
		for (unsigned e = 0; e < exponents; e++)
			if (count[e] > count[best])
				best = e;
		if (!count[best])
			break;
		table[best] = (uint8_t)rank, count[best] = 0;
	}
	for (unsigned e = 0; e < exponents; e++)
		table[exponents + e] = (uint8_t)(table[e] + WINDOW);
	return 2 * WINDOW;
}

static inline uint8_t fold(const struct class_view *view, const uint8_t *table, size_t i)
{
	switch (word_nbytes(view->width)) {
	case 1: return table[((const uint8_t *)view->words)[i] >> view->shift];
	case 2: return table[load_u16((const uint8_t *)view->words + 2 * i) >> view->shift];
	default: return table[load_u32((const uint8_t *)view->words + 4 * i) >> view->shift];
	}
}

static bool alloc_side(struct side *s, size_t count, size_t width, unsigned classes, size_t features, uint8_t *label)
{
	*s = (struct side){ .count = count, .width = width, .classes = classes, .label = label };
	s->symbol = malloc(count * width);
	s->other = malloc(width * sizeof(*s->other));
	s->hist = malloc(count * features * sizeof(float));
	return s->symbol && s->other && s->hist;
}

static void free_side(struct side *s)
{
	free(s->symbol);
	free(s->other);
	free(s->hist);
}

/* First labels: equal parts by the mean of the symbols' scale. */
static bool start_labels(struct side *s)
{
	float *mean = malloc(s->count * sizeof(float)), low = INFINITY, high = -INFINITY;
	uint32_t bins[1024] = { 0 }, limit[MAX_CLASSES];

	if (!mean)
		return false;
	for (size_t l = 0; l < s->count; l++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < s->width; i++)
			sum += s->symbol[l * s->width + i] & (WINDOW - 1);
		mean[l] = (float)sum;
		low = mean[l] < low ? mean[l] : low, high = mean[l] > high ? mean[l] : high;
	}
	const float per_bin = high > low ? 1023.0f / (high - low) : 0;
	for (size_t l = 0; l < s->count; l++)
		bins[(unsigned)((mean[l] - low) * per_bin)]++;
	for (unsigned k = 0, b = 0, seen = 0; k < s->classes; k++) {
		while (b < 1023 && seen + bins[b] <= s->count * (k + 1) / s->classes)
			seen += bins[b++];
		limit[k] = b;
	}
	for (size_t l = 0; l < s->count; l++) {
		unsigned b = (unsigned)((mean[l] - low) * per_bin), k = 0;
		while (k + 1 < s->classes && b > limit[k])
			k++;
		s->label[l] = (uint8_t)k;
	}
	free(mean);
	return true;
}

static float dot(const float *a, const float *b, size_t n)
{
	float part[16] = { 0 }, sum = 0;
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		for (unsigned k = 0; k < 16; k++)
			part[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		sum += a[i] * b[i];
	for (unsigned k = 0; k < 16; k++)
		sum += part[k];
	return sum;
}

/* Relabels the lines of a side under the labels of the other. */
static void relabel(struct side *s, const uint8_t *other_label, unsigned other_classes, unsigned symbols)
{
	const size_t features = (size_t)other_classes * symbols;
	static const float smooth = 2.4f;
	float total[MAX_CLASSES][MAX_CLASSES * MAX_SYMBOLS], length[MAX_CLASSES][MAX_CLASSES * MAX_SYMBOLS];
	float base[MAX_SYMBOLS] = { 0 }, base_sum = 0;

	if (s->classes < 2)
		return;
	memset(s->hist, 0, s->count * features * sizeof(float));
	memset(total, 0, sizeof(total));
	for (size_t l = 0; l < s->count; l++) {
		float *h = s->hist + l * features;
		const uint8_t *symbol = s->symbol + l * s->width;
		for (size_t i = 0; i < s->width; i++)
			h[other_label[s->other[i]] * symbols + symbol[i]] += 1;
		for (size_t f = 0; f < features; f++)
			total[s->label[l]][f] += h[f];
	}
	for (unsigned k = 0; k < s->classes; k++)
		for (size_t f = 0; f < features; f++)
			base[f % symbols] += total[k][f], base_sum += total[k][f];
	for (unsigned k = 0; k < s->classes; k++)
		for (unsigned c = 0; c < other_classes; c++) {
			float sum = smooth;
			for (unsigned y = 0; y < symbols; y++)
				sum += total[k][c * symbols + y];
			for (unsigned y = 0; y < symbols; y++) {
				float p = (total[k][c * symbols + y] + smooth * base[y] / base_sum) / sum;
				length[k][c * symbols + y] = -log2f(p > 1e-9f ? p : 1e-9f);
			}
		}
	for (size_t l = 0; l < s->count; l++) {
		float best = INFINITY;
		for (unsigned k = 0; k < s->classes; k++) {
			float bits = dot(s->hist + l * features, length[k], features);
			if (bits < best)
				best = bits, s->label[l] = (uint8_t)k;
		}
	}
}

/* Rows see blocks of LINE_WORDS columns spread over the row; columns see rows spread over the tensor. */
static void gather(const struct class_view *view, const uint8_t *table, struct side *rows, struct side *cols, size_t row_words)
{
	const size_t blocks = ceil_div(rows->width, LINE_WORDS);

	for (size_t i = 0; i < rows->width; i++) {
		size_t block = i / LINE_WORDS;
		size_t at = blocks > 1 ? block * (row_words - LINE_WORDS) / (blocks - 1) + i % LINE_WORDS : i;
		rows->other[i] = (uint32_t)MIN(at, row_words - 1);
	}
	for (size_t r = 0; r < rows->count; r++)
		for (size_t i = 0; i < rows->width; i++)
			rows->symbol[r * rows->width + i] = fold(view, table, r * row_words + rows->other[i]);
	for (size_t i = 0; i < cols->width; i++)
		cols->other[i] = (uint32_t)(i * rows->count / cols->width);
	for (size_t i = 0; i < cols->width; i++)
		for (size_t c = 0; c < row_words; c++)
			cols->symbol[c * cols->width + i] = fold(view, table, cols->other[i] * row_words + c);
}

bool classes_build(struct classes *out, const struct class_view *view, size_t rows, size_t row_words, unsigned kr, unsigned kc, size_t budget)
{
	struct side row = { 0 }, col = { 0 };
	uint8_t table[512];
	bool ok;

	memset(out, 0, sizeof(*out));
	out->kr = (uint8_t)kr, out->kc = (uint8_t)kc, out->rows = rows, out->row_words = row_words;
	out->row = calloc(rows, 1);
	out->col = calloc(row_words + COL_PAD, 1);
	const unsigned symbols = fold_table(view, rows * row_words, MAX(1, rows * row_words / 65536), table);
	ok = out->row && out->col &&
	     alloc_side(&row, rows, MIN(row_words, MAX(LINE_WORDS, budget / rows / LINE_WORDS * LINE_WORDS)), kr, kc * symbols, out->row) &&
	     alloc_side(&col, row_words, MIN(rows, MAX(LINE_WORDS, budget / row_words)), kc, kr * symbols, out->col);
	if (ok) {
		gather(view, table, &row, &col, row_words);
		ok = (kr < 2 || start_labels(&row)) && (kc < 2 || start_labels(&col));
	}
	for (unsigned i = 0; ok && i < ITERATIONS; i++) {
		relabel(&row, out->col, kc, symbols);
		relabel(&col, out->row, kr, symbols);
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

#define COUNT_GROUP(T)                                                                          \
	for (size_t i = at; i < end; i++)                                                       \
		base[(size_t)(col ? col[column + i - at] : 0) << width | ((const T *)words)[i]]++;

void classes_count(const struct classes *c, bool use_rows, bool use_cols, const void *words, unsigned width, size_t n, size_t first,
		   uint32_t *counts)
{
	const unsigned kc = use_cols ? c->kc : 1;
	const size_t group = use_rows || use_cols ? 128 : n;

	for (size_t at = 0; at < n; at += group) {
		const size_t end = MIN(at + group, n);
		const unsigned r = use_rows ? c->row[(first + at) / c->row_words] : 0;
		const size_t column = use_cols ? (first + at) % c->row_words : 0;
		const uint8_t *col = use_cols ? c->col : NULL;
		uint32_t *base = counts + ((size_t)r * kc << width);
		if (width <= 8) {
			COUNT_GROUP(uint8_t)
		} else {
			COUNT_GROUP(uint16_t)
		}
	}
}

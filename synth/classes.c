/* classes.c: alternating k-means of rows and columns on code length.
 *
 * A row looks only at some columns and a column only at some rows: scale needs a few hundred words to show. Symbols are
 * folded into bytes once; after that an iteration touches only counts. SPDX-License-Identifier: Apache-2.0 */
#include "synth/classes.h"

#include <math.h>
#include <stdlib.h>

#include "common/by_size.h"

enum { MAX_SYMBOLS = 64, MAX_CLASSES = 16, ITERATIONS = 3, WINDOW = 32, COL_PAD = 256, LINE_WORDS = 64, NOT_COUNTED = 65535 };

/* One side of the alternation: `count` lines (rows or columns), each seen through `width` words. Symbols lie as they are met in the tensor: a
 * row's side by side, those of columns in rows. */
struct side {
	size_t count, width;
	bool across;                    /* symbol[position][line], else symbol[line][position] */
	uint8_t *symbol;
	uint32_t *other;                /* the line of the other side at each position */
	uint16_t *bin;                  /* other class * symbols at each position: where in a line's counts its symbol is counted now, or NOT_COUNTED */
	struct move { uint32_t at; uint16_t from, to; } *move;  /* positions whose bin changes */
	uint8_t *label;
	unsigned classes;
	uint32_t *hist;                 /* [line][other class * symbols + symbol] */
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

/* Symbols of n words from word `at` on. */
static void fold(const struct class_view *view, const uint8_t *table, size_t at, size_t n, uint8_t *out)
{
	const unsigned shift = view->shift;

	BY_SIZE(T, word_nbytes(view->width), {
		const T *v = (const T *)view->words + at;
		for (size_t i = 0; i < n; i++)
			out[i] = table[v[i] >> shift];
	})
}

static bool alloc_side(struct side *s, size_t count, size_t width, bool across, unsigned classes, size_t features, uint8_t *label)
{
	*s = (struct side){ .count = count, .width = width, .across = across, .classes = classes, .label = label };
	s->symbol = malloc(count * width);
	s->other = malloc(width * sizeof(*s->other));
	s->move = malloc(width * sizeof(*s->move));
	s->bin = malloc(width * sizeof(*s->bin));
	s->hist = classes > 1 ? malloc(count * features * sizeof(*s->hist)) : NULL;
	if (s->bin)
		memset(s->bin, 255, width * sizeof(*s->bin));
	return s->symbol && s->other && s->move && s->bin && (s->hist || classes < 2);
}

static void free_side(struct side *s)
{
	free(s->symbol);
	free(s->other);
	free(s->move);
	free(s->bin);
	free(s->hist);
}

/* The symbols' scale summed up for each line. */
static void sum_lines(const struct side *s, uint32_t *sum)
{
	memset(sum, 0, s->count * sizeof(*sum));
	for (size_t k = 0; k < (s->across ? s->width : s->count); k++) {
		const uint8_t *symbol = s->symbol + k * (s->across ? s->count : s->width);
		if (s->across)
			for (size_t l = 0; l < s->count; l++)
				sum[l] += symbol[l] & (WINDOW - 1);
		else
			for (size_t i = 0; i < s->width; i++)
				sum[k] += symbol[i] & (WINDOW - 1);
	}
}

/* First labels: equal parts by the mean of the symbols' scale. */
static bool start_labels(struct side *s)
{
	float *mean = malloc(s->count * sizeof(float)), low = INFINITY, high = -INFINITY;
	uint32_t *sum = malloc(s->count * sizeof(*sum)), bins[1024] = { 0 }, limit[MAX_CLASSES];

	if (!mean || !sum) {
		free(mean);
		free(sum);
		return false;
	}
	sum_lines(s, sum);
	for (size_t l = 0; l < s->count; l++) {
		mean[l] = (float)sum[l];
		low = mean[l] < low ? mean[l] : low, high = mean[l] > high ? mean[l] : high;
	}
	free(sum);
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

/* Counts the symbols at n positions in their new bins, and no longer in their old ones if they had any. 4 rows, or a row of columns, at once,
 * so that increments of one counter do not wait for each other. */
static inline __attribute__((always_inline)) void move_counts(const struct side *s, size_t features, size_t n, const bool counted)
{
	enum { ROWS = 4, COLUMNS = 16 };
	size_t l = 0;

	for (; s->across && l < s->count; l += COLUMNS)
		for (size_t i = 0; i < n; i++) {
			const struct move m = s->move[i];
			const uint8_t *symbol = s->symbol + m.at * s->count;
			uint32_t *h = s->hist + l * features;
			for (size_t k = l; k < MIN(l + COLUMNS, s->count); k++, h += features)
				h[m.to + symbol[k]]++, h[counted ? m.from + symbol[k] : 0] -= counted;
		}
	for (; l < s->count; l += ROWS)
		for (size_t i = 0; i < n; i++) {
			const struct move m = s->move[i];
			const uint8_t *symbol = s->symbol + m.at;
			uint32_t *h = s->hist + l * features;
			for (size_t k = l; k < MIN(l + ROWS, s->count); k++, h += features)
				h[m.to + symbol[k * s->width]]++, h[counted ? m.from + symbol[k * s->width] : 0] -= counted;
		}
}

/* Brings the counts up to date with the labels of the other side: from iteration to iteration few of them change. */
static void count_lines(struct side *s, const uint8_t *other_label, unsigned symbols, size_t features)
{
	size_t changed = 0, n = 0;

	for (size_t i = 0; i < s->width; i++)
		changed += s->bin[i] != other_label[s->other[i]] * symbols;
	const bool all = 2 * changed >= s->width;
	for (size_t i = 0; i < s->width; i++) {
		const uint16_t to = (uint16_t)(other_label[s->other[i]] * symbols);
		if (all || s->bin[i] != to)
			s->move[n++] = (struct move){ (uint32_t)i, s->bin[i], to };
		s->bin[i] = to;
	}
	if (!all) {
		move_counts(s, features, n, true);
		return;
	}
	memset(s->hist, 0, s->count * features * sizeof(*s->hist));
	move_counts(s, features, n, false);
}

/* The sum of counts times code lengths, in one fixed order of additions. */
static float dot(const uint32_t *count, const float *length, size_t n)
{
	float part[16] = { 0 }, sum = 0;
	size_t i = 0;

	for (; i + 16 <= n; i += 16)
		for (unsigned k = 0; k < 16; k++)
			part[k] += (float)(int32_t)count[i + k] * length[i + k];
	for (; i < n; i++)
		sum += (float)(int32_t)count[i] * length[i];
	for (unsigned k = 0; k < 16; k++)
		sum += part[k];
	return sum;
}

/* Code lengths of the symbols in each class, from the counts of its lines. */
static void class_lengths(const struct side *s, unsigned other_classes, unsigned symbols, float length[MAX_CLASSES][MAX_CLASSES * MAX_SYMBOLS])
{
	const size_t features = (size_t)other_classes * symbols;
	static const float smooth = 2.4f;
	uint32_t total[MAX_CLASSES][MAX_CLASSES * MAX_SYMBOLS];
	float base[MAX_SYMBOLS] = { 0 }, base_sum = 0;

	memset(total, 0, sizeof(total));
	for (size_t l = 0; l < s->count; l++)
		for (size_t f = 0; f < features; f++)
			total[s->label[l]][f] += s->hist[l * features + f];
	for (unsigned k = 0; k < s->classes; k++)
		for (size_t f = 0; f < features; f++)
			base[f % symbols] += (float)total[k][f], base_sum += (float)total[k][f];
	for (unsigned k = 0; k < s->classes; k++)
		for (unsigned c = 0; c < other_classes; c++) {
			float sum = smooth;
			for (unsigned y = 0; y < symbols; y++)
				sum += (float)total[k][c * symbols + y];
			for (unsigned y = 0; y < symbols; y++) {
				float p = ((float)total[k][c * symbols + y] + smooth * base[y] / base_sum) / sum;
				length[k][c * symbols + y] = -log2f(p > 1e-9f ? p : 1e-9f);
			}
		}
}

/* Relabels the lines of a side under the labels of the other. */
static void relabel(struct side *s, const uint8_t *other_label, unsigned other_classes, unsigned symbols)
{
	const size_t features = (size_t)other_classes * symbols;
	float length[MAX_CLASSES][MAX_CLASSES * MAX_SYMBOLS];

	if (s->classes < 2)
		return;
	count_lines(s, other_label, symbols, features);
	class_lengths(s, other_classes, symbols, length);
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
	for (size_t r = 0; rows->classes > 1 && r < rows->count; r++)
		for (size_t i = 0, n; i < rows->width; i += n) {
			for (n = 1; i + n < rows->width && rows->other[i + n] == rows->other[i] + n; n++)
				;
			fold(view, table, r * row_words + rows->other[i], n, rows->symbol + r * rows->width + i);
		}
	for (size_t i = 0; i < cols->width; i++) {
		cols->other[i] = (uint32_t)(i * rows->count / cols->width);
		if (cols->classes > 1)
			fold(view, table, cols->other[i] * row_words, row_words, cols->symbol + i * row_words);
	}
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
	     alloc_side(&row, rows, MIN(row_words, MAX(LINE_WORDS, budget / rows / LINE_WORDS * LINE_WORDS)), false, kr, kc * symbols, out->row) &&
	     alloc_side(&col, row_words, MIN(rows, MAX(LINE_WORDS, budget / row_words)), true, kc, kr * symbols, out->col);
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

typedef uint16_t half __attribute__((aligned(1), may_alias)); /* words lie at any address */

/* counts[class << width | word] for 128 words of one row class or fewer, in four sub-tables by turns: equal words are often neighbours. */
#define COUNT_GROUP(T)                                                                                                          \
	do {                                                                                                                    \
		const T *v = (const T *)words + at;                                                                             \
		size_t k = 0;                                                                                                   \
		for (; k + 4 <= n; k += 4)                                                                                      \
			for (unsigned t = 0; t < 4; t++)                                                                        \
				base[t * stride + ((size_t)(col ? col[k + t] : 0) << width | v[k + t])]++;                      \
		for (; k < n; k++)                                                                                              \
			base[(size_t)(col ? col[k] : 0) << width | v[k]]++;                                                     \
	} while (0)

static void count_group(const void *words, unsigned width, size_t at, size_t n, const uint8_t *col, uint32_t *base, size_t stride)
{
	if (width <= 8)
		COUNT_GROUP(uint8_t);
	else
		COUNT_GROUP(half);
}

void classes_count(const struct classes *c, bool use_rows, bool use_cols, const void *words, unsigned width, size_t n, size_t first,
		   uint32_t *counts)
{
	const unsigned kc = use_cols ? c->kc : 1;
	const size_t group = use_rows || use_cols ? 128 : n, entries = (size_t)(use_rows ? c->kr : 1) * kc << width;
	/* Sub-tables pay if they are small against the words. */
	uint32_t *apart = entries <= n / 8 ? calloc(4 * entries, sizeof(*apart)) : NULL, *into = apart ? apart : counts;

	for (size_t at = 0; at < n; at += group) {
		const unsigned r = use_rows ? c->row[(first + at) / c->row_words] : 0;
		const uint8_t *col = use_cols ? c->col + (first + at) % c->row_words : NULL;
		count_group(words, width, at, MIN(group, n - at), col, into + ((size_t)r * kc << width), apart ? entries : 0);
	}
	for (size_t i = 0; apart && i < entries; i++)
		counts[i] += apart[i] + apart[entries + i] + apart[2 * entries + i] + apart[3 * entries + i];
	free(apart);
}

/* same.c: tensors and rows that were there before (same.h).
 *
 * Equal tensors are found by a hash of all their bytes. Equal rows, as an embedding with a longer vocabulary has them, by a hash of each row: the row in which
 * a chunk begins is looked up among the rows of earlier tensors with rows of the same size, and the rows after it are compared one by one. A chunk
 * is the same if all rows that it touches are. What is referred to must not be a ref itself. A hash of 128 bits is taken as identity; the
 * finished archive is compared with the input anyway. SPDX-License-Identifier: Apache-2.0 */
#include "synth/same.h"

#include <stdlib.h>

enum { MIN_NBYTES = 64, MIN_ROW_NBYTES = 64 };
#define MAX_ROWS (1ull << 20)   /* of all tensors together; later ones are not remembered */

struct seen {
	XXH128_hash_t whole, *row;
	size_t nrows;
	unsigned width;
	uint64_t row_words, chunk_words, nchunks;
	bool *is_ref;                   /* by chunk */
};

/* A row of a tensor, by its hash. */
struct place {
	uint32_t tensor, row;
};

struct same {
	struct seen *seen;              /* by tensor */
	size_t ntensors;
	uint32_t *whole;                /* open addressing by hash: tensor + 1 */
	struct place *place;            /* the same for rows: tensor + 1 */
	size_t wholes, places, rows;
};

void fingerprint_make(const struct source *source, struct fingerprint *out)
{
	const size_t size = word_nbytes(source->width), row_nbytes = source->row_words * size;

	*out = (struct fingerprint){ .whole = XXH3_128bits_withSeed(source->words, source->nwords * size, source->width) };
	if (source->rows < 2 || row_nbytes < MIN_ROW_NBYTES || source->rows > MAX_ROWS)
		return;
	out->row = malloc(source->rows * sizeof(*out->row));
	for (; out->row && out->nrows < source->rows; out->nrows++)
		out->row[out->nrows] = XXH3_128bits((const uint8_t *)source->words + out->nrows * row_nbytes, row_nbytes);
}

struct same *alloc_same(size_t ntensors)
{
	struct same *same = calloc(1, sizeof(*same));
	if (!same)
		return NULL;
	same->ntensors = ntensors;
	for (same->wholes = 64; same->wholes < 2 * ntensors; same->wholes *= 2)
		;
	same->seen = calloc(ntensors + 1, sizeof(*same->seen));
	same->whole = calloc(same->wholes, sizeof(*same->whole));
	if (same->seen && same->whole)
		return same;
	free_same(same);
	return NULL;
}

void free_same(struct same *same)
{
	if (!same)
		return;
	for (size_t i = 0; same->seen && i < same->ntensors; i++) {
		free(same->seen[i].row);
		free(same->seen[i].is_ref);
	}
	free(same->seen);
	free(same->whole);
	free(same->place);
	free(same);
}

/* The earlier tensor with the same bytes and width, or -1; adds this one if there is none. Tensors too small for it to pay are left out. */
static int64_t find_whole(struct same *same, size_t index, XXH128_hash_t hash)
{
	size_t at = hash.low64 & (same->wholes - 1);
	for (; same->whole[at]; at = (at + 1) & (same->wholes - 1))
		if (XXH128_isEqual(same->seen[same->whole[at] - 1].whole, hash))
			return (int64_t)same->whole[at] - 1;
	same->whole[at] = (uint32_t)index + 1;
	return -1;
}

static bool fits(const struct seen *a, const struct seen *b) { return a->width == b->width && a->row_words == b->row_words; }

/* The first row met with this hash, in a tensor like `like`; its slot if there is none. */
static struct place *find_row(const struct same *same, XXH128_hash_t hash, const struct seen *like)
{
	size_t at = hash.low64 & (same->places - 1);
	for (; same->place[at].tensor; at = (at + 1) & (same->places - 1)) {
		const struct seen *there = &same->seen[same->place[at].tensor - 1];
		if (fits(there, like) && XXH128_isEqual(there->row[same->place[at].row], hash))
			break;
	}
	return &same->place[at];
}

/* Makes room for n more rows; the table stays at most half full. */
static bool reserve_rows(struct same *same, size_t n)
{
	size_t places = MAX(same->places, (size_t)1024);
	while (places < 2 * (same->rows + n))
		places *= 2;
	if (places == same->places)
		return true;
	struct place *old = same->place, *place = calloc(places, sizeof(*place));
	const size_t old_places = same->places;
	if (!place)
		return false;
	same->place = place, same->places = places;
	for (size_t i = 0; i < old_places; i++) {
		if (!old[i].tensor)
			continue;
		const struct seen *s = &same->seen[old[i].tensor - 1];
		size_t at = s->row[old[i].row].low64 & (places - 1);
		while (place[at].tensor)
			at = (at + 1) & (places - 1);
		place[at] = old[i];
	}
	free(old);
	return true;
}

/* Whether words first..first + n - 1 of an earlier tensor are coded there and no refs. */
static bool is_coded(const struct seen *s, uint64_t first, uint64_t n)
{
	for (uint64_t k = first / s->chunk_words; k <= (first + n - 1) / s->chunk_words; k++)
		if (s->is_ref[k])
			return false;
	return true;
}

/* Where a chunk of `mine` begins in the earlier tensor, or SAME_NOTHING: its rows are those from row `at` of it on. */
static uint64_t compare_chunk(const struct seen *mine, uint64_t k, uint64_t nwords, const struct seen *there, uint64_t at)
{
	const uint64_t from = k * mine->chunk_words, n = MIN(mine->chunk_words, nwords - from);
	const uint64_t low = from / mine->row_words, high = (from + n - 1) / mine->row_words;
	if (at > there->nrows || high - low >= there->nrows - at)
		return SAME_NOTHING;
	for (uint64_t r = low; r <= high; r++)
		if (!XXH128_isEqual(mine->row[r], there->row[at + (r - low)]))
			return SAME_NOTHING;
	const uint64_t first = at * mine->row_words + from % mine->row_words;
	return is_coded(there, first, n) ? first : SAME_NOTHING;
}

/* The chunks of `mine` that tensor `t` has; how many. */
static uint64_t match_chunks(const struct same *same, const struct seen *mine, uint64_t nwords, size_t t, uint64_t *first)
{
	uint64_t found = 0, next = SAME_NOTHING;      /* the row at which the run of equal rows goes on */

	for (uint64_t k = 0; k < mine->nchunks; k++) {
		const uint64_t low = k * mine->chunk_words / mine->row_words;
		first[k] = next == SAME_NOTHING ? SAME_NOTHING : compare_chunk(mine, k, nwords, &same->seen[t], next + low);
		if (first[k] == SAME_NOTHING) {
			const struct place *place = find_row(same, mine->row[low], mine);
			if (place->tensor == t + 1)
				first[k] = compare_chunk(mine, k, nwords, &same->seen[t], place->row);
			next = first[k] == SAME_NOTHING ? SAME_NOTHING : place->row - low; /* wraps, and back */
		}
		found += first[k] != SAME_NOTHING;
	}
	return found;
}

/* Looks for the earlier tensor that has the rows in which most chunks begin, and takes what it has. */
static enum brv_status match_rows(const struct same *same, const struct seen *mine, uint64_t nwords, struct same_match *out)
{
	uint32_t best = 0, votes = 0;

	/* The majority vote of Boyer and Moore: a tensor with more than half of the chunks is found, others perhaps. */
	for (uint64_t k = 0; same->rows && k < mine->nchunks; k++) {
		const uint32_t tensor = find_row(same, mine->row[k * mine->chunk_words / mine->row_words], mine)->tensor;
		if (!tensor)
			continue;
		if (!votes)
			best = tensor;
		votes = tensor == best ? votes + 1 : votes - 1;
	}
	if (!best)
		return BRV_OK;
	out->first = malloc(mine->nchunks * sizeof(*out->first));
	if (!out->first)
		return BRV_MEMORY;
	if (match_chunks(same, mine, nwords, best - 1, out->first))
		out->tensor = best - 1;
	return BRV_OK;
}

/* Remembers the rows, the first of those that are equal. */
static void add_rows(struct same *same, size_t index)
{
	const struct seen *mine = &same->seen[index];
	for (size_t r = 0; r < mine->nrows; r++) {
		struct place *place = find_row(same, mine->row[r], mine);
		if (!place->tensor)
			*place = (struct place){ (uint32_t)index + 1, (uint32_t)r }, same->rows++;
	}
}

enum brv_status same_find(struct same *same, size_t index, const struct source *source, struct fingerprint *print, uint64_t chunk_words,
			  struct same_match *out)
{
	struct seen *mine = &same->seen[index];
	*out = (struct same_match){ .tensor = -1 };
	*mine = (struct seen){ .whole = print->whole, .width = source->width, .row_words = source->row_words, .chunk_words = chunk_words,
			       .nchunks = ceil_div(source->nwords, chunk_words) };
	if (source->nwords * word_nbytes(source->width) < MIN_NBYTES)
		return BRV_OK;
	out->tensor = find_whole(same, index, print->whole);
	out->whole = out->tensor >= 0;
	if (out->whole || !print->nrows || same->rows + print->nrows > MAX_ROWS || !reserve_rows(same, print->nrows))
		return BRV_OK;
	mine->row = print->row, mine->nrows = print->nrows;
	print->row = NULL, print->nrows = 0;
	mine->is_ref = calloc(mine->nchunks, sizeof(*mine->is_ref));
	if (!mine->is_ref)
		return BRV_MEMORY;
	TRY(match_rows(same, mine, source->nwords, out));
	for (uint64_t k = 0; out->tensor >= 0 && k < mine->nchunks; k++)
		mine->is_ref[k] = out->first[k] != SAME_NOTHING;
	add_rows(same, index);
	return BRV_OK;
}

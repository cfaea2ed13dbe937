/* parse_records.c: the records of tables, streams and chunks, each read from any state that the parser may be in before it.
 *
 * The bounded reader gives any values and ends anywhere (havoc_cursor.h); what memory is taken for is a choice of sizes. Arrays are as full as they may be
 * before, so that a step which writes one element more than there is room for leaves its memory. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/parse.c"

#include "tests/prove/havoc_cursor.h"

enum { N = 3, MOST = 2 };

static uint8_t memory[N];
static struct view view;
static struct error err;

/* A parser before N bytes, the first number of which is the only one known. */
static struct parser start(const struct havoc *first)
{
	view = (struct view){ 0 };
	havoc_start(memory, N, NULL, 0, first, 1);
	view.section[AR_TABL] = (struct span){ memory, N };
	return (struct parser){ .view = &view, .at = { memory, memory + N, false }, .limit = any_u64(), .err = &err };
}

/* An array with `count` of `capacity` elements in use; NULL for none, and if there is no memory. */
static void *array(struct grown *grown, size_t count, size_t capacity, size_t size)
{
	*grown = (struct grown){ count, capacity };
	return capacity ? malloc(capacity * size) : NULL;
}

static void tables(uint64_t low, uint64_t high)
{
	const struct havoc first = { low, high };
	struct parser p = start(&first);
	if (parse_tables(&p) == BRV_OK) {
		//@ assert view.ntables <= low <= 1;
	}
	free(view.table);
}

/* --- Parts of a stream's record: the count they begin with is one of low..high --- */

static void text(enum brv_status (*parse)(struct parser *, struct stream *), uint64_t low, uint64_t high, size_t used, size_t capacity)
{
	const struct havoc first = { low, high };
	struct stream stream = { 0 };
	struct parser p = start(&first);
	view.text = array(&p.text, used, capacity, 1);
	if (capacity && !view.text)
		return;
	if (parse(&p, &stream) == BRV_OK) {
		//@ assert stream.data_nbytes < 0x8000000000000000;
	}
	free(view.text);
}

static void name(uint64_t low, uint64_t high, size_t used, size_t capacity) { text(parse_name, low, high, used, capacity); }

static void dtype(uint64_t low, uint64_t high, size_t used, size_t capacity) { text(parse_dtype, low, high, used, capacity); }

static void shape(uint64_t low, uint64_t high, size_t used, size_t capacity)
{
	const struct havoc first = { low, high };
	struct stream stream = { 0 };
	struct parser p = start(&first);
	view.dim = array(&p.dims, used, capacity, sizeof *view.dim);
	if (capacity && !view.dim)
		return;
	if (parse_shape(&p, &stream) == BRV_OK) {
		//@ assert stream.dims_at == used && stream.ndim == low && p.dims.count == used + low <= p.dims.capacity;
	}
	free(view.dim);
}

static void variants(uint64_t low, uint64_t high, size_t used, size_t capacity)
{
	const struct havoc first = { low, high };
	struct stream stream = { .nwords = any_u64() };
	struct parser p = start(&first);
	view.nprograms = any_u32(0, BC_MAX_PROGRAMS);
	view.variant = array(&p.variants, used, capacity, sizeof *view.variant);
	if (capacity && !view.variant)
		return;
	if (parse_variants(&p, &stream) == BRV_OK) {
		//@ assert stream.variants_at == used && stream.nvariants == low && p.variants.count == used + low <= p.variants.capacity;
		for (unsigned i = 0; i < low; i++) {
			//@ assert view.variant[used + i] < 65535;
		}
	}
	free(view.variant);
}

/* A part for each count up to most, and for all above. */
static void each(void part(uint64_t low, uint64_t high, size_t used, size_t capacity), unsigned most, size_t used, size_t capacity)
{
	for (unsigned count = 0; count <= most; count++)
		part(count, count, used, capacity);
	part(most + 1, UINT64_MAX, used, capacity);
}

int main(void)
{
	for (unsigned count = 0; count <= N / MIN_TABLE_NBYTES; count++)
		tables(count, count);
	tables(N / MIN_TABLE_NBYTES + 1, UINT64_MAX);
	for (unsigned capacity = 0; capacity <= MOST; capacity++)
		for (unsigned used = 0; used <= capacity; used++) {
			each(name, 2 * N + 1, used, capacity);
			each(dtype, N, used, capacity);
			each(shape, N, used, capacity);
			for (unsigned count = 0; count <= MOST; count++)
				variants(count, count, used, capacity);
			variants(AR_MAX_VARIANTS + 1, UINT64_MAX, used, capacity);
		}
	return 0;
}

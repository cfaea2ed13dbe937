/* unpacking.c: a packed header of any bytes unpacked into memory of just its size, and marked text of any bytes measured.
 *
 * The reader stands for any: it gives any bytes and ends anywhere, as its own proof (cursor.c) leaves it open. SPDX-License-Identifier: Apache-2.0 */
#include "common/packed_header.c"

enum { MOST = 4, TEXT = 5 };

static const uint8_t memory_to_read[MOST];
static struct error err;

uint8_t cursor_u8(struct cursor *cursor)
{
	cursor->at = memory_to_read + any_u32(0, MOST), cursor->end = memory_to_read + MOST;
	cursor->bad = any_u32(0, 1);
	return (uint8_t)any_u32(0, 255);
}

static void unpack(unsigned size)
{
	uint8_t out[TEXT];
	struct cursor at;
	uint64_t nbytes;

	packed_size((struct span){ memory_to_read, MOST }, &at, &nbytes, &err);
	packed_unpack(&at, out + TEXT - size, size, &err);
}

static uint64_t shape[2];
static unsigned ndim;

static struct header_entry entry_of(void *context, uint64_t i)
{
	(void)context, (void)i;
	return (struct header_entry){ .dtype = "U8", .shape = shape, .ndim = ndim, .begin = any_u64(), .end = any_u64() };
}

static void tell_name(void *context, uint64_t i, uint64_t at, uint64_t nbytes)
{
	(void)context, (void)i, (void)at, (void)nbytes;
}

static void measure(unsigned n, uint64_t count)
{
	uint8_t text[MOST];
	const struct header_entries entries = { count, NULL, entry_of, tell_name };
	uint64_t nbytes;

	anything(text, sizeof text);
	anything(shape, sizeof shape);
	header_expand((struct span){ text + MOST - n, n }, &entries, NULL, &nbytes, &err);
}

int main(void)
{
	for (unsigned size = 0; size <= TEXT; size++)
		unpack(size);
	for (unsigned n = 0; n <= MOST; n++)
		for (ndim = 0; ndim <= 2; ndim++)
			for (uint64_t count = 0; count <= 2; count++)
				measure(n, count);
	return 0;
}

/* havoc_cursor.c: see havoc_cursor.h. SPDX-License-Identifier: Apache-2.0 */
/* All else of that file is as it is; two definitions of one function would leave the second out. */
#define cursor_u8 proved_cursor_u8
#define cursor_u64 proved_cursor_u64
#define cursor_varint proved_cursor_varint
#define cursor_zigzag proved_cursor_zigzag
#define cursor_bytes proved_cursor_bytes
#include "common/archive.c"
#undef cursor_u8
#undef cursor_u64
#undef cursor_varint
#undef cursor_zigzag
#undef cursor_bytes
#include "tests/prove/havoc_cursor.h"

struct list {
	const struct havoc *first;
	unsigned n, done;
};

static const uint8_t *begin;
static unsigned all;
static struct list bytes_first, numbers_first;

void havoc_start(const uint8_t *bytes, unsigned nbytes, const struct havoc *byte, unsigned nbyte, const struct havoc *number, unsigned nnumber)
{
	begin = bytes, all = nbytes;
	bytes_first = (struct list){ byte, nbyte, 0 }, numbers_first = (struct list){ number, nnumber, 0 };
}

static uint64_t next(struct list *list)
{
	if (list->done == list->n)
		return any_u64();
	const struct havoc *value = &list->first[list->done++];
	return Frama_C_unsigned_long_long_interval(value->low, value->high);
}

static void move(struct cursor *cursor)
{
	cursor->at = begin + any_u32(0, all);
	cursor->bad = any_u32(0, 1);
}

uint8_t cursor_u8(struct cursor *cursor)
{
	move(cursor);
	return (uint8_t)next(&bytes_first);
}

uint64_t cursor_varint(struct cursor *cursor)
{
	move(cursor);
	return next(&numbers_first);
}

int64_t cursor_zigzag(struct cursor *cursor)
{
	move(cursor);
	return Frama_C_long_long_interval(INT64_MIN, INT64_MAX);
}

/* Where no bytes at all begin is nobody's concern. */
const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t nbytes)
{
	move(cursor);
	if (nbytes > all || any_u32(0, 1))
		return NULL;
	return nbytes ? begin + any_u32(0, all - (unsigned)nbytes) : begin;
}

/* havoc_cursor.c: see havoc_cursor.h. SPDX-License-Identifier: Apache-2.0 */
#include "tests/prove/havoc_cursor.h"

static const uint8_t *begin;
static unsigned all, exact, done;

void havoc_start(const uint8_t *bytes, unsigned nbytes, unsigned first)
{
	begin = bytes, all = nbytes, exact = first, done = 0;
}

static void move(struct cursor *cursor)
{
	cursor->at = begin + any_u32(0, all);
	cursor->bad = any_u32(0, 1);
}

uint8_t cursor_u8(struct cursor *cursor)
{
	move(cursor);
	return done < exact ? begin[done++] : (uint8_t)any_u32(0, 255);
}

uint64_t cursor_varint(struct cursor *cursor)
{
	move(cursor);
	return any_u64();
}

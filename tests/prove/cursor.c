/* cursor.c: the bounded reader, over every size up to N of any bytes, which end where memory ends.
 *
 * Whatever is read, it stays a cursor between its begin and its end. A proof of one step is one of all: what a step leaves is a shorter cursor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"

enum { N = 12 };

static void step(unsigned size, int which)
{
	uint8_t memory[N];
	const uint8_t *bytes = memory + N - size, *got;
	uint64_t n;

	anything(memory, sizeof memory);
	struct cursor c = { bytes, memory + N, any_u32(0, 1) };
	switch (which) {
	case 0: cursor_u8(&c); break;
	case 1: cursor_u64(&c); break;
	case 2: cursor_varint(&c); break;
	case 3: cursor_zigzag(&c); break;
	default:
		n = any_u64();
		got = cursor_bytes(&c, n);
		if (got) {
			//@ assert n <= size && \valid_read(got + (0 .. n - 1));
		}
	}
	//@ assert bytes <= c.at && c.at <= c.end;
	//@ assert c.end == &memory[0] + N;
}

int main(void)
{
	for (unsigned size = 0; size <= N; size++)
		for (int which = 0; which < 5; which++)
			step(size, which);
	return 0;
}

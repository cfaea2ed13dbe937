/* name_places.c: the names of tensors: that what the index says lies in the header, and whether it is UTF-8, for headers of any bytes that end where memory ends.
 *
 * Every place and size in and beside a small header, and all beyond as one. SPDX-License-Identifier: Apache-2.0 */
#include "common/base.h"

static bool checked_add_signed(int64_t a, int64_t b, int64_t *out)
{
	if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
		return true;
	*out = a + b;
	return false;
}
#undef __builtin_add_overflow
#define __builtin_add_overflow checked_add_signed
#define GRND_NONBLOCK 1 /* the analyser's headers have it not */
#include "runtime/names.c"

enum { N = 5 };

static uint8_t header[N];

static void name(uint64_t previous, int64_t low, int64_t high, uint64_t least, uint64_t most)
{
	struct stream stream = { .name_in_header = true, .name_at = Frama_C_long_long_interval(low, high),
				 .name_nbytes = (uint32_t)Frama_C_unsigned_long_long_interval(least, most) };
	const struct view view = { 0 };

	anything(header, N);
	if (!place_name(&stream, N, &previous))
		return;
	//@ assert 0 <= stream.name_at && stream.name_at + stream.name_nbytes <= 5 && previous <= 5;
	const struct span text = stream_name(&view, header, &stream);
	is_utf8(text);
}

int main(void)
{
	for (uint64_t previous = 0; previous <= N; previous++)
		for (int64_t distance = -(N + 1); distance <= N + 1; distance++) {
			const int64_t low = distance < -N ? INT64_MIN : distance, high = distance > N ? INT64_MAX : distance;
			for (uint64_t nbytes = 0; nbytes <= N + 1; nbytes++)
				name(previous, low, high, nbytes, nbytes <= N ? nbytes : UINT32_MAX);
		}
	return 0;
}

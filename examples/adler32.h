/* adler32.h: the checksum that the examples print (RFC 1950; zlib.adler32 in Python). SPDX-License-Identifier: Apache-2.0 */
#ifndef ADLER32_H
#define ADLER32_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t adler32(const void *bytes, size_t nbytes)
{
	const unsigned char *at = bytes;
	uint32_t a = 1, b = 0;
	while (nbytes) {
		size_t part = nbytes < 5552 ? nbytes : 5552; /* the most for which b stays below 2^32 */
		for (nbytes -= part; part; part--)
			b += a += *at++;
		a %= 65521, b %= 65521;
	}
	return b << 16 | a;
}

#endif

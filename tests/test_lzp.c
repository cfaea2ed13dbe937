/* test_lzp.c: form 2 of sections (docs/FORMAT.md, 2.1): what goes in comes out, and what is cut short, longer or changed is no more than other bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/lzp.h"

/* Decodes from and into memory of just the size, so that a read or a write beyond is the sanitizer's. */
static enum brv_status decode(const uint8_t *coded, size_t ncoded, size_t nbytes, const uint8_t *expected)
{
	struct error err = { "" };
	uint8_t *in = malloc(ncoded + !ncoded), *out = malloc(nbytes);

	memcpy(in, coded, ncoded);
	const enum brv_status status = lzp_decode((struct span){ in, ncoded }, out, nbytes, &err);
	cr_assert(status == BRV_OK || err.text[0], "no reason given");
	if (status == BRV_OK && expected)
		cr_assert_eq(memcmp(out, expected, nbytes), 0, "other bytes");
	free(in);
	free(out);
	return status;
}

/* n bytes: equal, of a period, a period with noise, few values, any; low and high ones, so that carries run far. */
static uint8_t byte_of(unsigned kind, size_t i, uint64_t *random)
{
	*random = *random * 6364136223846793005 + 1442695040888963407;
	const uint8_t noise = (uint8_t)(*random >> 56);

	switch (kind) {
	case 0: return 0;
	case 1: return 255;
	case 2: return (uint8_t)(i % 19 * 7);
	case 3: return noise < 20 ? noise : (uint8_t)(i % 37 * 11);
	case 4: return noise & 3;
	case 5: return (uint8_t)(255 - (noise & 1));
	default: return noise;
	}
}

Test(lzp, what_goes_in_comes_out)
{
	static const size_t lengths[] = { 1, 2, 3, 4, 5, 17, 256, 1000, 70000 };

	for (unsigned kind = 0; kind < 7; kind++)
		for (unsigned l = 0; l < ARRAY_LEN(lengths); l++) {
			const size_t n = lengths[l];
			uint8_t *bytes = malloc(n);
			uint64_t random = kind;
			struct buffer coded = { 0 };
			for (size_t i = 0; i < n; i++)
				bytes[i] = byte_of(kind, i, &random);
			cr_assert(lzp_encode(bytes, n, &coded));
			cr_assert_eq(decode(coded.data, coded.nbytes, n, bytes), BRV_OK, "kind %u, %zu bytes", kind, n);
			cr_assert_lt(coded.nbytes, n + n / 8 + 32, "kind %u: %zu bytes for %zu", kind, coded.nbytes, n);
			if (kind < 3 && n >= 1000)
				cr_assert_lt(coded.nbytes * 8, n, "kind %u: %zu bytes for %zu", kind, coded.nbytes, n);
			free(bytes);
			buffer_free(&coded);
		}
}

Test(lzp, damage)
{
	enum { N = 600 };
	uint8_t bytes[N];
	uint64_t random = 1;
	struct buffer coded = { 0 };
	unsigned refused = 0;

	for (size_t i = 0; i < N; i++)
		bytes[i] = byte_of(3, i, &random);
	cr_assert(lzp_encode(bytes, N, &coded));
	for (size_t n = 0; n < coded.nbytes; n++)
		cr_assert_eq(decode(coded.data, n, N, NULL), BRV_DAMAGED, "%zu of %zu bytes", n, coded.nbytes);
	for (size_t i = 0; i < coded.nbytes; i++) {
		coded.data[i] ^= 0x55;
		refused += decode(coded.data, coded.nbytes, N, NULL) != BRV_OK;
		coded.data[i] ^= 0x55;
	}
	cr_assert_gt(refused, coded.nbytes / 2, "%u of %zu changes were seen", refused, coded.nbytes);
	buffer_put_u8(&coded, 0);
	cr_assert_eq(decode(coded.data, coded.nbytes, N, NULL), BRV_DAMAGED, "a byte left over");
	buffer_free(&coded);
}

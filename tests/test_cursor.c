/* test_cursor.c: the bounded reader, the growing writer, varints, element types and the prelude of archive.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common/archive.h"

static const uint64_t numbers[] = {
	0, 1, 127, 128, 255, 16383, 16384, UINT32_MAX, 1ull << 32, (1ull << 56) - 1, 1ull << 56, INT64_MAX, 1ull << 63, UINT64_MAX,
};

Test(cursor, varints_come_back)
{
	struct buffer buffer = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		buffer_put_varint(&buffer, numbers[i]);
		buffer_put_zigzag(&buffer, (int64_t)numbers[i]);
		buffer_put_zigzag(&buffer, (int64_t)(0 - numbers[i]));
	}
	struct cursor cursor = { buffer.data, buffer.data + buffer.nbytes, false };
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		cr_assert_eq(cursor_varint(&cursor), numbers[i]);
		cr_assert_eq(cursor_zigzag(&cursor), (int64_t)numbers[i]);
		cr_assert_eq(cursor_zigzag(&cursor), (int64_t)(0 - numbers[i]));
	}
	cr_assert(!cursor.bad && cursor_left(&cursor) == 0 && !buffer.failed);
	buffer_free(&buffer);
}

/* Bytes that must be read as `value`, or are bad. */
static void check_varint(const uint8_t *bytes, size_t nbytes, bool good, uint64_t value)
{
	uint8_t *copy = malloc(nbytes + !nbytes); /* its end is the sanitizer's */
	struct cursor cursor;

	if (nbytes)
		memcpy(copy, bytes, nbytes);
	cursor = (struct cursor){ copy, copy + nbytes, false };
	cr_assert_eq(cursor_varint(&cursor), good ? value : 0, "%zu bytes", nbytes);
	cr_assert_eq(cursor.bad, !good, "%zu bytes, first 0x%02x", nbytes, nbytes ? *bytes : 0u);
	free(copy);
}

#define VARINT(good, value, ...)                                                          \
	do {                                                                              \
		static const uint8_t bytes_[] = { __VA_ARGS__ };                          \
		check_varint(bytes_, sizeof(bytes_), good, value);                        \
	} while (0)

Test(cursor, varints_by_hand)
{
	VARINT(true, 0, 0);
	VARINT(true, 300, 0xac, 0x02);
	VARINT(true, UINT64_MAX, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
	VARINT(false, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02); /* 2^64 */
	VARINT(false, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00);
	VARINT(false, 0, 0x80, 0x00);           /* a last byte of 0 */
	VARINT(false, 0, 0xff, 0x80, 0x00);
	VARINT(false, 0, 0x80);                 /* cut off */
	check_varint(NULL, 0, false, 0);
}

Test(cursor, bad_stays_bad)
{
	const uint8_t bytes[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	struct cursor cursor = { bytes, bytes + sizeof(bytes), false };

	cr_assert_eq(cursor_u8(&cursor), 1);
	cr_assert_eq(cursor_u64(&cursor), 0x0908070605040302);
	cr_assert_eq(cursor_bytes(&cursor, 0), bytes + 9);
	cr_assert_eq(cursor_bytes(&cursor, 3), bytes + 9);
	cr_assert_eq(cursor_bytes(&cursor, 0), bytes + 12);
	cr_assert(!cursor.bad);
	cr_assert_eq(cursor_u8(&cursor), 0);
	cr_assert(cursor.bad);
	cursor.at = bytes;
	cr_assert(cursor_u8(&cursor) == 0 && cursor_u64(&cursor) == 0 && cursor_varint(&cursor) == 0 && cursor_zigzag(&cursor) == 0);
	cr_assert_null(cursor_bytes(&cursor, 1));

	cursor = (struct cursor){ bytes, bytes + 7, false };
	cr_assert_eq(cursor_u64(&cursor), 0, "7 bytes are no u64");
	cr_assert(cursor.bad);
	cursor = (struct cursor){ bytes, bytes + 7, false };
	cr_assert_null(cursor_bytes(&cursor, UINT64_MAX));
}

Test(cursor, buffer_fails_once_and_for_all)
{
	struct buffer buffer = { 0 };

	buffer_put(&buffer, "abc", 3);
	cr_assert_null(buffer_grow(&buffer, SIZE_MAX), "the size wraps");
	cr_assert(buffer.failed && buffer.nbytes == 3);
	buffer_put_u8(&buffer, 1);
	buffer_put_u64(&buffer, 1);
	cr_assert_eq(buffer.nbytes, 3);
	buffer_free(&buffer);
	cr_assert(!buffer.failed && !buffer.data && !buffer.nbytes);
	buffer_put(&buffer, NULL, 0);
	buffer_put_u64(&buffer, 0x0102030405060708);
	for (unsigned i = 0; i < 1000; i++)
		buffer_put_u8(&buffer, (uint8_t)i);
	cr_assert_eq(buffer.nbytes, 1008);
	cr_assert(buffer.data[0] == 8 && buffer.data[7] == 1 && buffer.data[1007] == (uint8_t)999);
	buffer_free(&buffer);
}

Test(cursor, element_types)
{
	for (unsigned code = 0; code < 256; code++) {
		const struct ar_dtype *dtype = dtype_by_code((uint8_t)code);
		cr_assert_eq(dtype == NULL, code > 21 && code != AR_DTYPE_OTHER, "code %u", code);
		if (!dtype)
			continue;
		cr_assert_eq(dtype->code, code);
		cr_assert_eq(dtype->bits == 0, code == AR_DTYPE_OTHER);
		cr_assert_eq(dtype_by_name(dtype->name, strlen(dtype->name)), code == AR_DTYPE_OTHER ? NULL : dtype, "%s", dtype->name);
	}
	cr_assert_eq(dtype_by_name("BF16", 4)->bits, 16);
	cr_assert_null(dtype_by_name("BF16", 3));
	cr_assert_null(dtype_by_name("BF16\0", 5));
	cr_assert_null(dtype_by_name("bf16", 4));
	cr_assert_null(dtype_by_name("", 0));
}

static void good_prelude(uint8_t bytes[AR_PRELUDE_NBYTES])
{
	const struct ar_prelude prelude = {
		.version = 1,
		.archive_nbytes = AR_PRELUDE_NBYTES + 10 + 20 + 30 + 40 + 1000, .payload_nbytes = 1000, .sections_sum = 0x1122334455667788,
		.section = { { AR_FORM_PLAIN, 10, 10 }, { AR_FORM_HUFF, 20, 70 }, { AR_FORM_PLAIN, 30, 30 }, { AR_FORM_PLAIN, 40, 40 } },
	};
	prelude_write(&prelude, bytes);
}

Test(prelude, comes_back)
{
	uint8_t bytes[AR_PRELUDE_NBYTES], again[AR_PRELUDE_NBYTES];
	struct ar_prelude prelude;
	struct error err;

	good_prelude(bytes);
	cr_assert_eq(memcmp(bytes, "\x93" "BRV\r\n\x1a\n\1\0\0\0\x90\0\0\0", 16), 0);
	cr_assert_eq(prelude_read(bytes, &prelude, &err), BRV_OK, "%s", err.text);
	cr_assert(prelude.payload_nbytes == 1000 && prelude.section[1].form == AR_FORM_HUFF && prelude.section[1].decoded_nbytes == 70);
	prelude_write(&prelude, again);
	cr_assert_eq(memcmp(bytes, again, sizeof(bytes)), 0);
}

Test(prelude, no_bit_may_change)
{
	for (unsigned bit = 0; bit < 8 * AR_PRELUDE_NBYTES; bit++) {
		uint8_t bytes[AR_PRELUDE_NBYTES];
		struct ar_prelude prelude;
		struct error err = { "" };
		good_prelude(bytes);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		const enum brv_status status = prelude_read(bytes, &prelude, &err);
		cr_assert_eq(status, bit / 16 == 4 ? BRV_VERSION : BRV_DAMAGED, "bit %u: %s", bit, status_text(status));
		cr_assert(*err.text);
	}
}

/* A change behind a right checksum: each rule by itself. */
static void check_prelude(unsigned at, unsigned size, uint64_t value, enum brv_status want)
{
	uint8_t bytes[AR_PRELUDE_NBYTES];
	struct ar_prelude prelude;
	struct error err = { "" };

	good_prelude(bytes);
	memcpy(bytes + at, &value, size);
	store_u64(bytes + 136, XXH3_64bits(bytes, 136));
	cr_assert_eq(prelude_read(bytes, &prelude, &err), want, "offset %u: %s", at, err.text);
}

Test(prelude, rules)
{
	check_prelude(10, 2, 0, BRV_OK);
	check_prelude(8, 2, 2, BRV_OK);
	check_prelude(8, 2, AR_VERSION, BRV_OK);
	check_prelude(8, 2, AR_VERSION + 1, BRV_VERSION);
	check_prelude(8, 2, 0, BRV_VERSION);
	check_prelude(10, 2, 1, BRV_VERSION);
	check_prelude(12, 4, 152, BRV_DAMAGED);
	check_prelude(16, 8, 1000, BRV_DAMAGED);
	check_prelude(24, 8, 999, BRV_DAMAGED);
	check_prelude(24, 8, UINT64_MAX - 100, BRV_DAMAGED); /* the sum wraps */
	check_prelude(32, 8, 2, BRV_VERSION);
	check_prelude(40, 8, 11, BRV_DAMAGED);
	check_prelude(48, 8, 11, BRV_DAMAGED);               /* plain, and two sizes */
	check_prelude(64, 8, AR_MAX_SECTION_NBYTES + 1, BRV_DAMAGED);
	check_prelude(72, 8, AR_MAX_SECTION_NBYTES + 1, BRV_DAMAGED);
	check_prelude(72, 8, AR_MAX_SECTION_NBYTES, BRV_OK);
}

Test(status, names_and_exit_codes)
{
	struct error err;

	cr_assert_eq(fail(&err, BRV_IO, "%s: %d", "disk", 7), BRV_IO);
	cr_assert_str_eq(err.text, "disk: 7");
	cr_assert_eq(fail(NULL, BRV_LIMIT, "nobody asks"), BRV_LIMIT);
	cr_assert_eq(fail(&err, BRV_IO, "%400d", 1), BRV_IO);
	cr_assert_eq(strlen(err.text), sizeof(err.text) - 1);
	cr_assert_eq(status_exit_code(BRV_OK), 0);
	cr_assert_eq(status_exit_code(BRV_VERSION), 4);
	cr_assert_eq(status_exit_code((enum brv_status)99), 1);
	cr_assert_str_eq(status_text((enum brv_status)99), "unknown status");
}

/* archive.c: the prelude, element types, and the bounded reader and growing writer of everything else in an archive.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"

#include <stdlib.h>
#include <xxhash.h>

const uint8_t ar_magic[8] = { 0x93, 'B', 'R', 'V', '\r', '\n', 0x1a, '\n' };

enum { AT_VERSION = 8, AT_FLAGS = 10, AT_PRELUDE = 12, AT_ARCHIVE = 16, AT_PAYLOAD = 24, AT_SECTIONS = 32, AT_SECTIONS_SUM = 128, AT_SUM = 136 };

enum brv_status prelude_read(const uint8_t bytes[AR_PRELUDE_NBYTES], struct ar_prelude *out, struct error *err)
{
	uint64_t sum = AR_PRELUDE_NBYTES;
	bool fits = true;

	if (memcmp(bytes, ar_magic, sizeof(ar_magic)))
		return fail(err, BRV_DAMAGED, "not a Brevis archive: it does not begin with the magic bytes");
	out->version = load_u16(bytes + AT_VERSION);
	if (out->version < 1 || out->version > AR_VERSION)
		return fail(err, BRV_VERSION, "format version %u: this program reads versions 1 to %d", out->version, AR_VERSION);
	if (load_u64(bytes + AT_SUM) != XXH3_64bits(bytes, AT_SUM))
		return fail(err, BRV_DAMAGED, "the prelude's checksum does not match");
	out->flags = load_u16(bytes + AT_FLAGS);
	if (out->flags & ~(out->version < 2 ? 0 : AR_FLAG_PACKED | AR_FLAG_ENTRIES) || out->flags == AR_FLAG_ENTRIES)
		return fail(err, BRV_VERSION, "unknown flags 0x%x in the prelude", out->flags);
	if (load_u32(bytes + AT_PRELUDE) != AR_PRELUDE_NBYTES)
		return fail(err, BRV_DAMAGED, "the prelude has %u bytes, not %d", load_u32(bytes + AT_PRELUDE), AR_PRELUDE_NBYTES);
	out->archive_nbytes = load_u64(bytes + AT_ARCHIVE), out->payload_nbytes = load_u64(bytes + AT_PAYLOAD);
	out->sections_sum = load_u64(bytes + AT_SECTIONS_SUM);
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		const uint8_t *at = bytes + AT_SECTIONS + 24 * i;
		const uint64_t form = load_u64(at), stored = load_u64(at + 8), decoded = load_u64(at + 16);
		if (form > (out->version < 2 ? AR_FORM_HUFF : AR_FORM_LZP))
			return fail(err, BRV_VERSION, "section %u has an unknown form %llu", i, (unsigned long long)form);
		if (stored > AR_MAX_SECTION_NBYTES || decoded > AR_MAX_SECTION_NBYTES)
			return fail(err, BRV_DAMAGED, "section %u is larger than a section can be", i);
		if (form == AR_FORM_LZP && (decoded == 0 || decoded > AR_MAX_LZP_NBYTES))
			return fail(err, BRV_DAMAGED, "section %u is empty, or larger than one of its form can be", i);
		if (form == AR_FORM_PLAIN && stored != decoded)
			return fail(err, BRV_DAMAGED, "section %u: stored and decoded size differ", i);
		out->section[i].form = form, out->section[i].stored_nbytes = stored, out->section[i].decoded_nbytes = decoded;
		sum += stored;
	}
	fits = add_u64(sum, out->payload_nbytes, &sum);
	if (!fits || sum != out->archive_nbytes)
		return fail(err, BRV_DAMAGED, "the sizes of the parts do not add up to the archive's size");
	return BRV_OK;
}

void prelude_write(const struct ar_prelude *prelude, uint8_t bytes[AR_PRELUDE_NBYTES])
{
	memset(bytes, 0, AR_PRELUDE_NBYTES);
	memcpy(bytes, ar_magic, sizeof(ar_magic));
	store_u16(bytes + AT_VERSION, prelude->version);
	store_u16(bytes + AT_FLAGS, prelude->flags);
	store_u32(bytes + AT_PRELUDE, AR_PRELUDE_NBYTES);
	store_u64(bytes + AT_ARCHIVE, prelude->archive_nbytes);
	store_u64(bytes + AT_PAYLOAD, prelude->payload_nbytes);
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		uint8_t *at = bytes + AT_SECTIONS + 24 * i;
		store_u64(at, prelude->section[i].form);
		store_u64(at + 8, prelude->section[i].stored_nbytes);
		store_u64(at + 16, prelude->section[i].decoded_nbytes);
	}
	store_u64(bytes + AT_SECTIONS_SUM, prelude->sections_sum);
	store_u64(bytes + AT_SUM, XXH3_64bits(bytes, AT_SUM));
}

static const struct ar_dtype dtypes[] = {
	{ 0, 8, "BOOL" },   { 1, 4, "F4" },     { 2, 6, "F6_E2M3" },      { 3, 6, "F6_E3M2" },      { 4, 8, "U8" },   { 5, 8, "I8" },
	{ 6, 8, "F8_E5M2" }, { 7, 8, "F8_E4M3" }, { 8, 8, "F8_E8M0" },    { 9, 8, "F8_E4M3FNUZ" },  { 10, 8, "F8_E5M2FNUZ" },
	{ 11, 16, "I16" },  { 12, 16, "U16" },  { 13, 16, "F16" },        { 14, 16, "BF16" },       { 15, 32, "I32" }, { 16, 32, "U32" },
	{ 17, 32, "F32" },  { 18, 64, "C64" },  { 19, 64, "F64" },        { 20, 64, "I64" },        { 21, 64, "U64" },
	{ AR_DTYPE_OTHER, 0, "other" },
};

const struct ar_dtype *dtype_by_code(uint8_t code)
{
	if (code == AR_DTYPE_OTHER)
		return &dtypes[ARRAY_LEN(dtypes) - 1];
	return code < ARRAY_LEN(dtypes) - 1 ? &dtypes[code] : NULL;
}

const struct ar_dtype *dtype_by_name(const char *name, size_t nbytes)
{
	for (size_t i = 0; i + 1 < ARRAY_LEN(dtypes); i++)
		if (strlen(dtypes[i].name) == nbytes && !memcmp(dtypes[i].name, name, nbytes))
			return &dtypes[i];
	return NULL;
}

uint8_t cursor_u8(struct cursor *cursor)
{
	const uint8_t *p = cursor_bytes(cursor, 1);
	return p ? *p : 0;
}

uint64_t cursor_u64(struct cursor *cursor)
{
	const uint8_t *p = cursor_bytes(cursor, 8);
	return p ? load_u64(p) : 0;
}

uint64_t cursor_varint(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && cursor->at < cursor->end && !cursor->bad; shift += 7) {
		const uint8_t byte = *cursor->at++;
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			if (byte == 0 && shift)
				break;
			return value;
		}
	}
	cursor->bad = true;
	return 0;
}

int64_t cursor_zigzag(struct cursor *cursor)
{
	const uint64_t z = cursor_varint(cursor);
	return (int64_t)(z >> 1 ^ (0 - (z & 1)));
}

const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t nbytes)
{
	const uint8_t *at = cursor->at;

	if (cursor->bad || nbytes > cursor_left(cursor)) {
		cursor->bad = true;
		return NULL;
	}
	cursor->at += nbytes;
	return at;
}

uint8_t *buffer_grow(struct buffer *buffer, size_t nbytes)
{
	if (buffer->failed)
		return NULL;
	if (buffer->capacity - buffer->nbytes < nbytes) {
		uint64_t capacity;
		uint8_t *data = NULL;
		if (add_u64(buffer->nbytes, nbytes, &capacity)) {
			capacity = MAX(capacity, buffer->capacity + buffer->capacity / 2 + 64);
			data = realloc(buffer->data, capacity);
		}
		if (!data) {
			buffer->failed = true;
			return NULL;
		}
		buffer->data = data, buffer->capacity = capacity;
	}
	uint8_t *at = buffer->data + buffer->nbytes;
	buffer->nbytes += nbytes;
	return at;
}

void buffer_put(struct buffer *buffer, const void *bytes, size_t nbytes)
{
	uint8_t *at = nbytes ? buffer_grow(buffer, nbytes) : NULL;
	if (at)
		memcpy(at, bytes, nbytes);
}

void buffer_put_u8(struct buffer *buffer, uint8_t value) { buffer_put(buffer, &value, 1); }
void buffer_put_u64(struct buffer *buffer, uint64_t value) { buffer_put(buffer, &value, 8); }

void buffer_put_varint(struct buffer *buffer, uint64_t value)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; value >= 128; value >>= 7)
		bytes[n++] = (uint8_t)(value | 128);
	bytes[n++] = (uint8_t)value;
	buffer_put(buffer, bytes, n);
}

void buffer_put_zigzag(struct buffer *buffer, int64_t value)
{
	buffer_put_varint(buffer, (uint64_t)value << 1 ^ -(uint64_t)(value < 0));
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){ 0 };
}

/* archive.h: what both sides of an archive agree on: constants of docs/FORMAT.md, element types, a bounded reader and a growing writer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_ARCHIVE_H
#define COMMON_ARCHIVE_H

#include "common/base.h"
#include "common/status.h"

enum {
	AR_VERSION = 2,             /* the newest that there is; every older one is read too */
	AR_PRELUDE_NBYTES = 144,
	AR_MAX_TABLES = 65535,
	AR_MAX_VARIANTS = 255,
	AR_MAX_NDIM = 65535,
	AR_MAX_NAME_NBYTES = 1 << 24,
	AR_MAX_HEADER_NBYTES = 100000000,
	AR_DTYPE_OTHER = 255,
};
#define AR_MAX_SECTION_NBYTES (1ull << 31)
#define AR_MAX_LZP_NBYTES     (1ull << 16)                    /* decoded, of a section of that form */
extern const uint8_t ar_magic[8];

enum ar_section { AR_CODE, AR_TABL, AR_INDX, AR_SUMS, AR_SECTIONS };
enum ar_form { AR_FORM_PLAIN = 0, AR_FORM_HUFF = 1, AR_FORM_LZP = 2 };
enum ar_flags { AR_FLAG_PACKED = 1, AR_FLAG_ENTRIES = 2 }; /* stream 0 is a packed header; one without names and entries */
enum ar_kind { AR_HEADER = 0, AR_CLASS = 1, AR_TENSOR = 2 };

struct ar_prelude {
	uint16_t version, flags;
	uint64_t archive_nbytes, payload_nbytes;
	struct {
		uint64_t form, stored_nbytes, decoded_nbytes;
	} section[AR_SECTIONS];
	uint64_t sections_sum;          /* XXH3 of the stored sections */
};

/* Checks everything that the prelude alone shows (FORMAT 2): magic, version, flags, its own checksum, that the sizes add up to archive_nbytes,
 * and the section size limit. BRV_VERSION or BRV_DAMAGED. */
enum brv_status prelude_read(const uint8_t bytes[AR_PRELUDE_NBYTES], struct ar_prelude *out, struct error *err);
void prelude_write(const struct ar_prelude *prelude, uint8_t bytes[AR_PRELUDE_NBYTES]);

/* Element types; NULL if unknown. bits 0 only for AR_DTYPE_OTHER. */
struct ar_dtype {
	uint8_t code, bits;
	const char *name;
};
const struct ar_dtype *dtype_by_code(uint8_t code);
const struct ar_dtype *dtype_by_name(const char *name, size_t nbytes);

/* A reader over bytes in memory that cannot leave them: after a read past the end, or a malformed varint, `bad` is set and everything reads as 0. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};
uint8_t cursor_u8(struct cursor *cursor);
uint64_t cursor_u64(struct cursor *cursor);                            /* 8 bytes */
uint64_t cursor_varint(struct cursor *cursor);
int64_t cursor_zigzag(struct cursor *cursor);
const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t nbytes);   /* NULL if there are not that many */
static inline size_t cursor_left(const struct cursor *cursor) { return (size_t)(cursor->end - cursor->at); }

/* Bytes that grow. All puts do nothing once `failed` is set (out of memory), so that a writer checks once, at the end. */
struct buffer {
	uint8_t *data;
	size_t nbytes, capacity;
	bool failed;
};
void buffer_put_u8(struct buffer *buffer, uint8_t value);
void buffer_put_u64(struct buffer *buffer, uint64_t value);
void buffer_put_varint(struct buffer *buffer, uint64_t value);
void buffer_put_zigzag(struct buffer *buffer, int64_t value);
void buffer_put(struct buffer *buffer, const void *bytes, size_t nbytes);
uint8_t *buffer_grow(struct buffer *buffer, size_t nbytes);            /* nbytes more at the end, uninitialised; NULL if out of memory */
void buffer_free(struct buffer *buffer);

#endif

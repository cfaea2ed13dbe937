/* packed_header.c: a packed header unpacked and its entries written out (packed_header.h). SPDX-License-Identifier: Apache-2.0 */
#include "common/packed_header.h"

enum { DIGIT_BITS = 6, MORE = 1 << DIGIT_BITS, DIGITS = 5 };

/* A number as digits of 6 bits, least significant first, bit 6 on all but the last. */
static uint64_t take_number(struct cursor *at)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < DIGITS; i++) {
		const uint8_t digit = cursor_u8(at);
		value |= (uint64_t)(digit & (MORE - 1)) << (DIGIT_BITS * i);
		if (digit < MORE)
			return value;
		at->bad |= digit >= 2 * MORE;
	}
	at->bad = true;
	return 0;
}

static enum brv_status too_long(struct error *err)
{
	return fail(err, BRV_LIMIT, "expected a header of at most %d bytes", AR_MAX_HEADER_NBYTES);
}

enum brv_status packed_size(struct span packed, struct cursor *at, uint64_t *nbytes, struct error *err)
{
	*at = (struct cursor){ .at = packed.ptr, .end = packed.ptr + packed.nbytes };
	*nbytes = take_number(at);
	if (at->bad)
		return fail(err, BRV_DAMAGED, "the packed header does not say its size");
	return *nbytes > AR_MAX_HEADER_NBYTES ? too_long(err) : BRV_OK;
}

enum brv_status packed_unpack(struct cursor *at, uint8_t *out, uint64_t nbytes, struct error *err)
{
	uint64_t done = 0, distance = 1;

	while (done < nbytes && !at->bad) {
		const uint8_t code = cursor_u8(at);
		if (code < PACKED_AGAIN || code >= PACKED_COPY_END) {
			out[done++] = code == PACKED_LITERAL ? cursor_u8(at) : code;
			continue;
		}
		const bool again = code < PACKED_COPY;
		uint64_t length = again ? code - PACKED_AGAIN + PACKED_AGAIN_MIN : code - PACKED_COPY + PACKED_COPY_MIN;
		if (code == PACKED_COPY - 1 || code == PACKED_COPY_END - 1)
			length += take_number(at);
		if (!again)
			distance = take_number(at) + 1;
		if (at->bad || distance > done || length > nbytes - done)
			return fail(err, BRV_DAMAGED, "the packed header copies what is not there");
		for (const uint64_t end = done + length; done < end; done++)
			out[done] = out[done - distance];
	}
	if (at->bad || cursor_left(at))
		return fail(err, BRV_DAMAGED, "the packed header is %s", at->bad ? "cut short" : "longer than what it holds");
	return BRV_OK;
}

/* Text that is written, or only measured. */
struct text {
	uint8_t *out;
	uint64_t nbytes;
	uint8_t last;
};

static void put(struct text *text, const void *bytes, size_t nbytes)
{
	if (nbytes == 0)
		return;
	if (text->out && text->nbytes + nbytes <= AR_MAX_HEADER_NBYTES)
		memcpy(text->out + text->nbytes, bytes, nbytes);
	text->last = ((const uint8_t *)bytes)[nbytes - 1];
	text->nbytes = MIN(text->nbytes + nbytes, (uint64_t)AR_MAX_HEADER_NBYTES + 1);
}

static void put_string(struct text *text, const char *string) { put(text, string, strlen(string)); }

static void put_number(struct text *text, uint64_t value)
{
	char digits[20];
	unsigned at = sizeof(digits);

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	put(text, digits + at, sizeof(digits) - at);
}

static void put_entry(struct text *text, const struct header_entry *entry)
{
	put_string(text, "\":{\"dtype\":\"");
	put_string(text, entry->dtype);
	put_string(text, "\",\"shape\":[");
	for (size_t i = 0; i < entry->ndim; i++) {
		if (i)
			put_string(text, ",");
		put_number(text, entry->shape[i]);
	}
	put_string(text, "],\"data_offsets\":[");
	put_number(text, entry->begin);
	put_string(text, ",");
	put_number(text, entry->end);
	put_string(text, "]}");
}

enum brv_status header_expand(struct span marked, const struct header_entries *entries, uint8_t *out, uint64_t *nbytes, struct error *err)
{
	struct text text = { .out = out };
	const uint8_t *at = marked.ptr, *end = at + marked.nbytes;
	uint64_t next = 0, name_at = 0;
	bool open = false;              /* the name of tensor `next` */

	while (at < end && text.nbytes <= AR_MAX_HEADER_NBYTES) {
		const uint8_t *from = at;
		while (at < end && *at != PACKED_NAME && *at != PACKED_REST)
			at++;
		put(&text, from, (size_t)(at - from));
		if (at == end)
			break;
		const bool begins = *at++ == PACKED_NAME;
		if (open) {
			const struct header_entry entry = entries->get(entries->context, next);
			entries->name(entries->context, next++, name_at, text.nbytes - name_at);
			put_entry(&text, &entry);
		}
		if (begins ? next == entries->count : !open)
			return fail(err, BRV_DAMAGED, "the header marks other tensors than there are");
		if (begins) {
			put_string(&text, text.last == '{' ? "\"" : ",\"");
			name_at = text.nbytes;
		}
		open = begins;
	}
	*nbytes = text.nbytes;
	if (text.nbytes > AR_MAX_HEADER_NBYTES)
		return too_long(err);
	return open || next < entries->count ? fail(err, BRV_DAMAGED, "the header marks fewer tensors than there are") : BRV_OK;
}

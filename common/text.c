/* text.c: numbers and sizes from the command line, and foreign bytes made safe to print (text.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"

#include <stdarg.h>

bool text_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	uint64_t value = 0;
	if (!*text)
		return false;
	for (; *text; text++)
		if (*text < '0' || *text > '9' || !mul_u64(value, 10, &value) || !add_u64(value, (uint64_t)(*text - '0'), &value))
			return false;
	*out = value;
	return value >= low && value <= high;
}

bool text_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	char digits[24];
	size_t n = strspn(text, "0123456789");
	unsigned shift = 0;
	if (n == 0 || n >= sizeof digits)
		return false;
	memcpy(digits, text, n);
	digits[n] = 0;
	text += n;
	const char *unit = *text == 'k' ? units : *text ? strchr(units, *text) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		text++;
		if (*text == 'i')
			text++;
	}
	if (*text == 'B')
		text++;
	uint64_t value;
	if (*text || !text_number(digits, 0, UINT64_MAX, &value) || value > (uint64_t)INT64_MAX >> shift)
		return false;
	*out = value << shift;
	return true;
}

unsigned text_utf8(const uint8_t *at, const uint8_t *end)
{
	size_t left = (size_t)(end - at);
	if (left == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	/* RFC 3629: the second byte's range depends on the first; all others are 80..BF. */
	unsigned n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	uint8_t low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80, high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
	if (at[0] < 0xc2 || at[0] > 0xf4 || left < n || at[1] < low || at[1] > high)
		return 0;
	for (unsigned i = 2; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Bytes from `at` on that stand for themselves wherever they are printed: what nearly all names are made of. */
static size_t plain_run(const uint8_t *at, const uint8_t *end)
{
	size_t n = 0;
	while (n < (size_t)(end - at) && at[n] >= 0x20 && at[n] < 0x7f && at[n] != '\\' && at[n] != '"')
		n++;
	return n;
}

/* One character of foreign text as it may be printed, into 8 bytes; returns how many input bytes it stands for. */
static unsigned safe_piece(const uint8_t *at, const uint8_t *end, char piece[8])
{
	unsigned n = text_utf8(at, end);
	bool c1 = n == 2 && at[0] == 0xc2 && at[1] < 0xa0;
	bool bidi = n == 3 && at[0] == 0xe2 && ((at[1] == 0x80 && at[2] >= 0x8e && (at[2] <= 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae))) ||
						(at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));
	if (n == 1 && *at == '\\') {
		memcpy(piece, "\\\\", 3);
		return 1;
	}
	if (n == 0 || c1 || bidi || *at < 0x20 || *at == 0x7f) {
		snprintf(piece, 8, "\\x%02x", *at);
		return 1;
	}
	memcpy(piece, at, n);
	piece[n] = 0;
	return n;
}

size_t text_safe(const uint8_t *bytes, size_t nbytes, char *text, size_t size)
{
	size_t length = 0;
	bool cut = size == 0;
	for (const uint8_t *at = bytes, *end = bytes + nbytes; at < end;) {
		char piece[8];
		const size_t run = plain_run(at, end);
		if (run && !cut && length + run < size) {
			memcpy(text + length, at, run);
			text[length + run] = 0;
			length += run, at += run;
			continue;
		}
		at += safe_piece(at, end, piece);
		size_t n = strlen(piece);
		cut = cut || length + n >= size;
		if (!cut) {
			memcpy(text + length, piece, n);
			text[length + n] = 0;
		}
		length += n;
	}
	if (length == 0 && size > 0)
		text[0] = 0;
	return length;
}

void text_put_safe(FILE *out, const void *bytes, size_t nbytes)
{
	for (const uint8_t *at = bytes, *end = at + nbytes; at < end;) {
		char piece[8];
		const size_t run = plain_run(at, end);
		fwrite(at, 1, run, out);
		at += run;
		if (at == end)
			break;
		at += safe_piece(at, end, piece);
		fputs(piece, out);
	}
}

void text_complain(const char *command, const char *about, const char *text)
{
	fprintf(stderr, "%s: ", command);
	if (about) {
		text_put_safe(stderr, about, strlen(about));
		fputs(": ", stderr);
	}
	text_put_safe(stderr, text, strlen(text));
	fputc('\n', stderr);
}

void text_put_json(FILE *out, const void *bytes, size_t nbytes)
{
	putc('"', out);
	for (const uint8_t *at = bytes, *end = at + nbytes; at < end;) {
		const size_t run = plain_run(at, end);
		fwrite(at, 1, run, out);
		at += run;
		if (at == end)
			break;
		unsigned n = text_utf8(at, end);
		if (n == 0)
			fputs("\xef\xbf\xbd", out);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20 || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else
			fwrite(at, 1, n, out);
		at += n ? n : 1;
	}
	putc('"', out);
}

void text_add(struct text_out *out, const char *format, ...)
{
	va_list args;
	size_t left = out->length < out->size ? out->size - out->length : 0;
	va_start(args, format);
	int n = vsnprintf(left ? out->text + out->length : NULL, left, format, args);
	va_end(args);
	out->length += n > 0 ? (size_t)n : 0;
}

const char *text_nbytes(uint64_t nbytes, char text[16])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)nbytes;
	size_t unit = 0;
	for (; value >= 1023.95 && unit + 1 < ARRAY_LEN(units); unit++)
		value /= 1024;
	snprintf(text, 16, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

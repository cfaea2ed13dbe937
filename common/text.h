/* text.h: numbers and sizes from the command line, and foreign bytes (names, paths) made safe to print.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdio.h>

#include "common/base.h"
#include "common/status.h"

/* A whole decimal number, nothing around it, low..high. False otherwise. */
bool text_number(const char *text, uint64_t low, uint64_t high, uint64_t *out);

/* A size: a number with nothing, K, M, G or T (powers of 1024; k, KiB, KB, B and the like are taken too) behind it. False if
 * malformed or 2^63 or more. */
bool text_size(const char *text, uint64_t *out);

/* The bytes as text without control characters, line ends, bytes that are not UTF-8 (each as \xNN) and backslashes (as \\). Always
 * terminated, cut at a whole escape. Returns the length of the uncut text. */
size_t text_safe(const uint8_t *bytes, size_t nbytes, char *text, size_t size);
void text_put_safe(FILE *out, const void *bytes, size_t nbytes);

/* "COMMAND: ABOUT: text" on stderr, in one safe line; about may be NULL. */
void text_complain(const char *command, const char *about, const char *text);

/* The bytes as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void text_put_json(FILE *out, const void *bytes, size_t nbytes);

/* Length of the UTF-8 character at `at` (1..4), 0 if there is none: overlong forms, surrogates and what lies above U+10FFFF are none. */
unsigned text_utf8(const uint8_t *at, const uint8_t *end);

/* Text that is put together in a caller's buffer and counts on when that is full, like snprintf. */
struct text_out {
	char *text;
	size_t size, length;
};
void text_add(struct text_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 1536 -> "1.5 KiB"; text holds 16 bytes. Returns text. */
const char *text_nbytes(uint64_t nbytes, char text[16]);

#endif

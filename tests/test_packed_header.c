/* test_packed_header.c: the packed header (docs/FORMAT.md, 4.1): what goes in comes out, and each of its rules broken once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/packed_header.h"
#include "synth/pack_header.h"

/* Unpacks into memory of just the size, so that a write beyond is the sanitizer's. */
static enum brv_status unpack(struct span packed, struct buffer *out)
{
	struct cursor at;
	uint64_t nbytes;
	struct error err = { "" };
	uint8_t *copy = malloc(packed.nbytes + !packed.nbytes);

	memcpy(copy, packed.nbytes ? packed.ptr : copy, packed.nbytes);
	enum brv_status status = packed_size((struct span){ copy, packed.nbytes }, &at, &nbytes, &err);
	if (status == BRV_OK) {
		uint8_t *text = malloc(nbytes + !nbytes);
		status = packed_unpack(&at, text, nbytes, &err);
		if (status == BRV_OK)
			buffer_put(out, text, nbytes);
		free(text);
	}
	free(copy);
	cr_assert(status == BRV_OK || err.text[0], "no reason given");
	return status;
}

/* Text i of many: of few or many letters, with runs, layers, and bytes that commands are made of. */
static void make_text(unsigned i, struct buffer *out)
{
	uint64_t random = i;

	for (unsigned k = 0; k < i * 7; k++) {
		char name[64];
		random = random * 6364136223846793005 + 1442695040888963407;
		switch (i % 4) {
		case 0: buffer_put_u8(out, (uint8_t)(random >> 56)); break;
		case 1: buffer_put_u8(out, (uint8_t)(random >> 62)); break;
		case 2: buffer_put(out, name, (size_t)snprintf(name, sizeof(name), "%clayers.%u.block.%u.weight", k ? 1 : '{', k / 9, k % 9)); break;
		default: buffer_put_u8(out, (uint8_t)(k / (i + 1))); break;
		}
	}
}

Test(packed_header, what_goes_in_comes_out)
{
	for (unsigned i = 0; i < 120; i++) {
		struct buffer text = { 0 }, packed = { 0 }, out = { 0 };
		make_text(i, &text);
		cr_assert(pack_text(text.data, text.nbytes, &packed));
		cr_assert_eq(unpack((struct span){ packed.data, packed.nbytes }, &out), BRV_OK, "text %u", i);
		cr_assert_eq(out.nbytes, text.nbytes, "text %u", i);
		cr_assert(text.nbytes == 0 || memcmp(out.data, text.data, text.nbytes) == 0, "text %u", i);
		if (i % 4 == 2 && i > 20)
			cr_assert_lt(packed.nbytes * 4, text.nbytes, "text %u: %zu bytes packed into %zu", i, text.nbytes, packed.nbytes);
		buffer_free(&text), buffer_free(&packed), buffer_free(&out);
	}
}

#define B(...) { (const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }) }

Test(packed_header, commands)
{
	const struct {
		const char *what;
		struct span packed;
		enum brv_status status;
		const char *text;
	} rows[] = {
		{ "nothing", B(0), BRV_OK, "" },
		{ "literals", B(3, 'a', 0, 'b', 2), BRV_OK, "ab\2" },
		{ "a literal that is a command", B(2, 0, 3, 'x'), BRV_OK, "\3x" },
		{ "a copy at the first distance", B(3, 'a', 3), BRV_OK, "aaa" },
		{ "a copy that says its distance", B(5, 'a', 'b', 16, 1), BRV_OK, "ababa" },
		{ "a copy at that distance again", B(7, 'a', 'b', 16, 1, 3), BRV_OK, "abababa" },
		{ "a longer copy again", B(17, 'a', 15, 2), BRV_OK, "aaaaaaaaaaaaaaaaa" },
		{ "a longer copy", B(20, 'a', 31, 1, 0), BRV_OK, "aaaaaaaaaaaaaaaaaaaa" },
		{ "two digits", B(64 | 20, 1, 'a', 31, 64 | 1, 1, 0), BRV_OK, NULL },
		{ "no size", { (const uint8_t *)"", 0 }, BRV_DAMAGED, NULL },
		{ "a digit of 8 bits", B(128, 'a'), BRV_DAMAGED, NULL },
		{ "six digits", B(64, 64, 64, 64, 64, 0), BRV_DAMAGED, NULL },
		{ "too large", B(64 | 63, 64 | 63, 64 | 63, 64 | 63, 63), BRV_LIMIT, NULL },
		{ "a byte missing", B(2, 'a'), BRV_DAMAGED, NULL },
		{ "a literal missing", B(1, 0), BRV_DAMAGED, NULL },
		{ "a byte left over", B(1, 'a', 'b'), BRV_DAMAGED, NULL },
		{ "a copy of nothing", B(2, 3), BRV_DAMAGED, NULL },
		{ "a copy from before the beginning", B(5, 'a', 'b', 16, 2), BRV_DAMAGED, NULL },
		{ "a copy beyond the end", B(4, 'a', 'b', 16, 1), BRV_DAMAGED, NULL },
		{ "a distance missing", B(5, 'a', 'b', 16), BRV_DAMAGED, NULL },
		{ "a distance that does not end", B(5, 'a', 'b', 16, 64), BRV_DAMAGED, NULL },
		{ "a length missing", B(17, 'a', 15), BRV_DAMAGED, NULL },
		{ "a length beyond the end", B(17, 'a', 15, 3), BRV_DAMAGED, NULL },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct buffer out = { 0 };
		cr_assert_eq(unpack(rows[i].packed, &out), rows[i].status, "%s", rows[i].what);
		if (rows[i].text) {
			cr_assert_eq(out.nbytes, strlen(rows[i].text), "%s", rows[i].what);
			cr_assert(out.nbytes == 0 || memcmp(out.data, rows[i].text, out.nbytes) == 0, "%s", rows[i].what);
		}
		buffer_free(&out);
	}
}

static struct header_entry entry_of(void *context, uint64_t i)
{
	static const uint64_t shape[] = { 2, 18446744073709551615u, 0 };
	(void)context;
	return (struct header_entry){ .dtype = i ? "U8" : "F8_E4M3", .shape = shape, .ndim = i ? 3 * i - 3 : 1, .begin = i, .end = i + 10 };
}

static void tell_name(void *context, uint64_t i, uint64_t at, uint64_t nbytes)
{
	uint64_t(*name)[2] = context;
	name[i][0] = at, name[i][1] = nbytes;
}

Test(packed_header, entries)
{
	static const struct {
		const char *marked;
		uint64_t count;
		enum brv_status status;
		const char *text;
		uint64_t name[3][2];
	} rows[] = {
		{ "{}", 0, BRV_OK, "{}", { { 0 } } },
		{ "{\1abc\2}  ", 1, BRV_OK, "{\"abc\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,10]}}  ", { { 2, 3 } } },
		{ "{m\1a\1\2}", 2, BRV_OK,
		  "{m,\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,10]},\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,11]}}",
		  { { 4, 1 }, { 62, 0 } } },
		{ "{\1a\2m\1b\1c\2}", 3, BRV_OK,
		  "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,10]}m,\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,11]},"
		  "\"c\":{\"dtype\":\"U8\",\"shape\":[2,18446744073709551615,0],\"data_offsets\":[2,12]}}",
		  { { 2, 1 }, { 61, 1 }, { 113, 1 } } },
		{ "{}", 1, BRV_DAMAGED, NULL, { { 0 } } },
		{ "{\1a\2}", 0, BRV_DAMAGED, NULL, { { 0 } } },
		{ "{\1a\2}", 2, BRV_DAMAGED, NULL, { { 0 } } },
		{ "{\1a\1b\2}", 1, BRV_DAMAGED, NULL, { { 0 } } },
		{ "{\1a}", 1, BRV_DAMAGED, NULL, { { 0 } } },
		{ "{\1a\2\2}", 1, BRV_DAMAGED, NULL, { { 0 } } },
		{ "\2", 0, BRV_DAMAGED, NULL, { { 0 } } },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t name[3][2] = { { 0 } }, nbytes, again;
		struct error err;
		const struct header_entries entries = { rows[i].count, name, entry_of, tell_name };
		const struct span marked = { (const uint8_t *)rows[i].marked, strlen(rows[i].marked) };
		cr_assert_eq(header_expand(marked, &entries, NULL, &nbytes, &err), rows[i].status, "row %u", i);
		if (rows[i].status != BRV_OK)
			continue;
		cr_assert_eq(nbytes, strlen(rows[i].text), "row %u: %llu bytes", i, (unsigned long long)nbytes);
		uint8_t *text = malloc(nbytes);
		cr_assert_eq(header_expand(marked, &entries, text, &again, &err), BRV_OK, "row %u", i);
		cr_assert_eq(memcmp(text, rows[i].text, nbytes), 0, "row %u: %.*s", i, (int)nbytes, text);
		cr_assert_eq(memcmp(name, rows[i].name, sizeof(name)), 0, "row %u: names", i);
		free(text);
	}
}

/* A bomb: an entry of many dims for each byte of text is more than a header may have, and is not written. */
Test(packed_header, headers_have_a_limit)
{
	struct buffer marked = { 0 };
	uint64_t nbytes;
	struct error err;

	buffer_grow(&marked, AR_MAX_HEADER_NBYTES);
	memset(marked.data, ' ', marked.nbytes);
	const struct header_entries none = { 0, NULL, entry_of, tell_name };
	cr_assert_eq(header_expand((struct span){ marked.data, marked.nbytes }, &none, NULL, &nbytes, &err), BRV_OK);
	buffer_put_u8(&marked, ' ');
	cr_assert_eq(header_expand((struct span){ marked.data, marked.nbytes }, &none, NULL, &nbytes, &err), BRV_LIMIT);
	buffer_free(&marked);
}

struct same_context {
	const struct checkpoint *c;
	unsigned names;
};

static struct header_entry entry_of_tensor(void *context, uint64_t i)
{
	const struct tensor *t = &((struct same_context *)context)->c->tensor[i];
	return (struct header_entry){ t->dtype_name, t->shape, t->ndim, t->offset, t->offset + t->nbytes };
}

static void count_name(void *context, uint64_t i, uint64_t at, uint64_t nbytes)
{
	struct same_context *s = context;
	s->names += s->c->tensor[i].name_offset == (int64_t)at && s->c->tensor[i].name_nbytes == nbytes;
}

/* Headers of all kinds of writers: which flags they get, and that what is packed stands for them. */
Test(packed_header, headers)
{
#define ENTRY(name, from, to) "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #to "],\"data_offsets\":[" #from "," #to "]}"
#define LONG "\"__metadata__\":{\"format\":\"pt\",\"from\":\"}}{{,,\",\"again\":\"the same again, the same again, the same again\"}"
	enum { BOTH = AR_FLAG_PACKED | AR_FLAG_ENTRIES };
	static const struct {
		const char *header;
		unsigned data_nbytes, flags;
	} rows[] = {
		{ "{}", 0, 0 },
		{ "{" ENTRY("a", 0, 4) "}", 4, BOTH },
		{ "{" LONG "," ENTRY("a", 0, 4) "}       ", 4, BOTH },
		{ "{" ENTRY("a", 0, 4) "," LONG "}", 4, BOTH },
		{ "{" ENTRY("a", 0, 0) "," ENTRY("\xce\xb1}", 0, 4) "," LONG "}", 4, BOTH },
		{ "{" LONG ",\n" ENTRY("a", 0, 4) "}", 4, AR_FLAG_PACKED },
		{ "{\"a\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}," LONG "}", 4, AR_FLAG_PACKED },
		{ "{\"a\":{\"shape\":[4],\"dtype\":\"U8\",\"data_offsets\":[0,4]}," LONG "}", 4, AR_FLAG_PACKED },
		{ "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"more\":\"\"}," LONG "}", 4, AR_FLAG_PACKED },
		{ "{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}," LONG "}", 6,
		  AR_FLAG_PACKED },
		{ "{\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}," LONG "}", 4, AR_FLAG_PACKED },
		{ "{" LONG "}", 0, BOTH },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char path[] = "/tmp/packed-header-XXXXXX";
		const uint64_t nbytes = strlen(rows[i].header);
		const uint8_t zeros[8] = { 0 };
		struct checkpoint c;
		struct error err = { "" };
		struct buffer packed = { 0 }, text = { 0 };
		uint16_t flags;

		const int fd = mkstemp(path);
		cr_assert(fd >= 0 && write(fd, &nbytes, 8) == 8 && write(fd, rows[i].header, nbytes) == (ssize_t)nbytes &&
			  write(fd, zeros, rows[i].data_nbytes) == (ssize_t)rows[i].data_nbytes);
		close(fd);
		cr_assert_eq(checkpoint_open(path, &c, &err), BRV_OK, "row %u: %s", i, err.text);
		unlink(path);
		cr_assert_eq(pack_header(&c, &packed, &flags), BRV_OK, "row %u", i);
		cr_assert_eq(flags, rows[i].flags, "row %u: flags %u", i, flags);
		if (flags)
			cr_assert_eq(unpack((struct span){ packed.data, packed.nbytes }, &text), BRV_OK, "row %u", i);
		else
			buffer_put(&text, packed.data, packed.nbytes);
		if (flags & AR_FLAG_ENTRIES) {
			struct same_context same = { &c, 0 };
			const struct header_entries entries = { c.ntensors, &same, entry_of_tensor, count_name };
			const struct buffer marked = text;
			uint64_t whole;
			text = (struct buffer){ 0 };
			uint8_t *out = buffer_grow(&text, c.header_nbytes);
			cr_assert_eq(header_expand((struct span){ marked.data, marked.nbytes }, &entries, NULL, &whole, &err), BRV_OK, "row %u: %s", i, err.text);
			cr_assert_eq(whole, nbytes, "row %u", i);
			cr_assert_eq(header_expand((struct span){ marked.data, marked.nbytes }, &entries, out, &whole, &err), BRV_OK);
			cr_assert_eq(same.names, 2 * c.ntensors, "row %u: names", i);
			free(marked.data);
		}
		cr_assert(text.nbytes == nbytes && memcmp(text.data, rows[i].header, nbytes) == 0, "row %u", i);
		buffer_free(&packed), buffer_free(&text);
		checkpoint_close(&c);
	}
}

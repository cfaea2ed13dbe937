/* test_manifest.c: brevis.manifest: there and back, and every rule of docs/FORMAT.md section 10 broken. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common/manifest.h"

/* The text with a right last line. */
static char *sealed(const char *lines)
{
	char *text;
	const int n = asprintf(&text, "%s", lines);
	cr_assert(n >= 0);
	free(text);
	cr_assert(asprintf(&text, "%send %016llx\n", lines, (unsigned long long)XXH3_64bits(lines, (size_t)n)) > 0);
	return text;
}

static enum brv_status parse(const char *lines, struct error *err)
{
	struct manifest m;
	char *text = sealed(lines);
	enum brv_status status = manifest_parse(text, strlen(text), &m, err);
	if (status == BRV_OK)
		manifest_free(&m);
	free(text);
	return status;
}

Test(manifest, comes_back)
{
	struct manifest m = { 0 }, back;
	struct buffer text = { 0 };
	struct error err = { "" };

	cr_assert(manifest_add(&m, "a\nb%", NULL, MANIFEST_FILE, 7));
	m.entry[0].sum = 0x0123456789abcdefull;
	cr_assert(manifest_add(&m, "d", NULL, MANIFEST_DIRECTORY, 0));
	cr_assert(manifest_add(&m, "d-", NULL, MANIFEST_FILE, 0));
	cr_assert(manifest_add(&m, "d/\xff x.safetensors", NULL, MANIFEST_ARCHIVE, INT64_MAX));
	manifest_print(&m, &text);
	cr_assert_not(text.failed);
	cr_assert_eq(manifest_parse(text.data, text.nbytes, &back, &err), BRV_OK, "%s", err.text);
	cr_assert_eq(back.count, m.count);
	for (size_t i = 0; i < m.count; i++) {
		cr_assert_str_eq(back.entry[i].path, m.entry[i].path);
		cr_assert_str_eq(back.entry[i].stored, m.entry[i].stored);
		cr_assert(back.entry[i].kind == m.entry[i].kind && back.entry[i].nbytes == m.entry[i].nbytes && back.entry[i].sum == m.entry[i].sum);
	}
	cr_assert_str_eq(back.entry[3].stored, "d/\xff x.safetensors.brv");
	/* No byte of it can change, and none can be missing, without being noticed. */
	for (size_t i = 0; i < text.nbytes; i++) {
		struct manifest other;
		text.data[i] ^= 1;
		cr_assert_neq(manifest_parse(text.data, text.nbytes, &other, &err), BRV_OK, "byte %zu", i);
		text.data[i] ^= 1;
		cr_assert_neq(manifest_parse(text.data, i, &other, &err), BRV_OK, "cut at %zu", i);
	}
	manifest_free(&m);
	manifest_free(&back);
	buffer_free(&text);
}

#define FIRST "brevis-manifest 1\n"
#define SUM "0123456789abcdef"

Test(manifest, rules)
{
	static const struct {
		const char *text;
		enum brv_status status;
	} rows[] = {
		{ FIRST, BRV_OK },
		{ FIRST "file 0 " SUM " a\n", BRV_OK },
		{ FIRST "directory a\narchive 3 a/b.safetensors\n", BRV_OK },
		{ FIRST "file 0 " SUM " ...\n", BRV_OK },
		{ "brevis-manifest 2\n", BRV_VERSION },
		{ "", BRV_DAMAGED },
		{ FIRST "link 0 a\n", BRV_DAMAGED },
		{ FIRST "file 00 " SUM " a\n", BRV_DAMAGED },
		{ FIRST "file -1 " SUM " a\n", BRV_DAMAGED },
		{ FIRST "file 9223372036854775808 " SUM " a\n", BRV_DAMAGED },
		{ FIRST "file 0 0123456789ABCDEF a\n", BRV_DAMAGED },
		{ FIRST "file 0 a\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " \n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " /a\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " ..\n", BRV_DAMAGED },
		{ FIRST "directory a\nfile 0 " SUM " a/../b\n", BRV_DAMAGED },
		{ FIRST "directory a\nfile 0 " SUM " a/\n", BRV_DAMAGED },
		{ FIRST "directory a\nfile 0 " SUM " a//b\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a/b\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a\nfile 0 " SUM " a/b\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " b\nfile 0 " SUM " a\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a\nfile 0 " SUM " a\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a%00\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a%41\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a%0\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " a\tb\n", BRV_DAMAGED },
		{ FIRST "archive 0 a\n", BRV_DAMAGED },
		{ FIRST "file 0 " SUM " brevis.manifest\n", BRV_DAMAGED },
		{ FIRST "archive 0 a.safetensors\nfile 0 " SUM " a.safetensors.brv\n", BRV_DAMAGED },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct error err = { "" };
		cr_expect_eq(parse(rows[i].text, &err), rows[i].status, "row %zu: %s", i, err.text);
	}
	struct error err = { "" };
	char name[300 + sizeof(FIRST "file 0 " SUM " \n")];
	snprintf(name, sizeof name, FIRST "file 0 " SUM " %0300d\n", 1);
	cr_expect_eq(parse(name, &err), BRV_DAMAGED, "a name of 300 bytes");
}

/* fuzz_manifest.c: any bytes as brevis.manifest and as an index of shards: refused with a reason, or they mean what docs/FORMAT.md says.
 *
 * A manifest's last line is made right, or hardly any input would get past it. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <xxhash.h>

#include "common/manifest.h"
#include "synth/index.h"
#include "tests/fuzz/fuzz_input.h"

/* A path that cannot lead out of the directory. */
static void check_path(const char *path)
{
	FUZZ_CHECK(path[0] && path[0] != '/' && !strstr(path, "//") && path[strlen(path) - 1] != '/', "path \"%s\"", path);
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		const size_t n = strcspn(at, "/");
		FUZZ_CHECK(!(n == 1 && at[0] == '.') && !(n == 2 && at[0] == '.' && at[1] == '.') && n <= 255, "path \"%s\"", path);
	}
}

static void check_manifest(const uint8_t *data, size_t nbytes)
{
	struct manifest m, again;
	struct buffer text = { 0 }, printed = { 0 };
	struct error err = { "" };
	char end[32];

	buffer_put(&text, data, nbytes);
	snprintf(end, sizeof(end), "end %016llx\n", (unsigned long long)XXH3_64bits(data, nbytes));
	buffer_put(&text, end, strlen(end));
	if (manifest_parse(text.data, text.nbytes, &m, &err) == BRV_OK) {
		for (size_t i = 0; i < m.count; i++) {
			check_path(m.entry[i].path);
			check_path(m.entry[i].stored);
			FUZZ_CHECK(i == 0 || strcmp(m.entry[i - 1].path, m.entry[i].path) < 0, "order");
		}
		manifest_print(&m, &printed);
		FUZZ_CHECK(printed.nbytes == text.nbytes && !memcmp(printed.data, text.data, text.nbytes), "what was accepted is written differently");
		manifest_free(&m);
	} else {
		FUZZ_CHECK(err.text[0] && !strchr(err.text, '\n'), "no reason, or more than a line: %s", err.text);
	}
	/* As it is. */
	if (manifest_parse(data, nbytes, &again, NULL) == BRV_OK)
		manifest_free(&again);
	buffer_free(&text);
	buffer_free(&printed);
}

static void check_index(const uint8_t *data, size_t nbytes)
{
	static char one[] = "sub/model-1.safetensors", two[] = "sub/x.safetensors";
	struct walk_entry entry[] = { { one, false, 10 }, { two, false, 10 } };
	const struct walk files = { entry, ARRAY_LEN(entry), ARRAY_LEN(entry) };
	struct shard_index index;
	struct error err = { "" };

	if (index_parse("sub/model.safetensors.index.json", data, nbytes, &index, &err) == BRV_OK) {
		index_check_files(&index, &files, &err);
		FUZZ_CHECK(index_is_beside(&index, one), "beside");
		index_free(&index);
	} else {
		FUZZ_CHECK(err.text[0] && !strchr(err.text, '\n'), "no reason, or more than a line: %s", err.text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	check_manifest(data, nbytes);
	check_index(data, nbytes);
	return 0;
}

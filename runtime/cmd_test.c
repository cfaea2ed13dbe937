/* cmd_test.c: `brevis test`: decodes everything to nowhere and compares the checksums. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/text.h"
#include "runtime/cli_dir.h"
#include "runtime/salvage.h"

/* All of the data, decoded to nowhere, behind damage too. */
static enum brv_status keep_going(struct cli *cli, uint64_t nbytes)
{
	cli->lost_nbytes = 0;
	TRY(salvage_begin(cli));
	for (uint64_t at = 0; at < nbytes; at += SALVAGE_NBYTES) {
		TRY(salvage_window(cli, at, NULL, MIN(nbytes - at, (uint64_t)SALVAGE_NBYTES)));
		progress_update(&cli->progress, at, nbytes);
	}
	return salvage_end(cli, nbytes);
}

/* The archive that is open. */
static enum brv_status test_archive(struct cli *cli)
{
	brv_info info;
	brv_get_info(cli->archive, &info);
	progress_start(&cli->progress, cli->file, cli_shows_progress(cli));
	/* Without dst and sink, chunks stay in a thread's cache. */
	const struct decode_range all = { .nbytes = info.data_nbytes };
	const struct decode_call call = {
		.range = &all, .nranges = 1, .pool = cli->pool, .progress = progress_update, .progress_context = &cli->progress,
	};
	TRY(cli->keep_going ? keep_going(cli, info.data_nbytes) : decode_data(cli->archive, &call, &cli->err));
	progress_end(&cli->progress);
	if (cli->json) {
		printf("{\"archive\": ");
		text_put_json(stdout, cli->file, strlen(cli->file));
		printf(", \"ok\": true, \"tensors\": %llu, \"archive_nbytes\": %llu, \"file_nbytes\": %llu}\n",
		       (unsigned long long)info.tensor_count, (unsigned long long)info.archive_nbytes,
		       (unsigned long long)info.file_nbytes);
	} else if (!cli->quiet) {
		text_put_safe(stdout, cli->file, strlen(cli->file));
		printf(": ok, %llu tensors, %llu bytes\n", (unsigned long long)info.tensor_count, (unsigned long long)info.file_nbytes);
	}
	return BRV_OK;
}

static enum brv_status test_entry(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry)
{
	uint64_t nbytes;
	if (entry->kind == MANIFEST_FILE)
		return cli_dir_carry(cli, dir, entry, NULL, &nbytes);
	if (entry->kind == MANIFEST_DIRECTORY)
		return BRV_OK;
	TRY(cli_dir_open_archive(cli, dir, entry));
	return test_archive(cli);
}

static enum brv_status test_entries(struct cli *cli, const struct cli_dir *dir)
{
	uint64_t nfiles = 0, nlost = 0;
	for (size_t i = 0; i < dir->manifest.count; i++) {
		const struct manifest_entry *entry = &dir->manifest.entry[i];
		const enum brv_status status = test_entry(cli, dir, entry);
		nfiles += entry->kind == MANIFEST_FILE;
		if (status != BRV_OK && (!cli->keep_going || (status != BRV_DAMAGED && status != BRV_VERSION && status != BRV_IO)))
			return status;
		if (status == BRV_OK)
			continue;
		progress_end(&cli->progress);
		cli_complain(cli->about, cli->err.text);
		nlost++;
	}
	cli->about = dir->path;
	if (nlost)
		return fail(&cli->err, BRV_DAMAGED, "%llu of %zu files are damaged or missing", (unsigned long long)nlost, (size_t)(dir->narchives + nfiles));
	if (cli->json || cli->quiet)
		return BRV_OK;
	text_put_safe(stdout, dir->path, strlen(dir->path));
	printf(": ok, %zu archives, %llu other files%s\n", dir->narchives, (unsigned long long)nfiles,
	       dir->has_manifest ? "" : "; there is no " MANIFEST_NAME " that says whether this is all");
	return BRV_OK;
}

static enum brv_status test_directory(struct cli *cli, const char *path)
{
	struct cli_dir dir;
	TRY(cli_dir_open(cli, path, &dir));
	const enum brv_status status = test_entries(cli, &dir);
	cli_dir_close(&dir);
	return status;
}

enum brv_status cmd_test(struct cli *cli, int nargs, char **args)
{
	for (int i = 0; i < nargs; i++) {
		cli_close_archive(cli);
		if (is_directory(args[i])) {
			TRY(test_directory(cli, args[i]));
			continue;
		}
		TRY(cli_open(cli, args[i]));
		TRY(test_archive(cli));
	}
	return BRV_OK;
}

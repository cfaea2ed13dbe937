/* cmd_test.c: `brevis test`: decodes everything to nowhere and compares the checksums. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/text.h"
#include "runtime/cli.h"
#include "runtime/decode.h"

static enum brv_status test_one(struct cli *cli, const char *file)
{
	brv_info info;
	TRY(cli_open(cli, file));
	brv_get_info(cli->archive, &info);
	progress_start(&cli->progress, cli->file, !cli->quiet && !cli->no_progress && !cli->json);
	/* Without dst and sink, chunks stay in a thread's cache. */
	const struct decode_call call = {
		.nbytes = info.data_nbytes, .pool = pool_team(cli->pool), .progress = progress_update, .progress_context = &cli->progress,
	};
	TRY(decode_data(cli->archive, &call, &cli->err));
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

enum brv_status cmd_test(struct cli *cli, int nargs, char **args)
{
	for (int i = 0; i < nargs; i++) {
		TRY(test_one(cli, args[i]));
		if (i + 1 < nargs)
			cli_close(cli);
	}
	return BRV_OK;
}

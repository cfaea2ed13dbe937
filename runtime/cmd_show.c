/* cmd_show.c: `brevis show`: a tensor's program as a tree and as bytecode, with its costs. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"
#include "runtime/cli_dir.h"
#include "runtime/show.h"

static void print_json(const struct cli *cli, uint64_t index, const char *text)
{
	char program[1024];
	brv_tensor tensor;
	if (brv_get_tensor(cli->archive, index, &tensor, NULL) != BRV_SUCCESS)
		return;
	brv_describe(cli->archive, index, program, sizeof program);
	printf("{\"name\": ");
	text_put_json(stdout, tensor.name, tensor.name_nbytes);
	printf(", \"data_nbytes\": %llu, \"archive_nbytes\": %llu, \"program\": ", (unsigned long long)tensor.data_nbytes,
	       (unsigned long long)tensor.archive_nbytes);
	text_put_json(stdout, program, strlen(program));
	printf(", \"text\": ");
	text_put_json(stdout, text, strlen(text));
	printf("}\n");
}

enum brv_status cmd_show(struct cli *cli, int nargs, char **args)
{
	uint64_t index;
	(void)nargs;
	cli->threads = 1; /* nothing to share */
	TRY(cli_open_tensor(cli, args[0], args[1], &index, NULL));
	/* An archive from a pipe can be read once, so the text is not measured first. */
	size_t size = 1 << 20, length;
	char *text = malloc(size);
	if (!text)
		return fail(&cli->err, BRV_MEMORY, "out of memory");
	enum brv_status status = show_tensor(cli->archive, index, text, size, &length, &cli->err);
	if (status != BRV_OK) {
		free(text);
		return status;
	}
	if (cli->json)
		print_json(cli, index, text);
	else
		fputs(text, stdout);
	free(text);
	return length < size ? BRV_OK : fail(&cli->err, BRV_LIMIT, "the text is cut at %zu of %zu bytes", size, length);
}

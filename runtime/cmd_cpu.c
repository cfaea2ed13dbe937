/* cmd_cpu.c: `brevis cpu`: what was detected, what is used and why. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/cpus.h"
#include "common/text.h"
#include "runtime/cli.h"

enum brv_status cmd_cpu(struct cli *cli, int nargs, char **args)
{
	char text[8192];
	unsigned threads;
	(void)nargs;
	(void)args;
	brv_cpu_report(text, sizeof text);
	if (!cli->json) {
		fputs(text, stdout);
		return BRV_OK;
	}
	TRY(cpus_threads(cli->threads, &threads, &cli->err));
	printf("{\"isa\": ");
	text_put_json(stdout, brv_isa(), strlen(brv_isa()));
	printf(", \"threads\": %u, \"text\": ", threads);
	text_put_json(stdout, text, strlen(text));
	printf("}\n");
	return BRV_OK;
}

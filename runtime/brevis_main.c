/* brevis_main.c: command brevis: options, the list of commands, errors and exit codes. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cpus.h"
#include "common/temporary.h"
#include "common/text.h"
#include "runtime/cli.h"

static const struct cli_command commands[] = {
	{ "unpack", "ARCHIVE [-o OUTPUT]", "the checkpoint as a file", 1, 1, cmd_unpack },
	{ "test", "ARCHIVE...", "decode everything, compare the checksums, write nothing", 1, 1 << 20, cmd_test },
	{ "list", "ARCHIVE", "the tensors: type, shape, sizes, program", 1, 1, cmd_list },
	{ "show", "ARCHIVE TENSOR", "a tensor's program and what each part of it costs", 2, 2, cmd_show },
	{ "cat", "ARCHIVE TENSOR[i:j]", "a tensor, or its rows i to j - 1, as raw bytes on stdout", 2, 2, cmd_cat },
	{ "bench", "ARCHIVE", "read, decode, test, write: GB/s by thread count and instruction set, beside memcpy and a copy", 1, 1, cmd_bench },
	{ "mount", "ARCHIVE MOUNTPOINT", "the original files as a read-only file system, decoded as they are read", 2, 2, cmd_mount },
	{ "cpu", "", "what was detected, what is used and why", 0, 0, cmd_cpu },
};

enum { MAX_REPEATS = 99 };
enum long_only { OPTION_JSON = 256, OPTION_NO_PROGRESS, OPTION_DROP_CACHE, OPTION_METRICS, OPTION_REPEAT, OPTION_NUMA, OPTION_FOREGROUND, OPTION_KEEP_GOING };
static const char short_options[] = ":o:cfqvT:M:Vh";
static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "stdout", no_argument, NULL, 'c' },
	{ "force", no_argument, NULL, 'f' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "threads", required_argument, NULL, 'T' },
	{ "memory", required_argument, NULL, 'M' },
	{ "numa", required_argument, NULL, OPTION_NUMA },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "no-progress", no_argument, NULL, OPTION_NO_PROGRESS },
	{ "drop-cache", no_argument, NULL, OPTION_DROP_CACHE },
	{ "metrics", required_argument, NULL, OPTION_METRICS },
	{ "repeat", required_argument, NULL, OPTION_REPEAT },
	{ "foreground", no_argument, NULL, OPTION_FOREGROUND },
	{ "keep-going", no_argument, NULL, OPTION_KEEP_GOING },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void print_help(FILE *out)
{
	fputs("usage: brevis COMMAND [OPTION]... [ARGUMENT]...\n\n", out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-6s %-20s  %s\n", commands[i].name, commands[i].usage, commands[i].help);
	fputs("\nAn ARCHIVE of - is stdin, an OUTPUT of - stdout.\n\n"
	      "  -o, --output FILE    where to write (default: the archive's name without .brv)\n"
	      "  -c, --stdout         the same as -o -\n"
	      "  -f, --force          overwrite an existing file\n"
	      "  -T, --threads N      threads to use, 0 for all this process may use\n"
	      "  -M, --memory SIZE    most memory to use for decoding: 512M, 2G (default 4G);\n"
	      "                       mount: of its cache (default 256M)\n"
	      "      --numa MODE      none, local or interleave: threads and output on a machine with several memory nodes\n"
	      "                       (default: local there)\n"
	      "      --drop-cache     leave nothing of the archive and the output in the page cache; bench: read from the disk\n"
	      "      --repeat N       bench: rounds (default 5)\n"
	      "      --metrics FILE   bench: write the figures as Prometheus text too\n"
	      "  -q, --quiet          print errors only\n"
	      "  -v, --verbose        say what was done\n"
	      "      --json           print results as JSON\n"
	      "      --no-progress    no progress line\n"
	      "      --keep-going     cat, test: go on behind damage, name what is lost; cat writes zeros in its place\n"
	      "      --foreground     mount: stay until it is unmounted\n"
	      "  -V, --version\n"
	      "  -h, --help\n\n"
	      "Environment: BREVIS_THREADS, BREVIS_MEMORY_LIMIT, BREVIS_ISA (scalar, avx2, avx512, avx512i, neon).\n"
	      "Exit codes: 0 done, 1 other, 2 usage, 4 damaged archive, 5 input or output, 6 limit or memory.\n",
	      out);
}

static int usage_error(const char *what, const char *value)
{
	char text[256];
	snprintf(text, sizeof text, "%s%s%.100s; brevis -h lists commands and options", what, value ? " " : "", value ? value : "");
	cli_complain(NULL, text);
	return status_exit_code(BRV_USAGE);
}

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* What is printed may get lost as late as here: a full disk, a closed pipe. */
static int finish(int exit_code)
{
	if ((fflush(stdout) != 0 || ferror(stdout)) && exit_code == 0) {
		cli_complain("stdout", strerror(errno ? errno : EIO));
		return status_exit_code(BRV_IO);
	}
	return exit_code;
}

static int run(struct cli *cli, const struct cli_command *command, int nargs, char **args)
{
	if (nargs < command->min_args || nargs > command->max_args) {
		fprintf(stderr, "brevis: expected: brevis %s %s\n", command->name, command->usage);
		return status_exit_code(BRV_USAGE);
	}
	if (cli->output && command->run != cmd_unpack)
		return usage_error("only unpack has an output file, not", command->name);
	if (cli->keep_going && command->run != cmd_cat && command->run != cmd_test)
		return usage_error("only cat and test know --keep-going, not", command->name);
	enum brv_status status = command->run(cli, nargs, args);
	progress_end(&cli->progress);
	if (status != BRV_OK)
		cli_complain(cli->about, cli->err.text);
	cli_close(cli);
	free(cli->owned);
	return finish(status_exit_code(status));
}

/* What getopt_long stumbled over: a letter, or the word it looked at last. */
static int option_error(const char *what, char **argv)
{
	char letter[3] = { '-', (char)optopt, 0 };
	return usage_error(what, optopt > 0 && optopt < 256 ? letter : argv[optind - 1]);
}

static bool parse_numa(const char *text, brv_numa *out)
{
	static const char *const names[] = { [BRV_NUMA_NONE] = "none", [BRV_NUMA_LOCAL] = "local", [BRV_NUMA_INTERLEAVE] = "interleave" };
	for (size_t i = BRV_NUMA_NONE; i < ARRAY_LEN(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (brv_numa)i;
			return true;
		}
	return false;
}

/* 0: go on; else the exit code plus 1. */
static int parse_option(struct cli *cli, int option, char **argv)
{
	uint64_t number;
	switch (option) {
	case 'o': cli->output = optarg; return 0;
	case 'c': cli->output = "-"; return 0;
	case 'f': cli->force = true; return 0;
	case 'q': cli->quiet = true; return 0;
	case 'v': cli->verbose = true; return 0;
	case OPTION_JSON: cli->json = true; return 0;
	case OPTION_NO_PROGRESS: cli->no_progress = true; return 0;
	case OPTION_KEEP_GOING: cli->keep_going = true; return 0;
	case OPTION_FOREGROUND: cli->foreground = true; return 0;
	case 'T':
		if (!text_number(optarg, 0, CPUS_MAX, &number))
			return 1 + usage_error("expected a number of threads, found", optarg);
		cli->threads = (unsigned)number;
		return 0;
	case 'M':
		if (!text_size(optarg, &cli->memory_limit) || cli->memory_limit == 0)
			return 1 + usage_error("expected a size such as 512M, found", optarg);
		return 0;
	case OPTION_NUMA:
		return parse_numa(optarg, &cli->numa) ? 0 : 1 + usage_error("expected none, local or interleave, found", optarg);
	case OPTION_DROP_CACHE: cli->drop_cache = true; return 0;
	case OPTION_METRICS: cli->metrics = optarg; return 0;
	case OPTION_REPEAT:
		if (!text_number(optarg, 1, MAX_REPEATS, &number))
			return 1 + usage_error("expected a number of rounds up to 99, found", optarg);
		cli->repeats = (unsigned)number;
		return 0;
	case 'V': printf("brevis %s\n", BRV_VERSION_STRING); return 1 + finish(0);
	case 'h': print_help(stdout); return 1 + finish(0);
	case ':': return 1 + option_error("a value is missing behind", argv);
	default: return 1 + option_error("unknown option", argv);
	}
}

int main(int argc, char **argv)
{
	struct cli cli = { .fd = -1 };
	const char *limit = getenv("BREVIS_MEMORY_LIMIT");
	temporary_catch_signals();
	if (limit && *limit && (!text_size(limit, &cli.memory_limit) || cli.memory_limit == 0))
		return usage_error("BREVIS_MEMORY_LIMIT: expected a size such as 512M, found", limit);
	opterr = 0;
	for (;;) {
		int option = getopt_long(argc, argv, short_options, long_options, NULL);
		int code = option < 0 ? 0 : parse_option(&cli, option, argv);
		if (code)
			return code - 1;
		if (option < 0)
			break;
	}
	if (optind == argc)
		return usage_error("expected a command", NULL);
	const struct cli_command *command = find_command(argv[optind]);
	if (!command)
		return usage_error("unknown command", argv[optind]);
	return run(&cli, command, argc - optind - 1, argv + optind + 1);
}

/* cli.h: what the commands of `brevis` share: options, the list of commands, opening an archive, errors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_CLI_H
#define RUNTIME_CLI_H

#include <stdbool.h>

#include "common/outfile.h"
#include "common/progress.h"
#include "common/status.h"
#include "runtime/brevis.h"

struct cli {
	const char *output;             /* -o, NULL: not given */
	bool force, quiet, verbose, json, no_progress, foreground, keep_going;
	unsigned threads, repeats;      /* repeats 0: the default */
	bool drop_cache;
	const char *metrics;            /* a file, or NULL */
	brv_numa numa;
	uint64_t memory_limit;          /* 0: the library's default */

	/* Of the archive that is open; closed by cli_close_archive(). */
	const char *file;               /* as given: "-" is stdin */
	int fd;
	brv_archive *archive;
	brv_pool *pool;                 /* lives on from archive to archive */
	struct progress progress;
	uint64_t lost_nbytes;           /* with keep_going: output bytes of damaged chunks */

	const char *about;              /* the file that err is about: `file` or `target` */
	const char *target;             /* where output goes, for messages */
	char *owned;                    /* its text if it is not the user's */
	char *entry_path;               /* of the file of a directory that is at hand; owned */
	struct error err;
};

/* A command: a row of the table in brevis_main.c. args: what is left after options, nargs of them within the row's limits. */
typedef enum brv_status cli_fn(struct cli *cli, int nargs, char **args);
struct cli_command {
	const char *name, *usage, *help;
	int min_args, max_args;
	cli_fn *run;
};
cli_fn cmd_unpack, cmd_test, cmd_list, cmd_show, cmd_cat, cmd_bench, cmd_mount, cmd_cpu;

/* Opens an archive, and makes a pool of cli->threads if there is none yet. */
enum brv_status cli_open(struct cli *cli, const char *file);
void cli_close_archive(struct cli *cli);
void cli_close(struct cli *cli); /* everything */

/* "brevis: ABOUT: text" on stderr, safe to print; about may be NULL. */
void cli_complain(const char *about, const char *text);

/* Whether a progress line is wanted. */
bool cli_shows_progress(const struct cli *cli);

/* Finds a tensor by the name given on the command line. */
enum brv_status cli_find(struct cli *cli, const char *name, uint64_t *index);

/* What an archive's original is called if nobody says otherwise: "x.safetensors.brv" -> "x.safetensors", "x.brv" and "x" ->
 * "x.safetensors", "-" -> "-". malloc'd; NULL if there is no memory. */
char *cli_original_name(const char *archive);

/* Bytes offset .. offset + nbytes - 1 of the data region, decoded and written to `out` from out_offset on, in bounded memory, in order if `out` is sequential. */
enum brv_status cli_copy(struct cli *cli, struct outfile *out, uint64_t offset, uint64_t nbytes, uint64_t out_offset);

#endif

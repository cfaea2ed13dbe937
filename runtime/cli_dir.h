/* cli_dir.h: a compressed checkpoint directory, as the commands see it. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_CLI_DIR_H
#define RUNTIME_CLI_DIR_H

#include "common/manifest.h"
#include "runtime/cli.h"

struct cli_dir {
	const char *path;               /* the caller's */
	struct manifest manifest;
	bool has_manifest;
	size_t narchives;
};

bool is_directory(const char *path);

/* Reads what the directory holds. BRV_USAGE if that is no archive. cli->about is set for messages. */
enum brv_status cli_dir_open(struct cli *cli, const char *path, struct cli_dir *out);
void cli_dir_close(struct cli_dir *dir);

/* Opens an entry's archive in cli, in place of the one that was open, and compares its size with the list. */
enum brv_status cli_dir_open_archive(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry);

/* Copies a carried file to `out`, or reads it only (NULL), and compares it with the list. *nbytes: its size. */
enum brv_status cli_dir_carry(struct cli *cli, const struct cli_dir *dir, const struct manifest_entry *entry, struct outfile *out,
			      uint64_t *nbytes);

/* cli_open() for commands that want one tensor: `file` may be a directory, then the archive that has the tensor is opened. The argument is a
 * name or, if no tensor has it and bracket is not NULL, a name and rows: "[i:j]" from *bracket on. */
enum brv_status cli_open_tensor(struct cli *cli, const char *file, char *argument, uint64_t *index, const char **bracket);

#endif

/* cmd_unpack.h: the two halves of `brevis unpack`: an archive, and a directory of them. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_CMD_UNPACK_H
#define RUNTIME_CMD_UNPACK_H

#include "runtime/cli.h"

/* The archive that is open, as the file `path` ("-": stdout). */
enum brv_status unpack_archive(struct cli *cli, const char *path, bool force);

/* A compressed checkpoint directory, as a directory: cli->output or its own name without .brv. */
enum brv_status unpack_directory(struct cli *cli, const char *path);

#endif

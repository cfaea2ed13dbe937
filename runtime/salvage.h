/* salvage.h: `--keep-going`: what is left of a damaged archive. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_SALVAGE_H
#define RUNTIME_SALVAGE_H

#include "runtime/cli.h"
#include "runtime/decode.h"

/* Output that is decoded at a time. */
enum { SALVAGE_NBYTES = 32 << 20 };

/* Once, after cli_open(): makes it possible to decode something twice. BRV_DAMAGED if a pipe ends early, BRV_IO. */
enum brv_status salvage_begin(struct cli *cli);

/* Decodes nbytes of the data region from `offset` to dst (NULL: nowhere). Bytes of damaged chunks become zeros; tensor and range of each are
 * told on stderr and counted in cli->lost_nbytes. Fails only for other reasons than damage. */
enum brv_status salvage_window(struct cli *cli, uint64_t offset, uint8_t *dst, uint64_t nbytes);

/* The same to a file, in bounded memory: what cli_copy() does with keep_going. */
enum brv_status salvage_copy(struct cli *cli, struct outfile *out, uint64_t offset, uint64_t nbytes, uint64_t out_offset);

/* At the end: BRV_DAMAGED if something of the nbytes was lost. */
enum brv_status salvage_end(struct cli *cli, uint64_t nbytes);

#endif

/* checkpoint.h: a .safetensors file: its header, checked, and its tensors' bytes on demand.
 *
 * What the reference library refuses is refused here with a reason; what is legal but unusual is kept as it is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_CHECKPOINT_H
#define SYNTH_CHECKPOINT_H

#include "common/archive.h"

struct tensor {
	const char *name;               /* UTF-8, name_nbytes bytes, may contain NUL */
	size_t name_nbytes;
	int64_t name_offset;            /* of these bytes in the header; -1: the header spells the name with escapes */
	const struct ar_dtype *dtype;   /* code AR_DTYPE_OTHER for a type that is not in the table */
	const char *dtype_name;
	const uint64_t *shape;
	size_t ndim;
	uint64_t offset, nbytes;        /* in the data region */
};

struct checkpoint {
	const char *path;
	int fd;
	uint64_t file_nbytes, header_nbytes;
	uint8_t *header;                /* header_nbytes bytes of JSON */
	struct tensor *tensor;          /* by data offset, then by order in the header */
	size_t ntensors;
	void *json, *shapes, *names;    /* own what the tensors point to */
};

/* Opens a regular file and checks its header. BRV_INPUT if it is no valid safetensors file, BRV_IO. */
enum brv_status checkpoint_open(const char *path, struct checkpoint *out, struct error *err);
void checkpoint_close(struct checkpoint *checkpoint);

/* Reads nbytes at `offset` of the data region. BRV_IO; a file that has become shorter is BRV_INPUT. */
enum brv_status checkpoint_read(const struct checkpoint *checkpoint, uint64_t offset, void *dst, uint64_t nbytes, struct error *err);

#endif

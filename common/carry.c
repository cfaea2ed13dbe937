/* carry.c: files that are read to their end (carry.h). SPDX-License-Identifier: Apache-2.0 */
#include "common/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/temporary.h"

enum { PART_NBYTES = 1 << 20 };

int carry_open(const char *path, enum brv_status *status, struct error *err)
{
	struct stat st;
	const int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	*status = BRV_OK;
	if (fd < 0 || fstat(fd, &st) != 0)
		*status = fail_errno(err, "cannot open it");
	else if (!S_ISREG(st.st_mode))
		*status = fail(err, BRV_INPUT, "not a regular file");
	if (*status == BRV_OK)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

enum brv_status read_all(int fd, size_t most, struct buffer *out, struct error *err)
{
	enum { STEP_NBYTES = 1 << 16 };
	for (;;) {
		uint8_t *part = buffer_grow(out, STEP_NBYTES);
		if (!part)
			return fail(err, BRV_MEMORY, "no memory to read it");
		const ssize_t n = TEMP_FAILURE_RETRY(read(fd, part, STEP_NBYTES));
		out->nbytes -= STEP_NBYTES - (size_t)MAX(n, 0);
		if (n < 0)
			return fail_errno(err, "cannot read");
		if (n == 0)
			return BRV_OK;
		if (out->nbytes > most)
			return fail(err, BRV_LIMIT, "more than %zu bytes", most);
	}
}

static enum brv_status carry_parts(int fd, struct outfile *out, uint8_t *part, XXH3_state_t *state, uint64_t *nbytes, bool *writing,
				   struct error *err)
{
	for (;;) {
		const ssize_t n = read(fd, part, PART_NBYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(err, "cannot read");
		if (n == 0)
			return BRV_OK;
		XXH3_64bits_update(state, part, (size_t)n);
		if (out) {
			*writing = true;
			TRY(outfile_write(out, part, (size_t)n, *nbytes, err));
			*writing = false;
		}
		*nbytes += (uint64_t)n;
	}
}

enum brv_status carry(int fd, struct outfile *out, uint64_t *nbytes, uint64_t *sum, bool *writing, struct error *err)
{
	XXH3_state_t *state = XXH3_createState();
	uint8_t *part = malloc(PART_NBYTES);
	enum brv_status status;

	*nbytes = 0, *writing = false;
	if (state && part) {
		XXH3_64bits_reset(state);
		status = carry_parts(fd, out, part, state, nbytes, writing, err);
		*sum = XXH3_64bits_digest(state);
	} else {
		status = fail(err, BRV_MEMORY, "no memory to copy a file");
	}
	XXH3_freeState(state);
	free(part);
	return status;
}

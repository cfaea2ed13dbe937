/* fuzz_input.h: what every fuzz target needs: decisions read off the input, and bytes as a file. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Stops the process, whatever NDEBUG says: the fuzzer keeps the input. */
#define FUZZ_CHECK(condition, ...)                                                                    \
	do {                                                                                          \
		if (!(condition)) {                                                                   \
			fprintf(stderr, "%s:%d: %s does not hold: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__);                                                 \
			fprintf(stderr, "\n");                                                        \
			abort();                                                                      \
		}                                                                                     \
	} while (0)

/* Decisions. An input that has ended decides 0, so that short inputs mean something simple. */
struct fuzz_input {
	const uint8_t *at, *end;
};

static inline unsigned fuzz_u8(struct fuzz_input *in) { return in->at < in->end ? *in->at++ : 0; }
static inline unsigned fuzz_u16(struct fuzz_input *in)
{
	const unsigned low = fuzz_u8(in);
	return low | fuzz_u8(in) << 8;
}
static inline uint64_t fuzz_u64(struct fuzz_input *in)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < 8; i++)
		v |= (uint64_t)fuzz_u8(in) << 8 * i;
	return v;
}
/* 0..n-1 */
static inline unsigned fuzz_below(struct fuzz_input *in, unsigned n) { return (n > 256 ? fuzz_u16(in) : fuzz_u8(in)) % n; }

/* An unlinked file in memory that holds the bytes, and the path by which this process can open it. The caller closes it. */
static inline int fuzz_file(const void *bytes, size_t nbytes, char path[64])
{
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && write(fd, bytes, nbytes) == (ssize_t)nbytes, "no file in memory");
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

#endif

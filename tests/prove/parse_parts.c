/* parse_parts.c: parts of the parser: the section of programs, and the size of a tensor from its shape.
 *
 * Sections are of any bytes but for their counts, and end where memory ends. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/parse.c"

enum { MOST_DIMS = 3 };

static struct view view;
static struct error err;

static struct parser start(void)
{
	view = (struct view){ 0 };
	return (struct parser){ .view = &view, .limit = any_u64(), .err = &err };
}

/* One program that says it has n instructions, in a section with `room` bytes for them. */
static void code(unsigned n, unsigned room)
{
	uint8_t memory[2 + (BC_MAX_INSTR + 2) * BC_INSTR_NBYTES], *bytes = memory + sizeof memory - 2 - room;
	struct parser p = start();

	anything(memory, sizeof memory);
	bytes[0] = 1, bytes[1] = (uint8_t)n;
	view.section[AR_CODE] = (struct span){ bytes, 2 + room };
	if (parse_code(&p) == BRV_OK) {
		//@ assert view.nprograms == 1 && 1 <= n <= 64 && room == 16 * n;
	}
	free(view.program);
}

static void shape(unsigned ndim)
{
	uint64_t dim[MOST_DIMS];
	struct stream stream = { .ndim = ndim };
	struct parser p = start();

	anything(dim, sizeof dim);
	view.dim = dim;
	for (unsigned dtype = 0; dtype < AR_DTYPE_OTHER; dtype++) {
		stream.dtype = (uint8_t)dtype;
		if (!dtype_by_code(stream.dtype) || measure(&p, &stream) != BRV_OK)
			continue;
		//@ assert stream.data_nbytes < 0x8000000000000000;
	}
}

int main(void)
{
	for (unsigned n = 0; n <= BC_MAX_INSTR + 1; n = n < 3 ? n + 1 : n + 31)
		for (unsigned more = 0; more <= 2; more++)
			if (n + more >= 1)
				code(n, n * BC_INSTR_NBYTES + more - 1);
	for (unsigned ndim = 0; ndim <= MOST_DIMS; ndim++)
		shape(ndim);
	return 0;
}

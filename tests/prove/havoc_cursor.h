/* havoc_cursor.h: a reader that gives any value and goes anywhere, for proofs of loops that read more bytes than can be followed.
 *
 * It stands in for the bounded reader, of whose steps it does all that their proof (cursor.c) leaves open. SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVE_HAVOC_CURSOR_H
#define PROVE_HAVOC_CURSOR_H

#include "common/archive.h"

/* What a read gives: any value of low..high. */
struct havoc {
	uint64_t low, high;
};
#define HAVOC_ANY { 0, UINT64_MAX }
#define HAVOC_IS(value) { value, value }

/* What cursors read from now on: nbytes that end where their memory does. The first bytes and the first numbers are as the lists say, which the caller
 * keeps; behind those they are any. */
void havoc_start(const uint8_t *bytes, unsigned nbytes, const struct havoc *byte, unsigned nbyte, const struct havoc *number, unsigned nnumber);

#endif

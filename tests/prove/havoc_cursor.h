/* havoc_cursor.h: a reader that gives any value and goes anywhere, for proofs of loops that read more bytes than can be followed.
 *
 * It stands in for the bounded reader, of whose steps it does all that their proof (cursor.c) leaves open. SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVE_HAVOC_CURSOR_H
#define PROVE_HAVOC_CURSOR_H

#include "common/archive.h"

/* What cursors read from now on: nbytes, of which the first `exact` come as they are. */
void havoc_start(const uint8_t *bytes, unsigned nbytes, unsigned exact);

#endif

/* deal.h: the operand of a deal (docs/FORMAT.md, 5.2): words of a few bits, cut into fields that lie apart in a record, as quantised blocks have them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_DEAL_H
#define COMMON_DEAL_H

#include "common/base.h"

enum { DEAL_FIELDS = 3, DEAL_MAX_BITS = 16 };

struct deal_field {
	unsigned bits, shift;           /* which bits of the argument's words */
	unsigned stride;                /* S: words of the result that lie side by side while the next bits of each come from S words further on */
	unsigned each;                  /* words of the argument that a word of the result has this field of */
};

struct deal {
	unsigned block;                 /* E: words of the argument in a block */
	unsigned nwords;                /* of the result in a block */
	unsigned nfields;
	struct deal_field field[DEAL_FIELDS];
};

/* False if imm is no operand for words of `width` bits made of words of `from` bits. */
bool deal_parse(uint64_t imm, unsigned width, unsigned from, struct deal *out);

/* The part of an operand that says one field, at place `at`; that of the block is E itself. */
#define DEAL_FIELD(at, bits, shift, stride) ((uint64_t)((bits) | (shift) << 4 | ((stride) - 1) << 8) << (16 + 16 * (at)))

/* Most words that a deal takes for each that it produces, rounded up: their bits are as many. */
static inline unsigned deal_most_words(unsigned width, unsigned from) { return width / from + (width % from != 0); }

#endif

/* enc_rans.h: a lit.rans table turned around for encoding, as all kernel sets read it.
 *
 * Everything is found by the index of a symbol in its row class, column * nb + symbol index: at most 256 of them, so that vector sets look
 * them up as bytes. A state x < 2^16 goes to (x / freq) << 8 | position[start + x % freq], after x >= freq << 8 has given away its low byte;
 * then x / freq < 256. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_ENC_RANS_H
#define KERNELS_ENC_RANS_H

#include "kernels/kernel.h"

#define ENC_INLINE static inline __attribute__((always_inline))

enum { ENC_NO_INDEX = 255, ENC_BIG = 256 };

/* For one word at a time. With r = ceil(2^24 / freq), x * r >> 24 is x / freq for all x < freq << 8, and x * r is below 2^32: it exceeds
 * (x << 24) / freq by less than x, and x * freq < 2^24. */
struct enc_code {
	uint32_t reciprocal;
	uint16_t limit;                 /* freq << 8 */
	uint16_t start;                 /* in position[] */
};

struct enc_rows {
	struct enc_code code[256];
	uint8_t position[RANS_MAX_COLS * 256];    /* of each column class: symbol j's are at [start[j]], in rank order */
	uint8_t absent[64], patched[64];        /* by column class: the index for a byte that the pair cannot code, and for a patched word */
	/* For many words at a time: the reciprocal is floor(2^16 / freq), at most 65535; its quotient may be 1 too small. */
	uint8_t freq[256], start[256], low[256], high[256];     /* low and high byte of the reciprocal */
	uint32_t packed[256];           /* reciprocal << 16 | freq << 8 | start */
};

/* One item being encoded. */
struct enc_rans {
	const struct kn_enc_args *args;
	const struct kn_rans *table;
	uint8_t index_of[256];          /* byte -> symbol index, ENC_NO_INDEX: none */
	uint8_t tail_of[256];           /* byte -> tail nibble, 15: literal */
	uint8_t *index;                 /* of each word */
	uint64_t *special;              /* a bit for each word: it is an escape or a patch */
	uint8_t *at;                    /* renormalisation bytes grow downward from the end of scratch; 64 bytes below them may be written */
	uint16_t state[RANS_LANES];
	struct enc_rows rows[KN_MAX_ROWS];
};

/* Row class tables and column classes of the words from i on, i a multiple of 128; *column is NULL if there is one class. */
ENC_INLINE const struct enc_rows *enc_rows_at(const struct enc_rans *run, size_t i, const uint8_t **column)
{
	const struct kn_enc_args *a = run->args;
	const bool rows = a->row_class && run->table->kr > 1, cols = a->col_class && run->table->kc > 1;
	const size_t row = rows || cols ? (a->first + i) / a->row_words : 0;

	*column = cols ? a->col_class + (a->first + i - row * a->row_words) : NULL;
	return &run->rows[rows ? a->row_class[row] : 0];
}

#endif

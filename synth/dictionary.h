/* dictionary.h: which tensors are made of few distinct words, and lookup run backward.
 *
 * Codes of dequantised weights ascend with the words that they stand for, so a dictionary is sorted: indices are then codes again, and their
 * distribution is what the entropy coders know. Words with their top bit set (negative numbers) begin at the middle of the index if they fit there,
 * so that a chunk or row without the largest code does not move all indices; gaps are filled with the word before them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_DICTIONARY_H
#define SYNTH_DICTIONARY_H

#include "synth/invert.h"

enum {
	DICTIONARY_SMALL_BITS = 8,      /* index widths up to this are exact and have negative words in their upper half */
	DICTIONARY_BITS = 16,           /* the index width of all larger dictionaries */
};

/* lookup backward: arg[0] receives the dictionaries, arg[1] the index, whose widths are set. False if there are more distinct words than index or
 * words allow, or memory is short. */
bool invert_lookup(uint64_t imm, struct words target, struct words_out *arg);

/* The index width that all chunks of the stream need with dictionaries for `block` words (0: a chunk). 0: the dictionaries would be too large to pay. */
unsigned dictionary_bits(const void *words, uint64_t nwords, unsigned width, uint64_t chunk_words, uint64_t block);

/* Whether pieces of the stream look as if few distinct words made it: a cheap look at some places. block: as above. */
bool dictionary_promises(const void *words, uint64_t nwords, unsigned width, uint64_t block);

#endif

/* same.h: tensors, and rows of tensors, whose bytes were there before: they become refs. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_SAME_H
#define SYNTH_SAME_H

#include <xxhash.h>

#include "synth/program_for.h"

/* Hashes of a tensor and of its rows (nrows 0: it has none that are worth it). Owned by whoever made it, until same_find() takes it over. */
struct fingerprint {
	XXH128_hash_t whole, *row;
	size_t nrows;
};
void fingerprint_make(const struct source *source, struct fingerprint *out);

/* What an earlier tensor has of a tensor. */
struct same_match {
	int64_t tensor;                 /* its index; -1: nothing */
	bool whole;                     /* all of it, from its first word on */
	uint64_t *first;                /* else by chunk: the earlier tensor's word that it begins with, or SAME_NOTHING; owned by the caller */
};
#define SAME_NOTHING UINT64_MAX

/* The tensors seen so far. NULL: no memory. */
struct same *alloc_same(size_t ntensors);
void free_same(struct same *same);

/* What is the same in an earlier tensor; then the tensor is added. Call it for one tensor after the other, in order. chunk_words: of its chunks. BRV_MEMORY. */
enum brv_status same_find(struct same *same, size_t index, const struct source *source, struct fingerprint *print, uint64_t chunk_words,
			  struct same_match *out);

#endif

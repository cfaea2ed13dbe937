/* program_for.h: one stream's way from words to a coded stream: sample, search, classes, tables.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_PROGRAM_FOR_H
#define SYNTH_PROGRAM_FOR_H

#include "synth/encode.h"
#include "synth/kin.h"
#include "synth/search.h"

/* What is asked of the search, the same for all tensors. */
struct synth_plan {
	struct cost_model model;
	struct search_limits limits;
	const struct prior *prior;
	size_t sample_words;            /* most words that the search looks at */
	size_t class_budget;            /* words that the assignment of classes looks at */
	unsigned kr, kc;                /* row and column classes, at most; 1, 1: none */
	uint64_t pair_words;            /* words that a class pair should have */
	uint64_t chunk_nbytes;          /* decoded bytes of a chunk, about */
};

/* A stream to be coded. */
struct source {
	const void *words;
	uint64_t nwords;
	unsigned width;
	uint8_t dtype;                  /* code, for the prior and the view of classes */
	uint64_t rows, row_words;       /* of the tensor; 0 rows: no geometry */
	uint64_t chunk_words;           /* 0: the default */
	uint64_t block;                 /* words that share few distinct ones, each with those of its own: a row, or a group of it; 0: none. source_look() */
	const struct record_type *record; /* quantised blocks that the words, bytes, seem to be; NULL: none. source_look() */
	bool few;                       /* few distinct words seem to make a chunk */
	uint64_t whole_nwords;          /* of the tensor that this is a part of, for the prior; 0: this is all */
};

/* Sets block, record and few from the words. */
void source_look(struct source *source);

/* Finds a program and prepares the stream. learn (may be NULL) is told what won; explain (may be NULL) receives the candidates. */
enum brv_status program_for(const struct synth_plan *plan, const struct source *source, struct coded_stream *stream, struct prior *learn,
			    FILE *explain, unsigned *expansions);

/* The same with what was found for tensors of the source's kind. found->n is 0 unless there was a search, which found->expr[] is of. */
enum brv_status program_like(const struct synth_plan *plan, const struct source *source, const struct kin *kin, struct coded_stream *stream,
			     struct kin_example *found, unsigned *expansions);

/* A stream that refers to an equal tensor. */
enum brv_status program_ref(const struct synth_plan *plan, const struct source *source, uint64_t tensor, struct coded_stream *stream);

/* Words of a chunk of a stream that does not say it itself: whole records, and a power of two where there are none. */
uint64_t chunk_words_for(const struct synth_plan *plan, const struct source *source);

#endif

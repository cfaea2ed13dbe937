/* starts.h: streams that a lookup or a scatter may make: found by their words, then searched with the root filled.
 *
 * The search itself never tries either: ordinary weights pay nothing for them. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_STARTS_H
#define SYNTH_STARTS_H

#include "synth/program_for.h"

enum { STARTS_MAX = 5 };

struct starts {
	unsigned count;
	struct start start[STARTS_MAX];
};

/* What the stream's words, and their sample in targets, look like. */
void starts_find(struct starts *starts, const struct source *source, uint64_t chunk_words, const struct targets *targets);

/* Searches without a start and with each, and leaves the cheapest. Adds the expansions. BRV_MEMORY. */
enum brv_status search_starts(struct search *search, const struct starts *starts, struct search_result *result, unsigned *expansions);

#endif

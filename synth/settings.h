/* settings.h: what is asked of the search for all tensors, from the options. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_SETTINGS_H
#define SYNTH_SETTINGS_H

#include "synth/checkpoint.h"
#include "synth/program_for.h"
#include "synth/synth.h"

struct synth_plan plan_of(const struct synth_options *options, const struct prior *prior);

/* A tensor as a stream of words: its type's, bytes where that does not fit. words may be NULL and set later. */
struct source source_of(const struct tensor *tensor, const void *words);

#endif

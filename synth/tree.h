/* tree.h: a checkpoint directory turned into a directory of archives (docs/FORMAT.md, section 10). SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_TREE_H
#define SYNTH_TREE_H

#include "synth/synth.h"

/* Every .safetensors file below `in` becomes an archive in `out`, every other file is copied. Indexes, headers and names are checked before anything is written.
 * What an earlier run has finished, and still stands for the input, is kept; each file appears whole or not at all. With options->shards, only
 * a part of the archives, always the same, is made; job 0 also copies the other files. */
enum brv_status synth_tree(const char *in, const char *out, const struct synth_options *options, struct synth_report *report,
			   struct error *err);

#endif

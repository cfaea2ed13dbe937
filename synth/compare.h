/* compare.h: the last stage: nothing gets its name that does not decode to what it was made from. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_COMPARE_H
#define SYNTH_COMPARE_H

#include "synth/checkpoint.h"

/* Decodes the archive in fd (readable, from its start) and compares header and data with the checkpoint. BRV_OTHER if they differ, BRV_IO, BRV_MEMORY. */
enum brv_status compare_archive(int fd, const struct checkpoint *checkpoint, unsigned threads, struct error *err);

#endif

/* field16.h: a bit field of 16-bit words. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_FIELD16_H
#define SYNTH_FIELD16_H

#include "common/base.h"

/* out[i] = words[i], rotated left by `rotate` (0..15) and shifted right by `shift`, its `bits` low bits: n bytes if bits <= 8, else n uint16_t. Nothing needs
 * to be aligned. */
void field16(const void *words, size_t n, unsigned rotate, unsigned shift, unsigned bits, void *out);

#endif

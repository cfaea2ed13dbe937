/* enc_wide.c: the encoder of lit.wide. Returns 0 if a word has no code and its class pair no escape. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/enc_coded.h"

static struct coded_table *alloc_table(const struct kn_enc_args *args)
{
	const struct kn_wide *t = &args->table->wide;
	const unsigned pairs = (unsigned)t->kr * t->kc;
	struct coded_table *e = calloc(1, sizeof(*e) + pairs * sizeof(e->code[0]));

	if (!e)
		return NULL;
	coded_start(e, args, t->width, t->value, t->nsym, t->has_escape);
	for (unsigned pair = 0; pair < pairs; pair++)
		for (unsigned slot = 0; slot < 1u << WIDE_BITS;) {
			const uint32_t entry = t->slot[(size_t)pair << WIDE_BITS | slot], freq = entry >> 20;
			e->code[pair][entry >> 12 & 255] = coded_symbol(freq, slot);
			slot += freq;
		}
	return e;
}

static uint8_t *put_states(uint8_t *dst, const uint32_t *state)
{
	memcpy(dst, state, WIDE_LANES * sizeof(*state));
	return dst + WIDE_LANES * sizeof(*state);
}

size_t KN(enc_wide)(const struct kn_enc_args *args)
{
	static const struct coded_kind kind = { WIDE_LANES, 32 - WIDE_BITS, 65536, put_states };
	struct coded_table *e = alloc_table(args);

	if (!e)
		return 0;
	const size_t nbytes = coded_encode(e, &kind);
	free(e);
	return nbytes;
}

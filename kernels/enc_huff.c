/* enc_huff.c: the encoder of lit.huff. Returns 0 if a word has no code. SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"
#include "kernels/body.h"

enum { SEGMENTS = 8, ONE_SEGMENT_BELOW = 256 };

/* Appends the codes of n words; NULL if one has none. */
static uint8_t *put_segment(const struct kn_huff *t, const uint8_t *word, size_t n, uint8_t *out)
{
	uint64_t bits = 0;
	unsigned count = 0;

	for (size_t i = 0; i < n; i++) {
		if (!t->length[word[i]])
			return NULL;
		bits |= (uint64_t)t->code[word[i]] << count;
		count += t->length[word[i]];
		if (count >= 32) {
			store_u32(out, (uint32_t)bits);
			out += 4, bits >>= 32, count -= 32;
		}
	}
	for (; (int)count > 0; count -= MIN(count, 8u), bits >>= 8)
		*out++ = (uint8_t)bits;
	return out;
}

size_t KN(enc_huff)(const struct kn_enc_args *args)
{
	const unsigned nsegments = args->n < ONE_SEGMENT_BELOW ? 1 : SEGMENTS;
	const size_t q = ceil_div(args->n, nsegments);
	struct buffer head = { args->dst, 0, 10 * SEGMENTS, false };
	uint8_t *at = args->scratch;

	for (unsigned s = 0; s < nsegments; s++) {
		const size_t from = MIN(s * q, args->n), to = MIN((s + 1) * q, args->n);
		uint8_t *end = put_segment(&args->table->huff, (const uint8_t *)args->src + from, to - from, at);
		if (!end)
			return 0;
		if (s + 1 < nsegments)
			buffer_put_varint(&head, (uint64_t)(end - at));
		at = end;
	}
	memcpy(args->dst + head.nbytes, args->scratch, (size_t)(at - args->scratch));
	return head.nbytes + (size_t)(at - args->scratch);
}

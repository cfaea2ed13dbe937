/* op_merge.c: merge: bit fields side by side (docs/FORMAT.md, 5.2).
 *
 * More than two fields are joined a block of words at a time, so that what is between the passes stays in the first-level cache: neighbours
 * first in bytes as long as they fit, then in words of 16, 32 and 64 bits, for a pass costs by the size of what it writes. The last few go
 * into the result one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/body.h"
#include "common/by_size.h"

/* Blocks between passes: at most 8 joined fields of 1 byte, 7 of 2 (each has more than 8 bits of 64), 3 of 4. */
enum { BLOCK = 2048, ROOM_NBYTES = (8 * 1 + 7 * 2 + 3 * 4) * BLOCK };

/* A field, or some that have been joined. */
struct part {
	const void *words;
	unsigned width, size;           /* bits; bytes of a word */
};

/* out = a | b << a's width. Bytes go eight at a time: shifted, their words have no bits beyond them, and vectors
 * have no shifts of bytes. */
static void join_two(void *restrict out, unsigned size, struct part a, struct part b, size_t n)
{
	const unsigned shift = a.width;
	const size_t together = size == 1 ? n / 8 : n;

	if (size == 1)
		a.size = b.size = 8;
	BY_SIZE(T, size == 1 ? 8 : size, {
		T *restrict to = out;
		BY_SIZE(A, a.size, {
			const A *low = a.words;
			BY_SIZE(B, b.size, {
				const B *high = b.words;
				for (size_t i = 0; i < together; i++)
					to[i] = (T)((T)low[i] | (T)((T)high[i] << shift));
			})
		})
	})
	for (size_t i = 8 * together; i < n; i++)
		((uint8_t *)out)[i] = (uint8_t)(((const uint8_t *)a.words)[i] | ((const uint8_t *)b.words)[i] << shift);
}

/* out |= b << shift */
static void join_next(void *restrict out, unsigned size, struct part b, unsigned shift, size_t n)
{
	const size_t together = size == 1 ? n / 8 : n;

	BY_SIZE(T, size == 1 ? 8 : size, {
		T *restrict to = out;
		BY_SIZE(B, size == 1 ? 8 : b.size, {
			const B *high = b.words;
			for (size_t i = 0; i < together; i++)
				to[i] |= (T)((T)high[i] << shift);
		})
	})
	for (size_t i = 8 * together; i < n; i++)
		((uint8_t *)out)[i] |= (uint8_t)(((const uint8_t *)b.words)[i] << shift);
}

/* Joins neighbours as far as they fit words of `size` bytes: in dst if all do, else in *room. Returns the number of parts then. */
static unsigned join_level(struct part *part, unsigned nparts, unsigned size, void *dst, uint8_t **room, size_t n)
{
	unsigned left = 0;

	for (unsigned k = 0, next; k < nparts; k = next) {
		unsigned width = part[k].width;
		for (next = k + 1; next < nparts && width + part[next].width <= 8 * size;)
			width += part[next++].width;
		if (next == k + 1) {
			part[left++] = part[k];
			continue;
		}
		void *out = next - k == nparts ? dst : *room;
		*room += out == dst ? 0 : (size_t)BLOCK * size;
		join_two(out, size, part[k], part[k + 1], n);
		unsigned shift = part[k].width + part[k + 1].width;
		for (unsigned j = k + 2; j < next; shift += part[j++].width)
			join_next(out, size, part[j], shift, n);
		part[left++] = (struct part){ out, width, size };
	}
	return left;
}

static struct part part_at(const struct kn_args *args, unsigned k, size_t at)
{
	const unsigned size = word_nbytes(args->src_width[k]);
	return (struct part){ (const uint8_t *)args->src[k] + at * size, args->src_width[k], size };
}

bool KN(merge)(const struct kn_args *args)
{
	const unsigned size = word_nbytes(args->width);
	struct part part[BC_MAX_ARGS];
	uint8_t room[ROOM_NBYTES];

	if (args->nsrc == 2) {
		join_two(args->dst, size, part_at(args, 0, 0), part_at(args, 1, 0), args->n);
		return true;
	}
	for (size_t at = 0; at < args->n; at += BLOCK) {
		const size_t n = MIN(args->n - at, (size_t)BLOCK);
		unsigned nparts = args->nsrc;
		uint8_t *free_room = room;
		for (unsigned k = 0; k < nparts; k++)
			part[k] = part_at(args, k, at);
		for (unsigned level = 1; nparts > 1; level = nparts <= 4 ? size : 2 * level)
			nparts = join_level(part, nparts, level, (uint8_t *)args->dst + at * size, &free_room, n);
	}
	return true;
}

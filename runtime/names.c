/* names.c: names of tensors (names.h).
 *
 * The hash is seeded at random, so that an archive cannot be made whose names all collide. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/names.h"

#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "common/text.h"

struct span stream_name(const struct view *view, const uint8_t *header, const struct stream *stream)
{
	const uint8_t *base = stream->name_in_header ? header : (const uint8_t *)view->text;
	return (struct span){ base + stream->name_at, stream->name_nbytes };
}

static bool is_utf8(struct span text)
{
	const uint8_t *at = text.ptr, *end = at + text.nbytes;
	while (at < end) {
		/* Names are nearly always plain ASCII: eight bytes at a time. */
		if (end - at >= 8 && !(load_u64(at) & 0x8080808080808080ull)) {
			at += 8;
			continue;
		}
		unsigned n = text_utf8(at, end);
		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

/* The slot that holds the name, or the empty one where it belongs. */
static uint32_t *find_slot(const struct names *names, const void *name, size_t nbytes)
{
	uint64_t at = XXH3_64bits_withSeed(name, nbytes, names->seed);
	for (;; at++) {
		uint32_t *slot = &names->slot[at & names->mask];
		if (*slot == 0)
			return slot;
		struct span other = stream_name(names->view, names->header, &names->view->stream[*slot]);
		if (other.nbytes == nbytes && memcmp(other.ptr, name, nbytes) == 0)
			return slot;
	}
}

static uint64_t slot_count(const struct view *view)
{
	uint64_t count = 4;
	while (count < 2ull * view->ntensors)
		count *= 2;
	return count;
}

uint64_t names_nbytes(const struct view *view) { return slot_count(view) * sizeof(uint32_t); }

/* Offset in the header of a name `distance` bytes behind the end of the one before. */
static bool place_name(struct stream *stream, uint64_t header_nbytes, uint64_t *previous_end)
{
	if (!stream->name_in_header)
		return true;
	int64_t at;
	if (__builtin_add_overflow((int64_t)*previous_end, stream->name_at, &at) || at < 0 || (uint64_t)at > header_nbytes ||
	    stream->name_nbytes > header_nbytes - (uint64_t)at)
		return false;
	stream->name_at = at;
	*previous_end = (uint64_t)at + stream->name_nbytes;
	return true;
}

enum brv_status names_resolve(struct names *names, struct view *view, const uint8_t *header, uint64_t header_nbytes, struct error *err)
{
	*names = (struct names){ .view = view, .header = header, .mask = slot_count(view) - 1 };
	uint64_t previous_end = 0;
	names->slot = calloc(names->mask + 1, sizeof *names->slot);
	if (!names->slot)
		return fail(err, BRV_MEMORY, "no memory for the names of %u tensors", view->ntensors);
	if (getrandom(&names->seed, sizeof names->seed, GRND_NONBLOCK) != sizeof names->seed)
		names->seed = (uint64_t)(uintptr_t)names->slot;
	for (uint32_t i = 0; i < view->nstreams; i++) {
		struct stream *stream = &view->stream[i];
		if (stream->kind != AR_TENSOR)
			continue;
		if (!(view->prelude.flags & AR_FLAG_ENTRIES) && !place_name(stream, header_nbytes, &previous_end))
			return fail(err, BRV_DAMAGED, "stream %u: its name is not inside the header", i);
		struct span name = stream_name(view, header, stream);
		if (!is_utf8(name))
			return fail(err, BRV_DAMAGED, "stream %u: its name is not UTF-8", i);
		uint32_t *slot = find_slot(names, name.ptr, name.nbytes);
		if (*slot)
			return fail(err, BRV_DAMAGED, "streams %u and %u have the same name", *slot, i);
		*slot = i;
	}
	return BRV_OK;
}

void names_free(struct names *names)
{
	free(names->slot);
	*names = (struct names){ 0 };
}

uint32_t names_find(const struct names *names, const void *name, size_t nbytes) { return *find_slot(names, name, nbytes); }

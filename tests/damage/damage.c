/* damage.c: an archive damaged in thousands of ways, each opened and decoded through the public library: refused, or right; never wrong.
 *
 *     damage cut ARCHIVE MOST              cut to every length, or to MOST of them evenly
 *     damage flip ARCHIVE MOST SEED        every single bit flipped, or MOST random ones
 *     damage splice ARCHIVE MOST SEED [OTHER...]
 *                                          blocks swapped, copied, zeroed, removed, put in; chunks' payloads swapped; the beginning of this
 *                                          archive with the end of another
 *
 * Prints  N tried: N refused, N right, N with other tensors readable. Exit: 1 with a line about the first damage that was not noticed.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/archive.h"
#include "runtime/object.h"

#define MEMORY_LIMIT (256ull << 20)

/* What an archive stands for. */
struct content {
	brv_info info;
	uint8_t *header, *data;
	brv_tensor *tensor;
	uint64_t nrefs;
};

struct tally {
	uint64_t tried, refused, right, readable;
};

struct archive {
	uint8_t *bytes;
	size_t nbytes;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "damage: %s: %s\n", what, why);
	exit(2);
}

static struct archive read_file(const char *path)
{
	struct buffer all = { 0 };
	uint8_t part[65536];
	FILE *file = fopen(path, "rb");
	if (!file)
		die(path, "cannot be opened");
	for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
		buffer_put(&all, part, n);
	fclose(file);
	return (struct archive){ all.data, all.nbytes };
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return limit ? (z ^ z >> 31) % limit : 0;
}

static brv_status_code open_bytes(const uint8_t *bytes, size_t nbytes, brv_archive **archive, brv_error *error)
{
	const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = MEMORY_LIMIT };
	return brv_open_memory(bytes, nbytes, &options, archive, error);
}

/* Keeps the archive open: the names are its own. */
static brv_archive *load_content(const struct archive *whole, struct content *content)
{
	brv_archive *archive;
	brv_error error;
	if (open_bytes(whole->bytes, whole->nbytes, &archive, &error) != BRV_SUCCESS)
		die("the whole archive is refused", error.text);
	brv_get_info(archive, &content->info);
	content->nrefs = archive->view.nrefs;
	content->header = (uint8_t *)brv_header(archive);
	content->data = malloc(content->info.data_nbytes + 1);
	content->tensor = calloc(content->info.tensor_count + 1, sizeof *content->tensor);
	if (brv_decode_data(archive, 0, content->data, content->info.data_nbytes, NULL, &error) != BRV_SUCCESS)
		die("the whole archive is refused", error.text);
	for (uint64_t i = 0; i < content->info.tensor_count; i++)
		brv_get_tensor(archive, i, &content->tensor[i], NULL);
	return archive;
}

static bool refusal(brv_status_code status)
{
	return status == BRV_E_DAMAGED || status == BRV_E_VERSION || status == BRV_E_LIMIT;
}

static bool same_tensor(const brv_tensor *a, const brv_tensor *b)
{
	return a->name_nbytes == b->name_nbytes && !memcmp(a->name, b->name, a->name_nbytes) && !strcmp(a->dtype, b->dtype) && a->ndim == b->ndim &&
	       (a->ndim == 0 || !memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape)) && a->data_offset == b->data_offset &&
	       a->data_nbytes == b->data_nbytes;
}

/* Everything that an open archive says, against what it has to say. NULL, or what is wrong. *nlost: tensors that are refused. */
static const char *compare(brv_archive *archive, const struct content *content, uint64_t *nlost)
{
	brv_info info;
	const char *wrong = NULL;
	brv_get_info(archive, &info);
	if (info.header_nbytes != content->info.header_nbytes || memcmp(brv_header(archive), content->header, info.header_nbytes))
		return "another header";
	if (info.data_nbytes != content->info.data_nbytes || info.tensor_count != content->info.tensor_count)
		return "other sizes";
	uint8_t *data = malloc(info.data_nbytes + 1);
	for (uint64_t i = 0; i < info.tensor_count && !wrong; i++) {
		brv_tensor tensor;
		brv_error error;
		const brv_tensor *expected = &content->tensor[i];
		if (brv_get_tensor(archive, i, &tensor, &error) != BRV_SUCCESS || !same_tensor(&tensor, expected)) {
			wrong = "another tensor";
			break;
		}
		brv_status_code status = brv_decode_tensor(archive, i, data, tensor.data_nbytes, NULL, &error);
		if (status == BRV_SUCCESS && memcmp(data, content->data + expected->data_offset, expected->data_nbytes))
			wrong = "wrong bytes without an error";
		else if (status != BRV_SUCCESS && (!refusal(status) || !error.text[0]))
			wrong = "a refusal that is none";
		*nlost += status != BRV_SUCCESS;
	}
	free(data);
	return wrong;
}

/* Tries a damaged archive of exactly nbytes. what, a, b: the damage, for the message. */
static void try_bytes(struct tally *tally, const struct content *content, const uint8_t *bytes, size_t nbytes, const char *what, uint64_t a,
		      uint64_t b)
{
	brv_archive *archive;
	brv_error error = { "" };
	uint64_t nlost = 0;
	const char *wrong = NULL;
	brv_status_code status = open_bytes(bytes, nbytes, &archive, &error);
	tally->tried++;
	if (status == BRV_SUCCESS) {
		wrong = compare(archive, content, &nlost);
		tally->right += nlost == 0;
		tally->refused += nlost > 0;
		tally->readable += nlost > 0 && nlost < content->info.tensor_count;
	} else {
		wrong = refusal(status) && error.text[0] ? NULL : "a refusal that is none";
		tally->refused++;
	}
	brv_close(archive);
	if (wrong) {
		printf("%s %llu %llu: %s: %s\n", what, (unsigned long long)a, (unsigned long long)b, wrong, error.text);
		exit(1);
	}
}

static void cut(struct tally *tally, const struct archive *whole, const struct content *content, uint64_t most)
{
	const uint64_t count = MIN((uint64_t)whole->nbytes, most);
	for (uint64_t i = 0; i < count; i++) {
		const size_t nbytes = count == whole->nbytes ? i : (size_t)(whole->nbytes * i / count);
		uint8_t *part = malloc(nbytes + !nbytes); /* of just its size, for the sanitizers */
		memcpy(part, whole->bytes, nbytes);
		const uint64_t refused = tally->refused;
		try_bytes(tally, content, part, nbytes, "cut to", nbytes, 0);
		if (tally->refused == refused) {
			printf("cut to %zu: not noticed\n", nbytes);
			exit(1);
		}
		free(part);
	}
}

static void flip(struct tally *tally, const struct archive *whole, const struct content *content, uint64_t most, uint64_t seed)
{
	const uint64_t nbits = 8 * (uint64_t)whole->nbytes, count = MIN(nbits, most);
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t bit = count == nbits ? i : random_below(&seed, nbits);
		whole->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		try_bytes(tally, content, whole->bytes, whole->nbytes, "bit", bit, 0);
		whole->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* --- Splices: each makes `out`, of room for twice the archive, from `in` and returns its size. --- */

static void swap_blocks(uint8_t *out, uint64_t a, uint64_t b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint8_t byte = out[a + i];
		out[a + i] = out[b + i];
		out[b + i] = byte;
	}
}

static size_t splice_blocks(uint8_t *out, const struct archive *in, uint64_t *seed, unsigned kind)
{
	const uint64_t n = 1 + random_below(seed, in->nbytes / 2), a = random_below(seed, in->nbytes - n + 1), b = random_below(seed, in->nbytes - n + 1);
	memcpy(out, in->bytes, in->nbytes);
	switch (kind) {
	case 0:
		if (MAX(a, b) - MIN(a, b) >= n)
			swap_blocks(out, a, b, n);
		else
			memmove(out + b, in->bytes + a, n);
		return in->nbytes;
	case 1: memmove(out + b, in->bytes + a, n); return in->nbytes;
	case 2: memset(out + a, 0, n); return in->nbytes;
	case 3: memmove(out + a, in->bytes + a + n, in->nbytes - a - n); return in->nbytes - n;
	default:
		memcpy(out + b, in->bytes + a, n);
		memcpy(out + b + n, in->bytes + b, in->nbytes - b);
		return in->nbytes + n;
	}
}

/* Puts the payload of one chunk where another's is, and the other way round: as if their records had been exchanged. */
static size_t splice_chunks(uint8_t *out, const struct archive *in, const brv_archive *archive, uint64_t *seed)
{
	const struct view *view = &archive->view;
	const struct chunk *x = &view->chunk[random_below(seed, view->nchunks)], *y = &view->chunk[random_below(seed, view->nchunks)];
	memcpy(out, in->bytes, in->nbytes);
	if (x > y) { /* by number: offsets ascend with it, and those of chunks without payload are the next one's */
		const struct chunk *swap = x;
		x = y, y = swap;
	}
	uint8_t *at = out + view->payload_offset + x->payload_offset;
	const uint8_t *from = in->bytes + view->payload_offset;
	if (x == y)
		return in->nbytes;
	const uint64_t between = y->payload_offset - x->payload_offset - x->payload_nbytes;
	memcpy(at, from + y->payload_offset, y->payload_nbytes);
	memcpy(at + y->payload_nbytes, from + x->payload_offset + x->payload_nbytes, between);
	memcpy(at + y->payload_nbytes + between, from + x->payload_offset, x->payload_nbytes);
	return in->nbytes;
}

static void splice(struct tally *tally, const struct archive *whole, const struct content *content, uint64_t most, uint64_t seed)
{
	brv_archive *archive;
	uint8_t *out = malloc(2 * whole->nbytes);
	if (open_bytes(whole->bytes, whole->nbytes, &archive, NULL) != BRV_SUCCESS)
		die("splice", "not an archive");
	for (uint64_t i = 0; i < most; i++) {
		const unsigned kind = i % 8;
		const size_t nbytes = kind < 5 ? splice_blocks(out, whole, &seed, kind) : splice_chunks(out, whole, archive, &seed);
		try_bytes(tally, content, out, nbytes, "splice", i, kind);
	}
	brv_close(archive);
	free(out);
}

/* The beginning of one, the end of the other: behind the prelude, behind the sections, and anywhere. */
static void splice_with(struct tally *tally, const struct archive *one, const struct content *content, const struct archive *two, uint64_t most,
			uint64_t seed)
{
	brv_archive *archive;
	if (open_bytes(one->bytes, one->nbytes, &archive, NULL) != BRV_SUCCESS)
		die("splice", "not an archive");
	const uint64_t payload = archive->view.payload_offset;
	brv_close(archive);
	for (uint64_t i = 0; i < most; i++) {
		const uint64_t at = i == 0 ? AR_PRELUDE_NBYTES : i == 1 ? payload : random_below(&seed, MIN(one->nbytes, two->nbytes));
		if (at > two->nbytes || at == 0)
			continue;
		const size_t nbytes = i % 2 ? one->nbytes : at + (two->nbytes - at);
		uint8_t *out = malloc(MAX(nbytes, two->nbytes));
		memcpy(out, two->bytes, two->nbytes);
		memcpy(out, one->bytes, at);
		if (nbytes > two->nbytes)
			memcpy(out + two->nbytes, one->bytes + two->nbytes, nbytes - two->nbytes);
		/* Where both begin alike, the other is whole. */
		if (nbytes != two->nbytes || memcmp(out, two->bytes, nbytes))
			try_bytes(tally, content, out, nbytes, "joined at", at, i);
		free(out);
	}
}

int main(int argc, char **argv)
{
	struct content content;
	struct tally tally = { 0 };
	if (argc < 4)
		die("usage", "damage cut|flip|splice ARCHIVE MOST [SEED [OTHER...]]");
	const struct archive whole = read_file(argv[2]), kept = read_file(argv[2]);
	const uint64_t most = strtoull(argv[3], NULL, 10), seed = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
	brv_archive *open = load_content(&kept, &content);
	if (!strcmp(argv[1], "cut"))
		cut(&tally, &whole, &content, most);
	else if (!strcmp(argv[1], "flip"))
		flip(&tally, &whole, &content, most, seed);
	else if (!strcmp(argv[1], "splice"))
		splice(&tally, &whole, &content, most, seed);
	else
		die(argv[1], "expected cut, flip or splice");
	for (int i = 5; i < argc; i++) {
		const struct archive other = read_file(argv[i]);
		splice_with(&tally, &whole, &content, &other, most, seed);
		free(other.bytes);
	}
	printf("%llu tried: %llu refused, %llu right, %llu with other tensors readable\n", (unsigned long long)tally.tried,
	       (unsigned long long)tally.refused, (unsigned long long)tally.right, (unsigned long long)tally.readable);
	brv_close(open);
	free(content.data);
	free(content.tensor);
	free(whole.bytes);
	free(kept.bytes);
	return 0;
}

/* sections.c: the prelude and the four sections, read and decoded into memory (docs/FORMAT.md, 2).
 *
 * Everything stands in one allocation: the stored sections, then those that had to be decoded. Its size is known and checked
 * before: a Huffman code of one bit a byte is the shortest, so no such section decodes to more than 8 times its stored size; those of form 2 are small.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/sections.h"

#include <stdlib.h>
#include <xxhash.h>

#include "common/lzp.h"
#include "kernels/kernel.h"

static const char *const section_name[AR_SECTIONS] = { "CODE", "TABL", "INDX", "SUMS" };

static enum brv_status huff_decode(struct span stored, uint8_t *dst, uint64_t nbytes, const char *name, struct error *err)
{
	struct kn_table *table;
	if (stored.nbytes < 2 || stored.ptr[1] < stored.ptr[0])
		return fail(err, BRV_DAMAGED, "section %s: its Huffman table is damaged", name);
	size_t body_nbytes = 2 + (stored.ptr[1] - stored.ptr[0] + 2u) / 2;
	if (stored.nbytes < body_nbytes)
		return fail(err, BRV_DAMAGED, "section %s: its Huffman table is cut short", name);
	TRY(table_expand(TABLE_HUFF, (struct span){ stored.ptr, body_nbytes }, &table, err));
	const struct kn_args args = {
		.dst = dst, .n = nbytes, .op = OP_LIT_HUFF, .width = 8, .table = table,
		.pay = stored.ptr + body_nbytes, .pay_nbytes = stored.nbytes - body_nbytes,
	};
	bool ok = kn_sets[0]->fn[OP_LIT_HUFF](&args);
	free(table);
	return ok ? BRV_OK : fail(err, BRV_DAMAGED, "section %s: its Huffman code is damaged", name);
}

static enum brv_status predicted_decode(struct span stored, uint8_t *dst, uint64_t nbytes, const char *name, struct error *err)
{
	struct error why;
	enum brv_status status = lzp_decode(stored, dst, nbytes, &why);
	return status == BRV_OK ? BRV_OK : fail(err, status, "section %s: %.100s", name, why.text);
}

/* Bytes for all sections as stored, and for the decoded form of those that are coded. */
static enum brv_status sizes(const struct ar_prelude *prelude, uint64_t limit, uint64_t *stored, uint64_t *decoded, struct error *err)
{
	*stored = *decoded = 0;
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		uint64_t in = prelude->section[i].stored_nbytes, out = prelude->section[i].decoded_nbytes;
		*stored += in;
		if (prelude->section[i].form == AR_FORM_PLAIN)
			continue;
		if (prelude->section[i].form == AR_FORM_HUFF && (out == 0 || out / 8 > in))
			return fail(err, BRV_DAMAGED, "section %s: %llu bytes cannot hold %llu coded ones", section_name[i],
				    (unsigned long long)in, (unsigned long long)out);
		*decoded += out + KN_PAD;
	}
	if (*stored + *decoded + KN_PAD > limit)
		return fail(err, BRV_LIMIT, "the archive's index takes %llu bytes: over the memory limit of %llu",
			    (unsigned long long)(*stored + *decoded + KN_PAD), (unsigned long long)limit);
	return BRV_OK;
}

static enum brv_status decode_all(struct view *view, uint64_t stored_nbytes, struct error *err)
{
	const uint8_t *stored = view->section_bytes;
	uint8_t *decoded = view->section_bytes + stored_nbytes + KN_PAD;
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		struct span in = { stored, view->prelude.section[i].stored_nbytes };
		stored += in.nbytes;
		view->section[i] = in;
		if (view->prelude.section[i].form == AR_FORM_PLAIN)
			continue;
		uint64_t nbytes = view->prelude.section[i].decoded_nbytes;
		if (view->prelude.section[i].form == AR_FORM_HUFF)
			TRY(huff_decode(in, decoded, nbytes, section_name[i], err));
		else
			TRY(predicted_decode(in, decoded, nbytes, section_name[i], err));
		view->section[i] = (struct span){ decoded, nbytes };
		decoded += nbytes + KN_PAD;
	}
	return BRV_OK;
}

enum brv_status sections_read(struct view *view, struct source *source, uint64_t limit, struct error *err)
{
	uint8_t bytes[AR_PRELUDE_NBYTES];
	struct ar_prelude *prelude = &view->prelude;
	uint64_t stored, decoded, archive_nbytes = source->nbytes;

	if (archive_nbytes < AR_PRELUDE_NBYTES)
		return fail(err, BRV_DAMAGED, "not a Brevis archive: expected at least %d bytes, found %llu", AR_PRELUDE_NBYTES,
			    (unsigned long long)archive_nbytes);
	TRY(source_read(source, 0, bytes, sizeof bytes, err));
	TRY(prelude_read(bytes, prelude, err));
	if (archive_nbytes != UINT64_MAX && archive_nbytes != prelude->archive_nbytes)
		return fail(err, BRV_DAMAGED, "expected %llu bytes, found %llu: the file is %s", (unsigned long long)prelude->archive_nbytes,
			    (unsigned long long)archive_nbytes, archive_nbytes < prelude->archive_nbytes ? "cut short" : "too long");
	TRY(sizes(prelude, limit, &stored, &decoded, err));
	view->payload_offset = AR_PRELUDE_NBYTES + stored;
	view->nbytes = stored + KN_PAD + decoded;
	view->section_bytes = malloc(view->nbytes);
	if (!view->section_bytes)
		return fail(err, BRV_MEMORY, "no memory for %llu bytes of index", (unsigned long long)view->nbytes);
	TRY(source_read(source, AR_PRELUDE_NBYTES, view->section_bytes, stored, err));
	memset(view->section_bytes + stored, 0, KN_PAD);
	if (XXH3_64bits(view->section_bytes, stored) != prelude->sections_sum)
		return fail(err, BRV_DAMAGED, "the checksum of the index does not match");
	return decode_all(view, stored, err);
}

/* header.c: stream 0 decoded, unpacked, and its entries written out (header.h). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/header.h"

#include <stdlib.h>

#include "common/packed_header.h"
#include "runtime/decoder.h"

/* Memory for text, a NUL behind it, counted. */
static enum brv_status take_text(struct brv_archive *archive, uint64_t nbytes, uint8_t **out, struct error *err)
{
	TRY(memory_take(archive, nbytes + 1, "the header", err));
	*out = malloc(nbytes + 1);
	if (!*out)
		return fail(err, BRV_MEMORY, "no memory for a header of %llu bytes", (unsigned long long)nbytes);
	(*out)[nbytes] = 0;
	return BRV_OK;
}

static void give_text(struct brv_archive *archive, uint8_t *text, uint64_t nbytes)
{
	if (text)
		memory_give(archive, nbytes + 1);
	free(text);
}

static struct header_entry entry_of(void *context, uint64_t i)
{
	const struct brv_archive *archive = context;
	const struct view *view = &archive->view;
	const struct stream *s = tensor_stream(archive, i);

	return (struct header_entry){
		.dtype = s->dtype == AR_DTYPE_OTHER ? view->text + s->dtype_at : dtype_by_code(s->dtype)->name,
		.shape = view->dim + s->dims_at, .ndim = s->ndim,
		.begin = s->data_offset, .end = s->data_offset + s->data_nbytes,
	};
}

static void set_name(void *context, uint64_t i, uint64_t at, uint64_t nbytes)
{
	struct brv_archive *archive = context;
	struct stream *s = &archive->view.stream[archive->first_tensor + i];

	s->name_at = (int64_t)at, s->name_nbytes = (uint32_t)nbytes;
}

static enum brv_status expand(struct brv_archive *archive, struct span marked, struct error *err)
{
	const struct header_entries entries = { archive->view.ntensors, archive, entry_of, set_name };

	TRY(header_expand(marked, &entries, NULL, &archive->header_nbytes, err));
	for (uint64_t i = 0; i < entries.count; i++)
		if (tensor_stream(archive, i)->name_nbytes > AR_MAX_NAME_NBYTES)
			return fail(err, BRV_DAMAGED, "tensor %llu: its name is longer than 2^24 bytes", (unsigned long long)i);
	TRY(take_text(archive, archive->header_nbytes, &archive->header, err));
	return header_expand(marked, &entries, archive->header, &archive->header_nbytes, err);
}

/* archive->header from the words of a packed stream 0. */
static enum brv_status unpack(struct brv_archive *archive, struct span packed, struct error *err)
{
	uint8_t *text = NULL;
	struct cursor at;
	uint64_t nbytes;

	TRY(packed_size(packed, &at, &nbytes, err));
	enum brv_status status = take_text(archive, nbytes, &text, err);
	if (status == BRV_OK)
		status = packed_unpack(&at, text, nbytes, err);
	if (status == BRV_OK && archive->view.prelude.flags & AR_FLAG_ENTRIES) {
		status = expand(archive, (struct span){ text, nbytes }, err);
	} else if (status == BRV_OK) {
		archive->header = text, archive->header_nbytes = nbytes;
		return BRV_OK;
	}
	give_text(archive, text, nbytes);
	return status;
}

enum brv_status header_load(struct brv_archive *archive, struct error *err)
{
	const struct stream *stream = &archive->view.stream[0];
	uint8_t *text = NULL;
	enum brv_status status = take_text(archive, stream->nwords, &text, err);

	if (status == BRV_OK)
		status = decode_stream(archive, stream, text, err);
	if (status == BRV_OK && !archive->view.prelude.flags) {
		archive->header = text, archive->header_nbytes = stream->nwords;
		return BRV_OK;
	}
	if (status == BRV_OK)
		status = unpack(archive, (struct span){ text, stream->nwords }, err);
	give_text(archive, text, stream->nwords);
	if (status == BRV_OK && archive->data_nbytes >= (1ull << 63) - archive->header_nbytes)
		return fail(err, BRV_DAMAGED, "the tensors' sizes add up to more than 2^63 bytes");
	return status;
}

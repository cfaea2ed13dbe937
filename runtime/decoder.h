/* decoder.h: what one thread needs to decode chunks. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_DECODER_H
#define RUNTIME_DECODER_H

#include "runtime/exec.h"
#include "runtime/object.h"

/* Payload that is read at once, about. */
enum { CELL_NBYTES = 1 << 20 };

struct decoder;

/* An idle decoder of the archive, one that was made on the same memory node if there is any, or a new one; given back after use.
 * BRV_LIMIT, BRV_MEMORY. */
enum brv_status decoder_take(struct brv_archive *archive, unsigned node, struct decoder **out, struct error *err);
void decoder_give(struct decoder *decoder);
void decoders_free(struct brv_archive *archive);

/* Lets go of the tables it holds, so that they may be dropped. */
void decoder_release(struct decoder *decoder);

/* Memory for nbytes of output, the decoder's, until the next call. */
enum brv_status decoder_out(struct decoder *decoder, uint64_t nbytes, uint8_t **out, struct error *err);

/* Reads the payload of chunks first .. end - 1 of the archive, which lies in one piece. */
enum brv_status decoder_load(struct decoder *decoder, uint64_t first, uint64_t end, struct error *err);

enum decoder_flags {
	DECODER_SUM = 1,                /* compare the chunk's checksum */
	DECODER_PAST = 2,               /* the output is large and not wanted soon: past the caches, where the kernel set can */
};

/* Decodes those of bytes low .. high - 1 of a stream that lie in its chunk k, whose payload is loaded; dst is where byte `low` goes, NULL:
 * nowhere. flags: of enum decoder_flags; after DECODER_PAST, decoder_settle(). BRV_DAMAGED with a text that names tensor and chunk, or what memory and source say. */
enum brv_status decoder_run(struct decoder *decoder, const struct stream *stream, uint64_t k, uint64_t low, uint64_t high, uint8_t *dst,
			    unsigned flags, struct error *err);

/* Waits until all output of this thread is seen by all. */
void decoder_settle(const struct decoder *decoder);

/* All words of a stream (the header, classes), one thread. dst holds nwords * word_nbytes(width). */
enum brv_status decode_stream(struct brv_archive *archive, const struct stream *stream, void *dst, struct error *err);

/* For reports: what each instruction of chunk k takes of its payload, an item's length included, without executing it. */
enum brv_status decode_costs(struct brv_archive *archive, const struct stream *stream, uint64_t k, uint64_t nbytes[BC_MAX_INSTR],
			     struct error *err);

#endif

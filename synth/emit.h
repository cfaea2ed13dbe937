/* emit.h: coded streams collected and written as an archive (docs/FORMAT.md, 2 to 6).
 *
 * Streams may arrive while others are still being coded; payload goes to memory first and then to an unlinked file, so that memory stays
 * bounded. The index comes first in an archive and is known last, hence the two steps. SPDX-License-Identifier: Apache-2.0 */
#ifndef SYNTH_EMIT_H
#define SYNTH_EMIT_H

#include "synth/checkpoint.h"
#include "synth/cost.h"
#include "synth/encode.h"

struct emitter;

/* Payload beyond spool_nbytes is spooled in `directory`. NULL if there is no memory. */
struct emitter *alloc_emitter(const char *directory, uint64_t spool_nbytes);
void free_emitter(struct emitter *emitter);

/* Adds a stream: one header, then class streams and tensors in any mixture, tensors in the order of the checkpoint; the first two with their
 * payload. What the emitter needs of the stream is moved out of it; the stream can then be freed. emit_class puts the number to pass as row_stream
 * or col_stream (0: none) into *number. flags: of the prelude, as pack_header() gives them. BRV_MEMORY, BRV_IO, BRV_LIMIT. */
enum brv_status emit_header(struct emitter *emitter, struct coded_stream *stream, uint16_t flags, const struct buffer *payload, struct error *err);
enum brv_status emit_class(struct emitter *emitter, struct coded_stream *stream, const struct buffer *payload, uint64_t *number,
			   struct error *err);
enum brv_status emit_tensor(struct emitter *emitter, const struct tensor *tensor, struct coded_stream *stream, uint64_t row_stream,
			    uint64_t col_stream, struct error *err);

/* Payload of the tensor that was added last, chunk by chunk; taken over, and *payload is empty then. */
enum brv_status emit_payload(struct emitter *emitter, struct buffer *payload, struct error *err);

/* Bytes that all chunks' payloads take so far. */
uint64_t emit_payload_nbytes(const struct emitter *emitter);

/* Writes the archive to fd from its start; *nbytes is its size. The model says what a smaller index may cost when it is opened. */
enum brv_status emit_finish(struct emitter *emitter, int fd, const struct cost_model *model, uint64_t *nbytes, struct error *err);

#endif

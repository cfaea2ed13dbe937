/* object.h: the archive object: what opening made, shared by all threads that decode.
 *
 * Everything is immutable after brv_open_*(), but for what is made when it is first needed (lazy.h), the idle decoders, and the count of
 * memory in use. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_OBJECT_H
#define RUNTIME_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernels/kernel.h"
#include "runtime/brevis.h"
#include "runtime/lazy.h"
#include "runtime/names.h"
#include "runtime/parse.h"
#include "runtime/plan.h"
#include "runtime/source.h"

struct decoder;
struct place;
struct pool;

struct brv_archive {
	struct source source;
	struct view view;
	struct plan *plan;              /* by program */
	uint8_t *header;                /* decoded, NUL behind it */
	uint64_t header_nbytes;         /* without that */
	struct names names;
	uint32_t first_tensor;          /* stream index of tensor 0 */
	const struct kn_set *kernels;
	bool checksums;
	uint64_t arena_nbytes;          /* enough for any chunk of any stream */
	uint64_t data_nbytes;
	struct lazy lazy;

	uint64_t memory_limit;
	atomic_uint_fast64_t memory_used;
	pthread_mutex_t lock;           /* of idle, and of a sequential source */
	struct decoder *idle;
};

/* Counts nbytes against the limit: BRV_LIMIT if that is too much. */
enum brv_status memory_take(struct brv_archive *archive, uint64_t nbytes, const char *what, struct error *err);
void memory_give(struct brv_archive *archive, uint64_t nbytes);

struct brv_pool {
	struct pool *team;
	struct place *place;            /* NULL: nothing is placed */
};

static inline const struct stream *tensor_stream(const struct brv_archive *archive, uint64_t tensor)
{
	return &archive->view.stream[archive->first_tensor + tensor];
}

#endif

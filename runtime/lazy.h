/* lazy.h: what is made when a chunk first needs it: expanded tables and decoded classes.
 *
 * An archive may hold tens of thousands of tables of up to half a megabyte when expanded, of which a call needs a few: so they are
 * expanded on demand and, above a share of the memory limit, those not in use are dropped again. Classes are small and stay.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_LAZY_H
#define RUNTIME_LAZY_H

#include <pthread.h>
#include <stdatomic.h>

#include "kernels/kernel.h"
#include "runtime/parse.h"

struct brv_archive;

struct lazy_table {
	struct kn_table *table;
	uint64_t nbytes;
	uint32_t users;
};

/* Forms of a class stream: plain, then times 16, 32, 64 and 128 (buckets of a table), which only columns have. */
enum { CLASS_FORMS = 5, CLASS_PLAIN = 0 };

struct lazy {
	pthread_mutex_t lock;           /* of the tables */
	struct lazy_table *table;
	uint64_t table_nbytes;          /* of all expanded tables */
	uint32_t hand;                  /* where the search for tables to drop goes on */
	_Atomic(uint8_t *) (*classes)[CLASS_FORMS]; /* by stream index - 1 */
};

enum brv_status lazy_init(struct brv_archive *archive, struct error *err);
void lazy_free(struct brv_archive *archive);

/* A table, expanded; it stays until table_put(). Thread-safe. BRV_DAMAGED, BRV_MEMORY, BRV_LIMIT. */
enum brv_status table_get(struct brv_archive *archive, uint32_t number, const struct kn_table **out, struct error *err);
void table_put(struct brv_archive *archive, uint32_t number);

/* The row classes of a tensor: one byte a row. Thread-safe. */
enum brv_status rows_get(struct brv_archive *archive, const struct stream *stream, const uint8_t **out, struct error *err);

/* Its column classes: G bytes and KN_CLASS_PAD more, cyclically; times 1 << log2_nb (0: plain). */
enum brv_status columns_get(struct brv_archive *archive, const struct stream *stream, unsigned log2_nb, const uint8_t **out,
			    struct error *err);

/* Decodes all class streams now: for a pipe, which cannot be gone back in. */
enum brv_status classes_load(struct brv_archive *archive, struct error *err);

#endif

/* lazy.c: tables and classes, made when a chunk first needs them (lazy.h).
 *
 * Nothing is made under a lock: threads that need the same thing at the same time may both make it, and one of them throws its own away.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/lazy.h"

#include <stdlib.h>

#include "runtime/decoder.h"

/* Share of the memory limit above which unused tables are dropped. */
enum { TABLES_SHARE = 4 };

enum brv_status lazy_init(struct brv_archive *archive, struct error *err)
{
	struct lazy *lazy = &archive->lazy;
	uint64_t ntables = archive->view.ntables, nclasses = archive->view.nclasses;
	TRY(memory_take(archive, ntables * sizeof *lazy->table + nclasses * sizeof *lazy->classes, "the index", err));
	lazy->table = calloc(ntables + 1, sizeof *lazy->table);
	lazy->classes = calloc(nclasses + 1, sizeof *lazy->classes);
	return lazy->table && lazy->classes ? BRV_OK : fail(err, BRV_MEMORY, "no memory for %llu tables", (unsigned long long)ntables);
}

void lazy_free(struct brv_archive *archive)
{
	struct lazy *lazy = &archive->lazy;
	for (uint32_t i = 0; lazy->table && i < archive->view.ntables; i++)
		free(lazy->table[i].table);
	for (uint32_t i = 0; lazy->classes && i < archive->view.nclasses; i++)
		for (unsigned form = 0; form < CLASS_FORMS; form++)
			free(lazy->classes[i][form]);
	free(lazy->table);
	free(lazy->classes);
	pthread_mutex_destroy(&lazy->lock);
}

/* Drops tables that nobody uses until at most `keep` bytes are left, or all have been looked at once. The lock is held. */
static void drop_tables(struct brv_archive *archive, uint64_t keep)
{
	struct lazy *lazy = &archive->lazy;
	for (uint32_t seen = 0; seen < archive->view.ntables && lazy->table_nbytes > keep; seen++) {
		struct lazy_table *entry = &lazy->table[lazy->hand];
		lazy->hand = (lazy->hand + 1) % archive->view.ntables;
		if (!entry->table || entry->users)
			continue;
		free(entry->table);
		entry->table = NULL;
		lazy->table_nbytes -= entry->nbytes;
		memory_give(archive, entry->nbytes);
	}
}

static const struct kn_table *use_table(struct lazy *lazy, uint32_t number)
{
	lazy->table[number].users += lazy->table[number].table != NULL;
	return lazy->table[number].table;
}

static enum brv_status make_table(struct brv_archive *archive, uint32_t number, struct kn_table **out, uint64_t *nbytes, struct error *err)
{
	const struct table_body *body = &archive->view.table[number];
	struct error why;
	*nbytes = table_expanded_nbytes(body->kind, body->body);
	if (*nbytes == 0)
		return fail(err, BRV_DAMAGED, "table %u is damaged", number);
	pthread_mutex_lock(&archive->lazy.lock);
	uint64_t share = archive->memory_limit / TABLES_SHARE;
	drop_tables(archive, share > *nbytes ? share - *nbytes : 0);
	pthread_mutex_unlock(&archive->lazy.lock);
	TRY(memory_take(archive, *nbytes, "a table", err));
	enum brv_status status = table_expand(body->kind, body->body, out, &why);
	if (status == BRV_OK)
		return BRV_OK;
	memory_give(archive, *nbytes);
	return fail(err, status, "table %u: %.200s", number, why.text);
}

enum brv_status table_get(struct brv_archive *archive, uint32_t number, const struct kn_table **out, struct error *err)
{
	struct lazy *lazy = &archive->lazy;
	struct kn_table *made;
	uint64_t nbytes;

	pthread_mutex_lock(&lazy->lock);
	*out = use_table(lazy, number);
	pthread_mutex_unlock(&lazy->lock);
	if (*out)
		return BRV_OK;
	TRY(make_table(archive, number, &made, &nbytes, err));
	pthread_mutex_lock(&lazy->lock);
	if (!lazy->table[number].table) {
		lazy->table[number] = (struct lazy_table){ .table = made, .nbytes = nbytes };
		lazy->table_nbytes += nbytes;
		made = NULL;
	}
	*out = use_table(lazy, number);
	pthread_mutex_unlock(&lazy->lock);
	if (made) {
		free(made);
		memory_give(archive, nbytes);
	}
	return BRV_OK;
}

void table_put(struct brv_archive *archive, uint32_t number)
{
	pthread_mutex_lock(&archive->lazy.lock);
	archive->lazy.table[number].users--;
	pthread_mutex_unlock(&archive->lazy.lock);
}

/* A class array: n classes, KN_CLASS_PAD more cyclically, and the highest class of all. */
static uint64_t classes_nbytes(uint64_t n) { return n + KN_CLASS_PAD + 1; }

static enum brv_status alloc_classes(struct brv_archive *archive, uint64_t n, uint8_t **out, struct error *err)
{
	if (n > UINT64_MAX - KN_CLASS_PAD - 1)
		return fail(err, BRV_LIMIT, "too many classes");
	TRY(memory_take(archive, classes_nbytes(n), "classes", err));
	*out = malloc(classes_nbytes(n));
	if (*out)
		return BRV_OK;
	memory_give(archive, classes_nbytes(n));
	return fail(err, BRV_MEMORY, "no memory for %llu classes", (unsigned long long)n);
}

/* Makes the array known unless another thread was faster. Returns the known one. */
static const uint8_t *publish(struct brv_archive *archive, _Atomic(uint8_t *) *slot, uint8_t *made, uint64_t n)
{
	uint8_t *known = NULL;
	if (atomic_compare_exchange_strong(slot, &known, made))
		return made;
	free(made);
	memory_give(archive, classes_nbytes(n));
	return known;
}

static void extend(uint8_t *classes, uint64_t n)
{
	uint8_t max = 0;
	for (uint64_t i = 0; i < n; i++)
		max = MAX(max, classes[i]);
	for (unsigned i = 0; i < KN_CLASS_PAD; i++)
		classes[n + i] = n ? classes[i % n] : 0;
	classes[n + KN_CLASS_PAD] = max;
}

/* The plain form of class stream `axis` - 1. */
static enum brv_status plain_get(struct brv_archive *archive, uint32_t axis, const uint8_t **out, struct error *err)
{
	const struct stream *stream = &archive->view.stream[axis - 1];
	_Atomic(uint8_t *) *slot = &archive->lazy.classes[axis - 2][CLASS_PLAIN];
	uint8_t *made;
	*out = atomic_load_explicit(slot, memory_order_acquire);
	if (*out)
		return BRV_OK;
	TRY(alloc_classes(archive, stream->nwords, &made, err));
	enum brv_status status = decode_stream(archive, stream, made, err);
	if (status != BRV_OK) {
		free(made);
		memory_give(archive, classes_nbytes(stream->nwords));
		return status;
	}
	extend(made, stream->nwords);
	*out = publish(archive, slot, made, stream->nwords);
	return BRV_OK;
}

static enum brv_status check_classes(const uint8_t *classes, uint64_t n, unsigned k, struct error *err)
{
	if (classes[n + KN_CLASS_PAD] < k)
		return BRV_OK;
	return fail(err, BRV_DAMAGED, "expected classes below %u, found %u", k, classes[n + KN_CLASS_PAD]);
}

enum brv_status rows_get(struct brv_archive *archive, const struct stream *stream, const uint8_t **out, struct error *err)
{
	TRY(plain_get(archive, stream->rows, out, err));
	return check_classes(*out, archive->view.stream[stream->rows - 1].nwords, stream->kr, err);
}

enum brv_status columns_get(struct brv_archive *archive, const struct stream *stream, unsigned log2_nb, const uint8_t **out,
			    struct error *err)
{
	uint64_t n = stream->geometry;
	_Atomic(uint8_t *) *slot = &archive->lazy.classes[stream->columns - 2][log2_nb ? log2_nb - 3 : CLASS_PLAIN];
	const uint8_t *plain;
	uint8_t *made;
	TRY(plain_get(archive, stream->columns, &plain, err));
	TRY(check_classes(plain, n, stream->kc, err));
	*out = atomic_load_explicit(slot, memory_order_acquire);
	if (*out)
		return BRV_OK;
	TRY(alloc_classes(archive, n, &made, err));
	for (uint64_t i = 0; i < n + KN_CLASS_PAD; i++)
		made[i] = (uint8_t)(plain[i] << log2_nb);
	made[n + KN_CLASS_PAD] = 0;
	*out = publish(archive, slot, made, n);
	return BRV_OK;
}

enum brv_status classes_load(struct brv_archive *archive, struct error *err)
{
	const uint8_t *classes;
	for (uint32_t i = 0; i < archive->view.nclasses; i++)
		TRY(plain_get(archive, i + 2, &classes, err));
	return BRV_OK;
}

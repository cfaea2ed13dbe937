/* cmd_bench.c: `brevis bench`: reading, decoding, checking and writing apart, beside memcpy and a copy of the file in the same run.
 *
 * All rows are measured once in each round, one after the other, so that what disturbs a machine for a while disturbs all of them; a ratio is the
 * median of the ratios within the rounds. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cmd_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/pool.h"
#include "common/seconds.h"
#include "common/temporary.h"
#include "runtime/cli_dir.h"
#include "runtime/decode.h"
#include "runtime/place.h"

enum { DEFAULT_REPEATS = 5, COPY_NBYTES = 1 << 20 };
#define DEFAULT_LIMIT (4ull << 30)

/* What the runs work on. */
struct ground {
	struct bench *bench;
	uint8_t *bytes;                 /* the archive; NULL: it is decoded from its file */
	brv_archive *memory;            /* opened on bytes, or cli->archive */
	uint8_t *dst, *src;             /* bench->nbytes each, written to */
	struct outfile out, copy;       /* files without names */
	struct pool *team[BENCH_MAX_ROWS];      /* by row: plain threads for memcpy */
	brv_pool *pool[BENCH_MAX_ROWS];         /* by row */
};

/* --- The runs. --- */

struct slices {
	uint8_t *dst;
	const uint8_t *src;
	uint64_t nbytes;
	unsigned threads;
};

static void copy_slice(void *context, uint64_t i, unsigned worker)
{
	const struct slices *s = context;
	const uint64_t from = s->nbytes * i / s->threads, end = s->nbytes * (i + 1) / s->threads;
	(void)worker;
	memcpy(s->dst + from, s->src + from, end - from);
}

static enum brv_status run_memcpy(struct ground *g, unsigned i, const struct bench_row *row)
{
	struct slices slices = { g->dst, g->src, row->nbytes, row->threads };
	pool_run(g->team[i], row->threads, copy_slice, &slices);
	return BRV_OK;
}

static enum brv_status run_read(struct ground *g, unsigned i, const struct bench_row *row)
{
	struct cli *cli = g->bench->cli;
	(void)i;
	if (cli->drop_cache)
		posix_fadvise(cli->fd, 0, 0, POSIX_FADV_DONTNEED);
	const uint64_t part = MIN((uint64_t)COPY_NBYTES, g->bench->nbytes);
	for (uint64_t at = 0; at < row->nbytes; at += part)
		TRY(source_read(&cli->archive->source, at, g->src, MIN(part, row->nbytes - at), &cli->err));
	return BRV_OK;
}

static enum brv_status run_decode(struct ground *g, unsigned i, const struct bench_row *row)
{
	const struct decode_range range = { 0, row->nbytes, row->phase == BENCH_DECODE ? g->dst : NULL };
	const struct decode_call call = { .range = &range, .nranges = 1, .pool = g->pool[i] };
	g->memory->kernels = row->set;
	g->memory->checksums = row->checksums;
	return decode_data(g->memory, &call, &g->bench->cli->err);
}

/* Several threads may come here at once; if they fail, all say the same. */
static enum brv_status write_scratch(struct ground *g, struct outfile *file, const uint8_t *bytes, size_t nbytes, uint64_t offset, struct error *err)
{
	const enum brv_status status = outfile_write(file, bytes, nbytes, offset, err);
	if (status != BRV_OK)
		g->bench->cli->about = "a temporary file in TMPDIR";
	return status;
}

static enum brv_status run_write(struct ground *g, unsigned i, const struct bench_row *row)
{
	(void)i;
	for (uint64_t at = 0; at < row->nbytes; at += COPY_NBYTES)
		TRY(write_scratch(g, &g->out, g->dst + at, MIN(row->nbytes - at, (uint64_t)COPY_NBYTES), at, &g->bench->cli->err));
	return BRV_OK;
}

/* decode_sink_fn */
static enum brv_status sink(void *context, const void *bytes, size_t nbytes, uint64_t offset, struct error *err)
{
	struct ground *g = context;
	return write_scratch(g, &g->out, bytes, nbytes, offset, err);
}

static enum brv_status run_unpack(struct ground *g, unsigned i, const struct bench_row *row)
{
	brv_archive *archive = g->bench->cli->archive;
	const struct decode_range range = { 0, row->nbytes, NULL };
	const struct decode_call call = { .range = &range, .nranges = 1, .sink = sink, .sink_context = g, .pool = g->pool[i] };
	archive->kernels = row->set;
	archive->checksums = row->checksums;
	return decode_data(archive, &call, &g->bench->cli->err);
}

static enum brv_status run_copy(struct ground *g, unsigned i, const struct bench_row *row)
{
	struct error *err = &g->bench->cli->err;
	const uint64_t part = MIN((uint64_t)COPY_NBYTES, g->bench->nbytes);
	(void)i;
	for (uint64_t at = 0, n; at < row->nbytes; at += n) {
		n = MIN(part, row->nbytes - at);
		TRY(outfile_read(&g->out, g->src, n, at, err));
		TRY(write_scratch(g, &g->copy, g->src, n, at, err));
	}
	return BRV_OK;
}

/* Runs, and the file that has to be empty before. */
static enum brv_status (*const runs[BENCH_PHASES])(struct ground *, unsigned, const struct bench_row *) = {
	[BENCH_MEMCPY] = run_memcpy, [BENCH_READ] = run_read,	[BENCH_DECODE] = run_decode, [BENCH_TEST] = run_decode,
	[BENCH_WRITE] = run_write,   [BENCH_UNPACK] = run_unpack, [BENCH_COPY] = run_copy,
};

static enum brv_status run_row(struct ground *g, unsigned i, unsigned round)
{
	struct bench_row *row = &g->bench->row[i];
	const int file = row->phase == BENCH_WRITE || row->phase == BENCH_UNPACK ? g->out.fd : row->phase == BENCH_COPY ? g->copy.fd : -1;
	if (file >= 0 && TEMP_FAILURE_RETRY(ftruncate(file, 0)) != 0)
		return fail_errno(&g->bench->cli->err, "cannot empty a temporary file");
	if (row->phase == BENCH_UNPACK && g->bench->cli->drop_cache)
		posix_fadvise(g->bench->cli->fd, 0, 0, POSIX_FADV_DONTNEED);
	const double start = seconds_now();
	TRY(runs[row->phase](g, i, row));
	row->seconds[round] = seconds_now() - start;
	return BRV_OK;
}

/* --- Which rows there are. --- */

static struct bench_row *add_row(struct bench *b, enum bench_phase phase, const struct kn_set *set, unsigned threads, bool checksums)
{
	if (b->nrows == BENCH_MAX_ROWS)
		return NULL;
	struct bench_row *row = &b->row[b->nrows++];
	*row = (struct bench_row){ .phase = phase, .set = set, .threads = threads, .checksums = checksums, .nbytes = b->nbytes };
	if (phase == BENCH_READ)
		row->nbytes = b->info.archive_nbytes;
	return row;
}

/* 1, 2, 4, ... and the most. */
static unsigned next_threads(const struct bench *b, unsigned threads)
{
	return threads == b->max_threads ? UINT32_MAX : MIN(2 * threads, b->max_threads);
}

static void add_rows(struct bench *b)
{
	const struct kn_set *used = b->cli->archive->kernels;
	for (unsigned t = 1; t != UINT32_MAX; t = next_threads(b, t))
		add_row(b, BENCH_MEMCPY, NULL, t, false);
	add_row(b, BENCH_READ, NULL, 1, false);
	for (unsigned s = 0; kn_sets[s]; s++)
		if (kn_sets[s] != used && kn_sets[s]->supported() && !getenv("BREVIS_ISA"))
			add_row(b, BENCH_DECODE, kn_sets[s], 1, false);
	for (unsigned t = 1; t != UINT32_MAX; t = next_threads(b, t)) {
		add_row(b, BENCH_DECODE, used, t, false);
		add_row(b, BENCH_DECODE, used, t, true);
		add_row(b, BENCH_TEST, used, t, true);
	}
	add_row(b, BENCH_WRITE, NULL, 1, false);
	for (unsigned t = 1; t != UINT32_MAX; t = next_threads(b, t))
		add_row(b, BENCH_UNPACK, used, t, true);
	add_row(b, BENCH_COPY, NULL, 1, false);
}

/* --- The ground. --- */

static enum brv_status take(struct bench *b, brv_status_code status, const brv_error *error)
{
	if (status != BRV_SUCCESS)
		memcpy(b->cli->err.text, error->text, sizeof b->cli->err.text);
	return (enum brv_status)status;
}

/* Reads the archive into memory if it and the output fit the limit. */
static enum brv_status hold_archive(struct ground *g)
{
	struct bench *b = g->bench;
	const uint64_t limit = b->cli->memory_limit ? b->cli->memory_limit : DEFAULT_LIMIT, nbytes = b->info.archive_nbytes;
	const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = limit };
	brv_error error;

	g->memory = b->cli->archive;
	b->in_memory = nbytes <= limit / 2 && b->cli->fd >= 0;
	b->nbytes = MIN(b->info.data_nbytes, (b->in_memory ? limit - nbytes : limit) / 4);
	if (!b->in_memory)
		return BRV_OK;
	g->bytes = malloc(nbytes + 1);
	if (!g->bytes)
		return fail(&b->cli->err, BRV_MEMORY, "no memory for the archive");
	TRY(source_read(&b->cli->archive->source, 0, g->bytes, nbytes, &b->cli->err));
	return take(b, brv_open_memory(g->bytes, nbytes, &options, &g->memory, &error), &error);
}

static enum brv_status make_ground(struct ground *g)
{
	struct bench *b = g->bench;
	brv_error error;
	TRY(hold_archive(g));
	g->dst = alloc_big(b->nbytes + 1), g->src = alloc_big(b->nbytes + 1);
	if (!g->dst || !g->src)
		return fail(&b->cli->err, BRV_MEMORY, "no memory for %llu bytes twice", (unsigned long long)b->nbytes);
	memset(g->dst, 1, b->nbytes);
	memset(g->src, 2, b->nbytes);
	g->out.fd = temporary_unnamed(NULL), g->copy.fd = temporary_unnamed(NULL);
	if (g->out.fd < 0 || g->copy.fd < 0)
		return fail_errno(&b->cli->err, "cannot create a temporary file (in TMPDIR)");
	add_rows(b);
	for (unsigned i = 0; i < b->nrows; i++) {
		const brv_pool_options options = { .struct_nbytes = sizeof options, .threads = b->row[i].threads, .numa = b->cli->numa };
		if (b->row[i].phase == BENCH_MEMCPY)
			TRY(alloc_pool(b->row[i].threads, &g->team[i], &b->cli->err));
		else if (b->row[i].set)
			TRY(take(b, brv_pool_create_with(&options, &g->pool[i], &error), &error));
	}
	return BRV_OK;
}

static void free_ground(struct ground *g)
{
	for (unsigned i = 0; i < g->bench->nrows; i++) {
		free_pool(g->team[i]);
		brv_pool_free(g->pool[i]);
	}
	if (g->bytes && g->memory != g->bench->cli->archive)
		brv_close(g->memory);
	if (g->out.fd >= 0)
		close(g->out.fd);
	if (g->copy.fd >= 0)
		close(g->copy.fd);
	free(g->bytes);
	free(g->dst);
	free(g->src);
}

/* --- The figures. --- */

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median_of(const double *values, unsigned n)
{
	double sorted[BENCH_MAX_REPEATS];
	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* How many times as many bytes a second as `base`, round by round. */
static double ratio_to(const struct bench *b, const struct bench_row *row, const struct bench_row *base)
{
	double ratio[BENCH_MAX_REPEATS];
	for (unsigned r = 0; r < b->repeats; r++)
		ratio[r] = (double)row->nbytes / row->seconds[r] * base->seconds[r] / (double)MAX(base->nbytes, (uint64_t)1);
	return median_of(ratio, b->repeats);
}

static void work_out(struct bench *b)
{
	const struct bench_row *copy = &b->row[b->nrows - 1];
	for (unsigned i = 0; i < b->nrows; i++) {
		struct bench_row *row = &b->row[i];
		row->median = median_of(row->seconds, b->repeats);
		row->of_memcpy = ratio_to(b, row, &b->row[0]);
		row->of_copy = ratio_to(b, row, copy);
	}
}

static enum brv_status measure(struct ground *g)
{
	struct bench *b = g->bench;
	TRY(make_ground(g));
	progress_start(&b->cli->progress, "measuring", cli_shows_progress(b->cli));
	/* The first round warms up and is not counted. */
	for (unsigned round = 0; round <= b->repeats; round++) {
		for (unsigned i = 0; i < b->nrows; i++)
			TRY(run_row(g, i, round ? round - 1 : 0));
		progress_update(&b->cli->progress, round, b->repeats);
	}
	progress_end(&b->cli->progress);
	work_out(b);
	return BRV_OK;
}

/* The archive, or the one of a directory that stands for the largest file. */
static enum brv_status open_largest(struct cli *cli, const char *path)
{
	const struct manifest_entry *largest = NULL;
	struct cli_dir dir;
	if (!is_directory(path))
		return cli_open(cli, path);
	TRY(cli_dir_open(cli, path, &dir));
	for (size_t i = 0; i < dir.manifest.count; i++) {
		const struct manifest_entry *entry = &dir.manifest.entry[i];
		if (entry->kind == MANIFEST_ARCHIVE && (!largest || entry->nbytes > largest->nbytes))
			largest = entry;
	}
	const enum brv_status status = largest ? cli_dir_open_archive(cli, &dir, largest) : fail(&cli->err, BRV_USAGE, "it lists no archive");
	cli_dir_close(&dir);
	return status;
}

enum brv_status cmd_bench(struct cli *cli, int nargs, char **args)
{
	(void)nargs;
	TRY(open_largest(cli, args[0]));
	struct bench *bench = calloc(1, sizeof(*bench));
	if (!bench)
		return fail(&cli->err, BRV_MEMORY, "out of memory");
	struct ground ground = { .bench = bench, .out = { .fd = -1 }, .copy = { .fd = -1 } };
	bench->cli = cli;
	bench->repeats = cli->repeats ? cli->repeats : DEFAULT_REPEATS;
	bench->max_threads = brv_pool_threads(cli->pool);
	brv_get_info(cli->archive, &bench->info);
	enum brv_status status = cli->archive->source.sequential ? fail(&cli->err, BRV_USAGE, "a pipe cannot be read again and again") :
				 bench->info.data_nbytes == 0 ? fail(&cli->err, BRV_USAGE, "nothing to measure: its tensors have no data") :
								measure(&ground);
	free_ground(&ground);
	if (status == BRV_OK)
		status = bench_report(bench);
	free(bench);
	return status;
}

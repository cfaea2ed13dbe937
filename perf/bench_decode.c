/* bench_decode.c: whole archives decoded into warm and into fresh memory, next to memcpy.
 *
 *     bench_decode ARCHIVE.brv...
 *
 * First, for busy machines, one thread's own time for pieces of 40 MiB, each piece's best of several rounds; memcpy of the same pieces. Then whole archives:
 * by thread count, with checksums and without, threads pinned and not, in huge pages and in small ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "common/cpus.h"
#include "perf/clock.h"
#include "runtime/brevis.h"

static uint8_t *read_file(const char *path, size_t *nbytes)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;

	if (f && !fseek(f, 0, SEEK_END) && (*nbytes = (size_t)ftell(f)) && !fseek(f, 0, SEEK_SET)) {
		bytes = warm(*nbytes + 4096);
		if (fread(bytes, 1, *nbytes, f) != *nbytes)
			bytes = NULL;
	}
	if (f)
		fclose(f);
	return bytes;
}

struct subject {
	const char *path;
	const uint8_t *bytes;
	size_t nbytes;
};

static void check(brv_status_code status, const struct subject *subject, const brv_error *error)
{
	if (status == BRV_SUCCESS)
		return;
	fprintf(stderr, "bench_decode: %s: %s\n", subject->path, error->text);
	exit(4);
}

static void report(const struct subject *subject, unsigned threads, const char *how, double gbs, double ratio)
{
	printf("%-40s %-7s %2u threads  %-26s  %7.2f GB/s  %6.3f x memcpy (one thread)\n", subject->path, brv_isa(), threads, how, gbs, ratio);
}

static brv_archive *open_subject(const struct subject *subject, int no_checksums)
{
	const brv_options options = { .struct_nbytes = sizeof(options), .memory_limit = 1ull << 40, .no_checksums = no_checksums };
	brv_archive *archive;
	brv_error error;
	check(brv_open_memory(subject->bytes, subject->nbytes, &options, &archive, &error), subject, &error);
	return archive;
}

static brv_pool *make_pool(const struct subject *subject, unsigned threads, brv_numa numa)
{
	const brv_pool_options options = { .struct_nbytes = sizeof(options), .threads = threads, .numa = numa };
	brv_pool *pool;
	brv_error error;
	check(brv_pool_create_with(&options, &pool, &error), subject, &error);
	return pool;
}

static void bench_warm(const struct subject *subject, unsigned threads, int no_checksums, brv_numa numa)
{
	double gbs[REPEATS], ratio[REPEATS];
	brv_archive *archive = open_subject(subject, no_checksums);
	brv_pool *pool = make_pool(subject, threads, numa);
	brv_error error;
	brv_info info;

	brv_get_info(archive, &info);
	uint8_t *dst = warm(info.data_nbytes + 4096), *src = warm(info.data_nbytes + 4096);
	const brv_call call = { .struct_nbytes = sizeof(call), .pool = pool };
	for (unsigned r = 0; r < REPEATS; r++) {
		double start = seconds_now();
		memcpy(dst, src, info.data_nbytes);
		const double copy = seconds_now() - start;
		start = seconds_now();
		check(brv_decode_data(archive, 0, dst, info.data_nbytes, &call, &error), subject, &error);
		const double took = seconds_now() - start;
		gbs[r] = (double)info.data_nbytes / took / 1e9, ratio[r] = copy / took;
	}
	char how[32];
	snprintf(how, sizeof(how), "warm, checksums %s%s", no_checksums ? "off" : "on", numa == BRV_NUMA_LOCAL ? ", pinned" : "");
	report(subject, threads, how, median(gbs), median(ratio));
	munmap(dst, info.data_nbytes + 4096);
	munmap(src, info.data_nbytes + 4096);
	brv_pool_free(pool);
	brv_close(archive);
}

enum { PIECE_NBYTES = 40 << 20, WAYS = 3 };

/* A round of every way: memcpy, decoding without checksums, with them. best[]: of each piece. */
static void round_of_pieces(const struct subject *subject, brv_archive *const archive[2], uint8_t *dst, const uint8_t *src, size_t nbytes, double *best)
{
	brv_error error;

	for (unsigned way = 0; way < WAYS; way++)
		for (size_t at = 0; at < nbytes; at += PIECE_NBYTES, best++) {
			const size_t n = MIN(nbytes - at, (size_t)PIECE_NBYTES);
			const double start = thread_seconds();
			if (way == 0)
				memcpy(dst + at, src + at, n);
			else
				check(brv_decode_data(archive[way - 1], at, dst + at, n, NULL, &error), subject, &error);
			*best = MIN(*best, thread_seconds() - start);
		}
}

static void bench_pieces(const struct subject *subject)
{
	brv_archive *const archive[2] = { open_subject(subject, 1), open_subject(subject, 0) };
	brv_info info;

	brv_get_info(archive[0], &info);
	uint8_t *dst = warm(info.data_nbytes + 4096), *src = warm(info.data_nbytes + 4096);
	const size_t npieces = ceil_div(info.data_nbytes, PIECE_NBYTES);
	double *best = warm(WAYS * npieces * sizeof(*best)), sum[WAYS] = { 0 };
	for (size_t i = 0; i < WAYS * npieces; i++)
		best[i] = INFINITY;
	for (unsigned r = 0; r < REPEATS; r++)
		round_of_pieces(subject, archive, dst, src, info.data_nbytes, best);
	for (size_t i = 0; i < WAYS * npieces; i++)
		sum[i / npieces] += best[i];
	for (unsigned way = 1; way < WAYS; way++)
		report(subject, 1, way == 1 ? "pieces, checksums off" : "pieces, checksums on", (double)info.data_nbytes / sum[way] / 1e9, sum[0] / sum[way]);
	munmap(dst, info.data_nbytes + 4096);
	munmap(src, info.data_nbytes + 4096);
	munmap(best, WAYS * npieces * sizeof(*best));
	brv_close(archive[0]);
	brv_close(archive[1]);
}

static uint8_t *fresh(size_t nbytes)
{
	uint8_t *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(6);
	}
	return p;
}

/* Memory that has never been written to, as a caller's usually is; memcpy has the same. */
static void bench_fresh(const struct subject *subject, unsigned threads, int no_huge_pages)
{
	double gbs[REPEATS], ratio[REPEATS];
	brv_archive *archive = open_subject(subject, 1);
	brv_pool *pool = make_pool(subject, threads, BRV_NUMA_DEFAULT);
	brv_error error;
	brv_info info;

	brv_get_info(archive, &info);
	uint8_t *src = warm(info.data_nbytes + 4096);
	const brv_call call = { .struct_nbytes = sizeof(call), .pool = pool, .no_huge_pages = no_huge_pages };
	for (unsigned r = 0; r < REPEATS; r++) {
		uint8_t *dst = fresh(info.data_nbytes);
		if (!no_huge_pages)
			madvise(dst, info.data_nbytes, MADV_HUGEPAGE);
		double start = seconds_now();
		memcpy(dst, src, info.data_nbytes);
		const double copy = seconds_now() - start;
		munmap(dst, info.data_nbytes);
		dst = fresh(info.data_nbytes);
		start = seconds_now();
		check(brv_decode_data(archive, 0, dst, info.data_nbytes, &call, &error), subject, &error);
		const double took = seconds_now() - start;
		munmap(dst, info.data_nbytes);
		gbs[r] = (double)info.data_nbytes / took / 1e9, ratio[r] = copy / took;
	}
	report(subject, threads, no_huge_pages ? "fresh, pages of 4 KiB" : "fresh, huge pages", median(gbs), median(ratio));
	munmap(src, info.data_nbytes + 4096);
	brv_pool_free(pool);
	brv_close(archive);
}

int main(int argc, char **argv)
{
	struct cpus cpus;

	cpus_detect(&cpus);
	for (int i = 1; i < argc; i++) {
		struct subject subject = { .path = argv[i] };
		subject.bytes = read_file(argv[i], &subject.nbytes);
		if (!subject.bytes) {
			perror(argv[i]);
			return 5;
		}
		bench_pieces(&subject);
		for (unsigned threads = 1; threads <= cpus.usable; threads *= 2) {
			for (int no_checksums = 1; no_checksums >= 0; no_checksums--)
				bench_warm(&subject, threads, no_checksums, BRV_NUMA_NONE);
			bench_warm(&subject, threads, 1, BRV_NUMA_LOCAL);
			for (int no_huge_pages = 1; no_huge_pages >= 0; no_huge_pages--)
				bench_fresh(&subject, threads, no_huge_pages);
		}
	}
	return 0;
}

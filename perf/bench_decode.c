/* bench_decode.c: whole archives decoded into warm memory, by thread count and with and without checksums, next to memcpy.
 *
 *     bench_decode ARCHIVE.brv... SPDX-License-Identifier: Apache-2.0 */
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

static void bench(const char *path, const uint8_t *bytes, size_t nbytes, unsigned threads, int no_checksums)
{
	const brv_options options = { .struct_nbytes = sizeof(options), .memory_limit = 1ull << 40, .no_checksums = no_checksums };
	double gbs[REPEATS], ratio[REPEATS];
	brv_archive *archive;
	brv_pool *pool;
	brv_error error;
	brv_info info;

	if (brv_open_memory(bytes, nbytes, &options, &archive, &error) || brv_pool_create(threads, &pool, &error)) {
		fprintf(stderr, "bench_decode: %s: %s\n", path, error.text);
		exit(4);
	}
	brv_get_info(archive, &info);
	uint8_t *dst = warm(info.data_nbytes + 4096), *src = warm(info.data_nbytes + 4096);
	const brv_call call = { .struct_nbytes = sizeof(call), .pool = pool };
	for (unsigned r = 0; r < REPEATS; r++) {
		double start = now();
		memcpy(dst, src, info.data_nbytes);
		const double copy = now() - start;
		start = now();
		if (brv_decode_data(archive, 0, dst, info.data_nbytes, &call, &error)) {
			fprintf(stderr, "bench_decode: %s: %s\n", path, error.text);
			exit(4);
		}
		const double took = now() - start;
		gbs[r] = (double)info.data_nbytes / took / 1e9, ratio[r] = copy / took;
	}
	printf("%-40s %-7s %2u threads  checksums %-3s  %7.2f GB/s  %6.3f x memcpy (one thread)  ratio %.4f\n", path, brv_isa(), threads,
	       no_checksums ? "off" : "on", median(gbs), median(ratio), (double)info.archive_nbytes / (double)info.file_nbytes);
	munmap(dst, info.data_nbytes + 4096);
	munmap(src, info.data_nbytes + 4096);
	brv_pool_free(pool);
	brv_close(archive);
}

int main(int argc, char **argv)
{
	struct cpus cpus;

	cpus_detect(&cpus);
	for (int i = 1; i < argc; i++) {
		size_t nbytes;
		const uint8_t *bytes = read_file(argv[i], &nbytes);
		if (!bytes) {
			perror(argv[i]);
			return 5;
		}
		for (unsigned threads = 1; threads <= cpus.usable; threads *= 2)
			for (int no_checksums = 1; no_checksums >= 0; no_checksums--)
				bench(argv[i], bytes, nbytes, threads, no_checksums);
	}
	return 0;
}

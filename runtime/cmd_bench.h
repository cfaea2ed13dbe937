/* cmd_bench.h: what `brevis bench` measures, and how it is told. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_CMD_BENCH_H
#define RUNTIME_CMD_BENCH_H

#include "runtime/cli.h"

enum { BENCH_MAX_ROWS = 64, BENCH_MAX_REPEATS = 99 };

/* PHASE(ID, name, what it does) */
#define BENCH_PHASE_TABLE(PHASE)                                                                         \
	PHASE(MEMCPY, "memcpy", "copies as many bytes as the output has, in memory")                     \
	PHASE(READ, "read", "reads the archive's file")                                                  \
	PHASE(DECODE, "decode", "decodes into memory that was written to before, from an archive in memory") \
	PHASE(TEST, "test", "decodes to nowhere and compares the checksums")                             \
	PHASE(WRITE, "write", "writes the output to a file")                                             \
	PHASE(UNPACK, "unpack", "archive file to output file: read, decode, compare checksums, write")   \
	PHASE(COPY, "copy", "copies a file of the output's size")
enum bench_phase {
#define PHASE(id, name, what) BENCH_##id,
	BENCH_PHASE_TABLE(PHASE)
#undef PHASE
	BENCH_PHASES
};

struct kn_set;
struct bench_row {
	enum bench_phase phase;
	const struct kn_set *set;       /* NULL: no kernels in it */
	unsigned threads;
	bool checksums;
	uint64_t nbytes;                /* of output; BENCH_READ: of the archive */
	double seconds[BENCH_MAX_REPEATS], median;
	double of_memcpy, of_copy;      /* medians of the ratios within a round: how many times as fast; against one thread's memcpy, one thread's copy */
};

struct bench {
	struct cli *cli;
	brv_info info;
	bool in_memory;                 /* the archive was small enough to be held */
	unsigned max_threads, repeats;
	uint64_t nbytes;                /* output bytes of a run: the data region, or as much of its start as the memory limit allows */
	struct bench_row row[BENCH_MAX_ROWS];
	unsigned nrows;
};

/* As a table, as JSON (cli->json), and into the file of --metrics as Prometheus text. */
enum brv_status bench_report(const struct bench *bench);

#endif

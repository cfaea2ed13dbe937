/* cmd_bench_report.c: the figures of `brevis bench` as a table, as JSON and as Prometheus text. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/archive.h"
#include "common/text.h"
#include "kernels/kernel.h"
#include "runtime/cmd_bench.h"

static const struct {
	const char *name, *what;
} phases[] = {
#define PHASE(id, name, what) { name, what },
	BENCH_PHASE_TABLE(PHASE)
#undef PHASE
};

static const char *isa(const struct bench_row *row) { return row->set ? row->set->name : "-"; }

static const char *checksums(const struct bench_row *row) { return !row->set ? "-" : row->checksums ? "on" : "off"; }

static void print_table(const struct bench *b)
{
	char cpu[256];
	cpu_describe(cpu, sizeof cpu);
	text_put_safe(stdout, b->cli->file, strlen(b->cli->file));
	printf(": %" PRIu64 " bytes for %" PRIu64 ", ratio %.4f\n%s\n", b->info.archive_nbytes, b->info.file_nbytes,
	       (double)b->info.archive_nbytes / (double)b->info.file_nbytes, cpu);
	printf("medians of %u rounds, %" PRIu64 " bytes of output each%s\n\n", b->repeats, b->nbytes,
	       b->in_memory ? "" : "; the archive is over half of the memory limit and is decoded from its file");
	printf("%-8s %-7s %7s  %-9s %9s %10s %8s\n", "phase", "isa", "threads", "checksums", "GB/s", "x memcpy", "x copy");
	for (unsigned i = 0; i < b->nrows; i++) {
		const struct bench_row *r = &b->row[i];
		printf("%-8s %-7s %7u  %-9s %9.3f %10.3f %8.3f\n", phases[r->phase].name, isa(r), r->threads, checksums(r),
		       (double)r->nbytes / r->median / 1e9, r->of_memcpy, r->of_copy);
	}
	printf("\n");
	for (unsigned p = 0; p < BENCH_PHASES; p++)
		printf("%-8s %s\n", phases[p].name, phases[p].what);
	printf("Read counts bytes of the archive, all else bytes of output. x memcpy and x copy: how many times as fast as those with one thread.\n");
}

static void print_json(const struct bench *b)
{
	printf("{\"archive\": ");
	text_put_json(stdout, b->cli->file, strlen(b->cli->file));
	printf(", \"archive_nbytes\": %" PRIu64 ", \"file_nbytes\": %" PRIu64 ", \"output_nbytes\": %" PRIu64 ", \"in_memory\": %s, \"repeats\": %u, \"rows\": [",
	       b->info.archive_nbytes, b->info.file_nbytes, b->nbytes, b->in_memory ? "true" : "false", b->repeats);
	for (unsigned i = 0; i < b->nrows; i++) {
		const struct bench_row *r = &b->row[i];
		printf("%s\n{\"phase\": \"%s\", \"isa\": %s%s%s, \"threads\": %u, \"checksums\": %s, \"nbytes\": %" PRIu64, i ? "," : "",
		       phases[r->phase].name, r->set ? "\"" : "", r->set ? r->set->name : "null", r->set ? "\"" : "", r->threads,
		       !r->set ? "null" : r->checksums ? "true" : "false", r->nbytes);
		printf(", \"seconds\": %.9f, \"gb_per_s\": %.6f, \"of_memcpy\": %.6f, \"of_copy\": %.6f}", r->median,
		       (double)r->nbytes / r->median / 1e9, r->of_memcpy, r->of_copy);
	}
	printf("]}\n");
}

/* --- Prometheus text exposition format, 0.0.4. --- */

static void add(struct buffer *out, const char *text) { buffer_put(out, text, strlen(text)); }

/* A label's value: backslash, quote and line feed escaped; other control characters and what is not UTF-8 as text_safe() has it. */
static void add_label(struct buffer *out, const char *value)
{
	char safe[1024];
	text_safe((const uint8_t *)value, strlen(value), safe, sizeof safe);
	for (const char *c = safe; *c; c++) {
		if (*c == '\\' || *c == '"')
			buffer_put_u8(out, '\\');
		buffer_put_u8(out, (uint8_t)*c);
	}
}

static void add_metric(const struct bench *b, struct buffer *out, const char *name, const char *help, bool seconds)
{
	char text[256];
	snprintf(text, sizeof text, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	add(out, text);
	for (unsigned i = 0; i < b->nrows; i++) {
		const struct bench_row *r = &b->row[i];
		add(out, name);
		add(out, "{archive=\"");
		add_label(out, b->cli->file);
		snprintf(text, sizeof text, "\",phase=\"%s\",isa=\"%s\",threads=\"%u\",checksums=\"%s\"} ", phases[r->phase].name,
			 r->set ? r->set->name : "", r->threads, r->set ? checksums(r) : "");
		add(out, text);
		snprintf(text, sizeof text, seconds ? "%.9f\n" : "%.0f\n", seconds ? r->median : (double)r->nbytes);
		add(out, text);
	}
}

static void add_size(const struct bench *b, struct buffer *out, const char *name, const char *help, uint64_t nbytes)
{
	char text[256];
	snprintf(text, sizeof text, "# HELP %s %s\n# TYPE %s gauge\n%s{archive=\"", name, help, name, name);
	add(out, text);
	add_label(out, b->cli->file);
	snprintf(text, sizeof text, "\"} %" PRIu64 "\n", nbytes);
	add(out, text);
}

/* Whether the file is what an earlier run wrote, or no regular file, or not there. */
static bool may_replace(const char *path)
{
	static const char first[] = "# HELP brevis_";
	char found[sizeof first] = "";
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return true;
	FILE *file = fopen(path, "re");
	const size_t n = file ? fread(found, 1, sizeof first - 1, file) : 0;
	if (file)
		fclose(file);
	return st.st_size == 0 || (n == sizeof first - 1 && memcmp(found, first, n) == 0);
}

static enum brv_status write_metrics(const struct bench *b, const char *path)
{
	struct buffer text = { 0 };
	add_size(b, &text, "brevis_archive_bytes", "Size of the archive.", b->info.archive_nbytes);
	add_size(b, &text, "brevis_file_bytes", "Size of the file that the archive stands for.", b->info.file_nbytes);
	add_metric(b, &text, "brevis_bench_seconds", "Median time of a run.", true);
	add_metric(b, &text, "brevis_bench_bytes", "Bytes of a run: of the archive for read, of output for all else.", false);
	b->cli->about = path;
	if (!b->cli->force && !may_replace(path)) {
		buffer_free(&text);
		return fail(&b->cli->err, BRV_USAGE, "the file exists already and holds something else; -f overwrites it");
	}
	const enum brv_status status = text.failed ? fail(&b->cli->err, BRV_MEMORY, "out of memory") :
						     outfile_put(path, text.data, text.nbytes, true, &b->cli->err);
	buffer_free(&text);
	return status;
}

enum brv_status bench_report(const struct bench *b)
{
	if (b->cli->json)
		print_json(b);
	else if (!b->cli->quiet)
		print_table(b);
	return b->cli->metrics ? write_metrics(b, b->cli->metrics) : BRV_OK;
}

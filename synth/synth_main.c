/* synth_main.c: the command brevis-synth. SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/cpus.h"
#include "common/manifest.h"
#include "common/temporary.h"
#include "common/progress.h"
#include "common/text.h"
#include "common/walk.h"
#include "runtime/brevis.h"
#include "synth/tree.h"

static const char usage[] =
	"usage: brevis-synth [options] CHECKPOINT.safetensors [-o ARCHIVE.brv]\n"
	"       brevis-synth [options] CHECKPOINT-DIRECTORY [-o DIRECTORY]\n"
	"\n"
	"Compresses a checkpoint into a Brevis archive, or a directory of them: every .safetensors file in it, the others are\n"
	"copied. Each archive is decoded again and compared before it gets its name; the checkpoint is never changed. Run\n"
	"again on a directory, it keeps what is done and makes what is missing.\n"
	"\n"
	"  -o FILE              output (default: the input's name with .brv; - is stdout, for a single file)\n"
	"  -f, --force          replace an existing output\n"
	"      --favor WHAT     size, balanced (default) or speed of decoding\n"
	"      --target ISA     avx512 (default), avx2 or neon: whose decode cycles the search counts\n"
	"      --budget N       expansions of the search for each tensor\n"
	"      --max-nodes N    partial programs kept open\n"
	"      --max-depth N    ops above a literal\n"
	"      --prior FILE     use a learned prior instead of learning one\n"
	"      --save-prior FILE  write the learned prior, for other runs\n"
	"      --learn-only     with --save-prior: learn and write the prior, compress nothing\n"
	"      --no-prior       search without a prior: shows what it is worth, archives get larger\n"
	"      --no-classes     no classes of rows and columns: shows what they are worth, archives get larger\n"
	"      --shard I/N      of a directory, do only the part of job I of 1..N (0 is N); all parts together are the whole\n"
	"      --explain TENSOR print the candidates tried for a tensor, and write nothing\n"
	"  -T N                 threads (default: as many CPUs as this process may use)\n"
	"  -M SIZE              refuse to use more memory than this\n"
	"  -q, --quiet          only errors;  -v: a line for every tensor\n"
	"      --json           a summary as JSON on stdout\n"
	"      --no-progress    no progress line on a terminal\n"
	"  -V, --version        -h, --help\n"
	"\n"
	"exit: 0 done, 1 other, 2 usage, 3 bad input, 4 damaged archive, 5 I/O, 6 limit or memory\n";

enum { MAX_DTYPES = 64, MAX_JOBS = 1000000 };

struct by_dtype {
	char name[65];
	uint64_t tensors, in_nbytes, out_nbytes;
	double seconds;
};

struct command {
	const char *in, *out;
	struct synth_options options;
	bool quiet, verbose, json, no_progress;
	bool directory;
	struct progress progress;
	struct by_dtype dtype[MAX_DTYPES];
	unsigned ndtypes;
};

static int complain(const char *path, enum brv_status status, const char *text)
{
	text_complain("brevis-synth", path, text);
	return status_exit_code(status);
}

static int bad_usage(const char *format, const char *value)
{
	fprintf(stderr, "brevis-synth: ");
	fprintf(stderr, format, value ? value : "");
	fprintf(stderr, " (see brevis-synth -h)\n");
	return 2;
}

static void on_warning(void *context, const char *text)
{
	struct command *c = context;
	if (!c->quiet) {
		progress_end(&c->progress);
		fputs("brevis-synth: warning: ", stderr);
		text_put_safe(stderr, text, strlen(text));
		fputc('\n', stderr);
	}
}

static void on_tensor(void *context, const struct synth_tensor *t)
{
	struct command *c = context;
	unsigned i = 0;
	char program[160];

	while (i < c->ndtypes && strcmp(c->dtype[i].name, t->dtype))
		i++;
	if (i == c->ndtypes && i < MAX_DTYPES)
		snprintf(c->dtype[c->ndtypes++].name, sizeof(c->dtype[i].name), "%s", t->dtype);
	if (i < MAX_DTYPES) {
		struct by_dtype *d = &c->dtype[i];
		d->tensors++, d->in_nbytes += t->nbytes, d->out_nbytes += t->payload_nbytes, d->seconds += t->seconds;
	}
	if (!c->verbose)
		return;
	progress_end(&c->progress);
	program_print(t->program, program, sizeof(program));
	fprintf(stderr, "%12llu %12llu  %.4f  %-7s ", (unsigned long long)t->nbytes, (unsigned long long)t->payload_nbytes,
		t->nbytes ? (double)t->payload_nbytes / (double)t->nbytes : 0, t->dtype);
	text_put_safe(stderr, t->name, t->name_nbytes);
	fprintf(stderr, "  %s\n", program);
}

static void print_summary(const struct command *c, const struct synth_report *r)
{
	fprintf(stderr, "%-10s %8s %15s %15s %8s %10s\n", "dtype", "tensors", "bytes in", "bytes out", "ratio", "search s");
	for (unsigned i = 0; i < c->ndtypes; i++) {
		const struct by_dtype *d = &c->dtype[i];
		fprintf(stderr, "%-10s %8llu %15llu %15llu %8.4f %10.3f\n", d->name, (unsigned long long)d->tensors, (unsigned long long)d->in_nbytes,
			(unsigned long long)d->out_nbytes, d->in_nbytes ? (double)d->out_nbytes / (double)d->in_nbytes : 0, d->seconds);
	}
	fprintf(stderr, "%-10s %8llu %15llu %15llu %8.4f %10.3f wall, %.3f GB/s\n", "all", (unsigned long long)r->tensors,
		(unsigned long long)r->in_nbytes, (unsigned long long)r->out_nbytes, (double)r->out_nbytes / (double)r->in_nbytes, r->seconds,
		(double)r->in_nbytes / r->seconds / 1e9);
}

static void print_tree_summary(const struct command *c, const struct synth_report *r)
{
	if (r->archives)
		print_summary(c, r);
	fprintf(stderr, "%llu archives made, %llu kept from before, %llu other files\n", (unsigned long long)r->archives,
		(unsigned long long)r->kept, (unsigned long long)r->other_files);
}

static int print_json(const struct command *c, const struct synth_report *r)
{
	printf("{\"input\":");
	text_put_json(stdout, c->in, strlen(c->in));
	printf(",\"output\":");
	text_put_json(stdout, c->out, strlen(c->out));
	if (c->directory)
		printf(",\"archives\":%llu,\"kept\":%llu,\"other_files\":%llu", (unsigned long long)r->archives, (unsigned long long)r->kept,
		       (unsigned long long)r->other_files);
	printf(",\"input_bytes\":%llu,\"output_bytes\":%llu,\"ratio\":%.6f,\"tensors\":%llu,\"expansions\":%llu,\"seconds\":%.6f,\"by_dtype\":{",
	       (unsigned long long)r->in_nbytes, (unsigned long long)r->out_nbytes, r->in_nbytes ? (double)r->out_nbytes / (double)r->in_nbytes : 1.0,
	       (unsigned long long)r->tensors, (unsigned long long)r->expansions, r->seconds);
	for (unsigned i = 0; i < c->ndtypes; i++) {
		const struct by_dtype *d = &c->dtype[i];
		printf("%s", i ? "," : "");
		text_put_json(stdout, d->name, strlen(d->name));
		printf(":{\"tensors\":%llu,\"input_bytes\":%llu,\"payload_bytes\":%llu,\"search_seconds\":%.6f}", (unsigned long long)d->tensors,
		       (unsigned long long)d->in_nbytes, (unsigned long long)d->out_nbytes, d->seconds);
	}
	printf("}}\n");
	return fflush(stdout) || ferror(stdout) ? complain("standard output", BRV_IO, "write failed") : 0;
}

enum { OPT_FAVOR = 256, OPT_TARGET, OPT_BUDGET, OPT_NODES, OPT_DEPTH, OPT_PRIOR, OPT_SAVE_PRIOR,
       OPT_LEARN_ONLY, OPT_NO_PRIOR, OPT_NO_CLASSES, OPT_EXPLAIN, OPT_SHARD, OPT_JSON, OPT_NO_PROGRESS };

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },     { "force", no_argument, NULL, 'f' },
	{ "favor", required_argument, NULL, OPT_FAVOR }, { "target", required_argument, NULL, OPT_TARGET },
	{ "budget", required_argument, NULL, OPT_BUDGET }, { "max-nodes", required_argument, NULL, OPT_NODES },
	{ "max-depth", required_argument, NULL, OPT_DEPTH }, { "prior", required_argument, NULL, OPT_PRIOR },
	{ "save-prior", required_argument, NULL, OPT_SAVE_PRIOR }, { "explain", required_argument, NULL, OPT_EXPLAIN },
	{ "no-prior", no_argument, NULL, OPT_NO_PRIOR }, { "no-classes", no_argument, NULL, OPT_NO_CLASSES },
	{ "shard", required_argument, NULL, OPT_SHARD }, { "learn-only", no_argument, NULL, OPT_LEARN_ONLY },
	{ "threads", required_argument, NULL, 'T' },    { "memory", required_argument, NULL, 'M' },
	{ "quiet", no_argument, NULL, 'q' },            { "verbose", no_argument, NULL, 'v' },
	{ "json", no_argument, NULL, OPT_JSON },        { "no-progress", no_argument, NULL, OPT_NO_PROGRESS },
	{ "version", no_argument, NULL, 'V' },          { "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* The index of value in a NULL-terminated list, or -1. */
static int choice(const char *value, const char *const *list)
{
	for (int i = 0; list[i]; i++)
		if (!strcmp(value, list[i]))
			return i;
	return -1;
}

static bool small_number(const char *text, uint64_t high, unsigned *out)
{
	uint64_t value;
	if (!text_number(text, 1, high, &value))
		return false;
	*out = (unsigned)value;
	return true;
}

/* "I/N": job I of N, counted from 1; 0 stands for N, so that arrays counted from 0 work too. */
static bool parse_shard(const char *text, struct synth_options *o)
{
	const char *slash = strchr(text, '/');
	char job[16];
	uint64_t i, n;
	if (!slash || (size_t)(slash - text) >= sizeof job)
		return false;
	memcpy(job, text, (size_t)(slash - text));
	job[slash - text] = 0;
	if (!text_number(slash + 1, 1, MAX_JOBS, &n) || !text_number(job, 0, n, &i))
		return false;
	o->shard = (unsigned)(i % n), o->shards = (unsigned)n;
	return true;
}

/* -1: go on; else the exit code. */
static int parse_option(struct command *c, int option, const char *value)
{
	static const char *const favors[] = { "size", "balanced", "speed", NULL }, *const targets[] = { "avx512", "avx2", "neon", NULL };
	struct synth_options *o = &c->options;
	int index;

	switch (option) {
	case 'o': c->out = value; return -1;
	case 'f': o->force = true; return -1;
	case 'q': c->quiet = true; return -1;
	case 'v': c->verbose = true; return -1;
	case OPT_JSON: c->json = true; return -1;
	case OPT_NO_PROGRESS: c->no_progress = true; return -1;
	case OPT_PRIOR: o->prior_in = value; return -1;
	case OPT_SAVE_PRIOR: o->prior_out = value; return -1;
	case OPT_LEARN_ONLY: o->learn_only = true; return -1;
	case OPT_NO_PRIOR: o->no_prior = true; return -1;
	case OPT_NO_CLASSES: o->no_classes = true; return -1;
	case OPT_EXPLAIN: o->explain = value; return -1;
	case 'V': printf("brevis-synth %s\n", BRV_VERSION_STRING); return 0;
	case 'h': fputs(usage, stdout); return fflush(stdout) ? 5 : 0;
	case OPT_FAVOR:
		if ((index = choice(value, favors)) < 0)
			return bad_usage("--favor \"%s\": expected size, balanced or speed", value);
		o->favor = (enum cost_favor)index;
		return -1;
	case OPT_TARGET:
		if ((index = choice(value, targets)) < 0)
			return bad_usage("--target \"%s\": expected avx512, avx2 or neon", value);
		o->target = (enum cost_target)index;
		return -1;
	case OPT_BUDGET: return small_number(value, 1000000, &o->limits.expansions) ? -1 : bad_usage("--budget \"%s\": expected 1..1000000", value);
	case OPT_NODES: return small_number(value, 1000000, &o->limits.nodes) ? -1 : bad_usage("--max-nodes \"%s\": expected 1..1000000", value);
	case OPT_DEPTH: return small_number(value, 16, &o->limits.depth) ? -1 : bad_usage("--max-depth \"%s\": expected 1..16", value);
	case OPT_SHARD: return parse_shard(value, o) ? -1 : bad_usage("--shard \"%s\": expected I/N with I of 0..N", value);
	case 'T': return small_number(value, CPUS_MAX, &o->threads) ? -1 : bad_usage("-T \"%s\": expected a number of threads", value);
	case 'M': return text_size(value, &o->memory_limit) ? -1 : bad_usage("-M \"%s\": expected a size such as 512M", value);
	default: return 2;
	}
}

/* The default output: the input's name with its .safetensors, or the slashes behind a directory, replaced by .brv. malloc'ed. */
static char *default_output(const char *in, bool directory)
{
	size_t n = strlen(in), stem = n > strlen(ORIGINAL_SUFFIX) && has_suffix(in, ORIGINAL_SUFFIX) ? n - strlen(ORIGINAL_SUFFIX) : n;
	if (directory)
		for (stem = n; stem > 1 && in[stem - 1] == '/'; stem--)
			;
	char *out = malloc(stem + sizeof MANIFEST_SUFFIX);

	if (out) {
		memcpy(out, in, stem);
		memcpy(out + stem, MANIFEST_SUFFIX, sizeof MANIFEST_SUFFIX);
	}
	return out;
}

/* "x/..", "." and "/": no name to put .brv behind. */
static bool ends_in_dots(const char *path)
{
	size_t n = strlen(path), end;
	while (n && path[n - 1] == '/')
		n--;
	for (end = n; n && path[n - 1] == '.'; n--)
		;
	return (n == 0 || path[n - 1] == '/') && end - n <= 2;
}

static int run(struct command *c)
{
	struct synth_report report;
	struct error err = { "" };
	uint64_t limit = 0;
	const char *env = getenv("BREVIS_MEMORY_LIMIT");

	if (env && *env && !text_size(env, &limit))
		return bad_usage("BREVIS_MEMORY_LIMIT \"%s\": expected a size such as 512M", env);
	if (!c->options.memory_limit)
		c->options.memory_limit = limit;
	enum brv_status status = cpus_threads(c->options.threads, &c->options.threads, &err);
	if (status != BRV_OK)
		return complain(NULL, status, err.text);
	progress_start(&c->progress, "compressing", !c->quiet && !c->no_progress && !c->json && !c->verbose);
	c->options.progress = progress_update, c->options.progress_context = &c->progress;
	c->options.on_tensor = on_tensor, c->options.on_warning = on_warning, c->options.context = c;
	c->options.explain_to = stdout;
	status = (c->directory ? synth_tree : synth_file)(c->in, c->out, &c->options, &report, &err);
	progress_end(&c->progress);
	if (status != BRV_OK)
		return complain(report.about[0] ? report.about : report.about_output ? c->out : c->in, status, err.text);
	if (c->options.explain)
		return fflush(stdout) || ferror(stdout) ? complain("standard output", BRV_IO, "write failed") : 0;
	if (!c->quiet && !c->json && !c->options.learn_only)
		(c->directory ? print_tree_summary : print_summary)(c, &report);
	return c->json ? print_json(c, &report) : 0;
}

int main(int argc, char **argv)
{
	struct command c = { .options = { .favor = COST_BALANCED, .target = COST_AVX512 } };

	for (int option; (option = getopt_long(argc, argv, "o:fT:M:qvVh", long_options, NULL)) != -1;) {
		int code = parse_option(&c, option, optarg);
		if (code >= 0)
			return code;
	}
	if (argc - optind != 1)
		return bad_usage(argc == optind ? "an input is missing%s" : "one input at a time; \"%s\" is too many",
				 argc == optind ? NULL : argv[optind + 1]);
	if (c.options.no_prior && (c.options.prior_in || c.options.prior_out))
		return bad_usage("--no-prior: there is none to %s", c.options.prior_in ? "use" : "save");
	c.in = argv[optind];
	struct stat st;
	c.directory = !stat(c.in, &st) && S_ISDIR(st.st_mode);
	if (c.options.shards && !c.directory)
		return bad_usage("--shard: \"%s\" is no directory", c.in);
	if (c.options.learn_only && !c.options.prior_out)
		return bad_usage("--learn-only: nothing to write the prior to; add --save-prior FILE%s", NULL);
	if (c.options.learn_only && (c.options.prior_in || c.out || c.options.shards || c.options.explain))
		return bad_usage("--learn-only compresses nothing: it takes no --prior, -o, --shard or --explain%s", NULL);
	if (c.directory && c.out ? !strcmp(c.out, "-") : c.directory && !c.options.learn_only && ends_in_dots(c.in))
		return bad_usage("\"%s\" is a directory: use -o DIRECTORY", c.in);
	if (c.options.prior_out && path_lies_in(c.options.prior_out, c.in) > 0)
		return bad_usage("--save-prior \"%s\": the input is never changed", c.options.prior_out);
	char *out = c.out ? NULL : default_output(c.in, c.directory);
	if (!c.out && !out)
		return complain(NULL, BRV_MEMORY, "out of memory");
	if (out)
		c.out = out;
	temporary_catch_signals();
#ifdef __GLIBC__
	/* Memory of tensors is used again rather than given back: else the kernel clears every page for each of them. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
	int code = run(&c);
	free(out);
	return code;
}

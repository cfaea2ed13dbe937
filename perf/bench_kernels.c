/* bench_kernels.c: GB/s of every kernel set on the forms that archives are made of, next to memcpy in the same run.
 *
 *     bench_kernels [--json] [--quick] [--form=PART OF ITS NAME] [CHECKPOINT.safetensors]
 *
 * BREVIS_ISA: that kernel set only.
 *
 * The words are weights: those of the largest 2-D tensor of type BF16 of the checkpoint, or Gaussian ones with rows and columns of
 * different scale. DRAM: 256 MiB of output from as much payload as that takes; L2: one chunk over and over. Pinned to one CPU; every buffer is
 * touched, and every form run once, before it is timed. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "perf/clock.h"
#include "synth/checkpoint.h"
#include "synth/classes.h"
#include "synth/train.h"

enum { CHUNK = 65536, CHUNKS = 8, COLUMNS = 1024, DRAM_NBYTES = 256 << 20, QUICK_NBYTES = 32 << 20, ENCODE_REPEATS = 16 * REPEATS };

/* A form: how words are cut into fields and which literal codes the highest one. */
static const struct form {
	const char *name;
	uint8_t width, rotate, coded;   /* coded 0: op alone, on words of `width` */
	uint8_t raw[2];
	uint8_t op, log2_nb;
	bool classed;
} forms[] = {
	{ "P2 -> BF16", 16, 1, 8, { 8 }, OP_LIT_RANS, 4, false },
	{ "A4 -> BF16", 16, 1, 8, { 8 }, OP_LIT_RANS, 4, true },
	{ "J4 -> BF16", 16, 1, 9, { 7 }, OP_LIT_RANS, 5, true },
	{ "J4/16 -> BF16", 16, 1, 9, { 7 }, OP_LIT_RANS, 4, true },
	{ "T4 -> FP16", 16, 0, 7, { 8, 1 }, OP_LIT_RANS, 6, true },
	{ "A4 -> FP32", 32, 1, 8, { 24 }, OP_LIT_RANS, 4, true },
	{ "A4 -> FP8", 8, 0, 6, { 2 }, OP_LIT_RANS, 6, true },
	{ "wide -> BF16", 16, 0, 11, { 5 }, OP_LIT_WIDE, 0, true },
	{ "alias -> BF16", 16, 1, 9, { 7 }, OP_LIT_ALIAS, 5, false },
	{ "alias32x4 -> BF16", 16, 1, 9, { 7 }, OP_LIT_ALIAS, 5, true },
	{ "alias64 -> BF16", 16, 1, 9, { 7 }, OP_LIT_ALIAS, 6, false },
	{ "alias64x4 -> BF16", 16, 1, 9, { 7 }, OP_LIT_ALIAS, 6, true },
	{ "alias64x4 -> FP16", 16, 0, 7, { 8, 1 }, OP_LIT_ALIAS, 6, true },
	{ "alias16x4 -> FP32", 32, 1, 8, { 24 }, OP_LIT_ALIAS, 4, true },
	{ "alias64x4 -> FP8", 8, 0, 6, { 2 }, OP_LIT_ALIAS, 6, true },
	{ "alias256 -> bytes", 8, 0, 8, { 0 }, OP_LIT_ALIAS, 8, false },
	{ "wide -> bytes", 8, 0, 8, { 0 }, OP_LIT_WIDE, 0, true },
	{ "huff -> BF16", 16, 1, 8, { 8 }, OP_LIT_HUFF, 0, false },
	{ "merge 8,8", 16, 0, 0, { 8, 8 }, OP_MERGE, 0, false },
	{ "merge 8,8,8,8", 32, 0, 0, { 8, 8 }, OP_MERGE, 0, false },
	{ "map.xor 16", 16, 0, 0, { 0 }, OP_MAP_XOR, 0, false },
	{ "map.rot 32", 32, 0, 0, { 0 }, OP_MAP_ROT, 0, false },
	{ "scan.add 16", 16, 0, 0, { 0 }, OP_SCAN_ADD, 0, false },
	{ "scan.add 32", 32, 0, 0, { 0 }, OP_SCAN_ADD, 0, false },
	{ "unpack 7 bits", 7, 0, 0, { 0 }, OP_LIT_RAW, 0, false },
	{ "lookup 16", 16, 0, 0, { 0 }, OP_LOOKUP, 0, false },
	{ "lookup 32", 32, 0, 0, { 0 }, OP_LOOKUP, 0, false },
	{ "scatter 16", 16, 0, 0, { 0 }, OP_SCATTER, 0, false },
	{ "scatter 32", 32, 0, 0, { 0 }, OP_SCATTER, 0, false },
};

struct bench {
	bool json, first;
	size_t dram_nbytes;
	uint16_t *bf16;                 /* CHUNKS * CHUNK weights */
	uint8_t *dst, *src, *pay;       /* DRAM buffers */
	struct classes classes;
	uint8_t *scaled;                /* column classes times nb */
};

/* One chunk as it lies in an archive: raw fields, then the item. */
struct coded {
	const struct form *form;
	size_t raw_at[2], raw_nbytes[2], item_at, item_nbytes, nbytes;
	struct kn_table *table;
};

static double gaussian(uint64_t *state)
{
	double sum = -6;
	for (unsigned i = 0; i < 12; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(*state >> 40) / (double)(1 << 24);
	}
	return sum;
}

static void make_weights(struct bench *b)
{
	uint64_t state = 1;

	for (size_t i = 0; i < (size_t)CHUNK * CHUNKS; i++) {
		const double scale = .02 * exp2((double)(i / COLUMNS % 5) / 4 + (double)(i % COLUMNS % 7) / 3);
		const float v = (float)(gaussian(&state) * scale);
		uint32_t bits;
		memcpy(&bits, &v, 4);
		b->bf16[i] = (uint16_t)(bits >> 16);
	}
}

/* The words of a form made from BF16 weights: the same exponents, whatever the type. */
static uint64_t word_of(const struct form *f, uint16_t v, uint64_t noise)
{
	const unsigned exponent = v >> 7 & 255, sign = v >> 15, half = exponent > 112 ? MIN(exponent - 112, 30u) : 0;

	switch (f->width) {
	case 32: return (uint64_t)v << 16 | (noise & 0xffff);
	case 16: return f->coded == 7 ? sign << 15 | half << 10 | (v & 127u) << 3 | (noise & 7) : v;
	case 8: return sign << 7 | MIN(exponent > 112 ? exponent - 112 : 0, 15u) << 3 | (v >> 4 & 7);
	default: return noise & mask_bits(f->width);
	}
}

static void pack_field(uint8_t *out, const uint64_t *word, size_t n, unsigned shift, unsigned w)
{
	memset(out, 0, packed_nbytes(n, w) + 8);
	for (size_t i = 0; i < n; i++) {
		const uint64_t v = (word[i] >> shift & mask_bits(w)) << (i * w % 8);
		uint64_t there = load_u64(out + i * w / 8);
		store_u64(out + i * w / 8, there | v);
	}
}

/* Encodes one chunk of a form; false if this form has no literal. */
static bool encode_form(struct bench *b, const struct form *f, const struct kn_set *set, struct coded *c, double *seconds, uint8_t *scratch)
{
	uint64_t *word = malloc(CHUNK * sizeof(*word)), noise = 7;
	void *symbol = malloc(CHUNK * 2);
	const unsigned kr = f->classed ? b->classes.kr : 1, kc = f->classed ? b->classes.kc : 1, below = f->raw[0] + f->raw[1];
	uint32_t *counts = calloc((size_t)kr * kc << f->coded, sizeof(*counts));
	struct buffer body = { 0 };
	bool ok = word && symbol && counts;

	*c = (struct coded){ .form = f };
	for (size_t i = 0; ok && i < CHUNK; i++) {
		noise = noise * 6364136223846793005u + 1442695040888963407u;
		uint64_t v = word_of(f, b->bf16[i], noise >> 33);
		word[i] = f->rotate ? (v << f->rotate | v >> (f->width - f->rotate)) & mask_bits(f->width) : v;
		set_word(symbol, word_nbytes(f->coded), i, word[i] >> below);
	}
	for (unsigned k = 0, shift = 0; ok && k < 2 && f->raw[k]; shift += f->raw[k], k++) {
		c->raw_at[k] = c->nbytes, c->raw_nbytes[k] = packed_nbytes(CHUNK, f->raw[k]);
		pack_field(b->pay + c->nbytes, word, CHUNK, shift, f->raw[k]);
		c->nbytes += c->raw_nbytes[k];
	}
	if (ok)
		classes_count(&b->classes, f->classed, f->classed, symbol, f->coded, CHUNK, 0, counts);
	ok = ok && train_table(f->op, f->coded, f->log2_nb, kr, kc, counts, &body);
	ok = ok && table_expand(bc_opinfo(f->op)->table, (struct span){ body.data, body.nbytes }, &c->table, NULL) == BRV_OK;
	if (ok) {
		const struct kn_enc_args args = { .dst = b->pay + c->nbytes, .src = symbol, .n = CHUNK, .table = c->table,
						  .row_class = f->classed ? b->classes.row : NULL, .col_class = f->classed ? b->classes.col : NULL,
						  .row_words = f->classed ? COLUMNS : 0, .scratch = scratch };
		kn_enc_fn *encode = set->enc[c->table->kind];
		c->item_at = c->nbytes;
		*seconds = INFINITY;
		for (unsigned r = 0; r < ENCODE_REPEATS; r++) { /* the quickest counts, as in time_l2() */
			const double start = seconds_now();
			c->item_nbytes = encode(&args);
			*seconds = MIN(*seconds, seconds_now() - start);
		}
		c->nbytes += c->item_nbytes;
		ok = c->item_nbytes > 0;
	}
	free(word);
	free(symbol);
	free(counts);
	buffer_free(&body);
	return ok;
}

/* One chunk of a coded form. */
static bool decode_form(const struct bench *b, const struct kn_set *set, const struct coded *c, const uint8_t *pay, void *dst, uint8_t *scratch)
{
	const struct form *f = c->form;
	struct kn_field field[2];
	struct kn_args a = { .dst = dst, .n = CHUNK, .op = f->op, .width = f->width, .pay = pay + c->item_at, .pay_nbytes = c->item_nbytes,
			     .table = c->table, .scratch = scratch, .field = field, .rotate = f->rotate, .coded_width = f->coded };

	if (f->classed)
		a.row_class = b->classes.row, a.col_class = f->log2_nb ? b->scaled : b->classes.col, a.row_words = COLUMNS;
	for (; a.nfield < 2 && f->raw[a.nfield]; a.nfield++)
		field[a.nfield] = (struct kn_field){ pay + c->raw_at[a.nfield], c->raw_nbytes[a.nfield], f->raw[a.nfield], false };
	const enum kn_id id = kn_merge_of(f->op);
	if (f->op != OP_LIT_HUFF && a.nfield && set->can_fuse(id, &a))
		return set->fused[id](&a);
	/* The op alone, then the merge and the rotation, as the executor does without a fused kernel. */
	uint8_t *symbol = scratch + 4 * CHUNK, *merged = symbol + 2 * CHUNK + 64;
	struct kn_args lit = a;
	lit.width = f->coded, lit.coded_width = lit.nfield = lit.rotate = 0, lit.dst = a.nfield ? symbol : dst;
	if (!set->fn[f->op](&lit))
		return false;
	if (!a.nfield)
		return true;
	struct kn_args merge = { .dst = f->rotate ? merged : dst, .n = CHUNK, .op = OP_MERGE, .width = f->width, .nsrc = 2,
				 .src = { pay + c->raw_at[0], symbol }, .src_n = { CHUNK, CHUNK }, .src_width = { f->raw[0], f->coded } };
	struct kn_args rot = { .dst = dst, .n = CHUNK, .op = OP_MAP_ROT, .width = f->width, .nsrc = 1, .imm = f->rotate, .src = { merged },
			       .src_n = { CHUNK }, .src_width = { f->width } };
	return set->fn[OP_MERGE](&merge) && (!f->rotate || set->fn[OP_MAP_ROT](&rot));
}

/* Half of a chunk's words, in no order. */
static const uint8_t *half_mask(size_t *ones)
{
	static uint8_t mask[CHUNK + KN_PAD];
	static size_t count;

	for (uint32_t i = 0; i < CHUNK && (i || !count); i++)
		count += mask[i] = (uint8_t)(i * 2654435761u >> 13 & 1);
	*ones = count;
	return mask;
}

/* One chunk of an op that stands alone; its sources are in b->src. A dictionary has 256 words: any byte is an index. */
static bool run_plain(const struct bench *b, const struct kn_set *set, const struct form *f, size_t at, void *dst)
{
	const unsigned size = word_nbytes(f->width);
	const uint8_t *from = b->src + at;
	struct kn_args a = { .dst = dst, .n = CHUNK, .op = f->op, .width = f->width, .imm = f->op == OP_MAP_ROT ? 1 : 0x55 };

	if (f->op == OP_MERGE) {
		for (a.nsrc = 0; a.nsrc < f->width / 8; a.nsrc++)
			a.src[a.nsrc] = from + a.nsrc * CHUNK, a.src_n[a.nsrc] = CHUNK, a.src_width[a.nsrc] = 8;
	} else if (f->op == OP_LOOKUP) {
		a.imm = 0, a.nsrc = 2, a.src[0] = b->src, a.src_n[0] = 256, a.src[1] = from, a.src_width[1] = 8;
	} else if (f->op == OP_SCATTER) {
		size_t ones;
		a.nsrc = 2, a.src[0] = from, a.src[1] = half_mask(&ones), a.src_n[0] = ones, a.src_width[1] = 1;
	} else if (f->op == OP_LIT_RAW) {
		a.pay = from, a.pay_nbytes = packed_nbytes(CHUNK, f->width);
	} else {
		a.nsrc = 1, a.src[0] = from, a.src_n[0] = f->op == OP_SCAN_ADD ? CHUNK - 1 : CHUNK, a.src_width[0] = f->width;
		a.pay = from, a.pay_nbytes = size;
	}
	return set->fn[f->op](&a);
}

static void report(struct bench *b, const struct kn_set *set, const char *form, const char *where, double gbs, double ratio)
{
	if (b->json)
		printf("%s\n {\"form\":\"%s\",\"set\":\"%s\",\"where\":\"%s\",\"gb_per_s\":%.3f,\"memcpy_ratio\":%.4f}", b->first ? "[" : ",", form, set->name,
		       where, gbs, ratio);
	else
		printf("%-14s %-8s %-7s %8.2f GB/s %7.3f x memcpy\n", form, set->name, where, gbs, ratio);
	b->first = false;
	fflush(stdout);
}

static bool run_chunk(const struct bench *b, const struct kn_set *set, const struct form *f, const struct coded *c, size_t i, uint8_t *scratch)
{
	const size_t out = (size_t)CHUNK * word_nbytes(f->width);

	if (c ? decode_form(b, set, c, b->pay + i * c->nbytes, b->dst + i * out, scratch) : run_plain(b, set, f, i * out, b->dst + i * out))
		return true;
	fprintf(stderr, "bench_kernels: %s %s: failed\n", set->name, f->name);
	exit(1);
}

/* All of the output, chunk after chunk. */
static void time_dram(struct bench *b, const struct kn_set *set, const struct form *f, const struct coded *c, uint8_t *scratch)
{
	const size_t out = (size_t)CHUNK * word_nbytes(f->width), chunks = b->dram_nbytes / out;
	double gbs[REPEATS], ratio[REPEATS];

	for (unsigned r = 0; r < REPEATS; r++) {
		double start = seconds_now();
		for (size_t i = 0; i < chunks; i++) {
			memcpy(b->dst + i * out, b->src + i * out, out);
			__asm__ volatile("" ::: "memory");
		}
		const double copy = seconds_now() - start;
		start = seconds_now();
		for (size_t i = 0; i < chunks; i++)
			run_chunk(b, set, f, c, i, scratch);
		const double took = seconds_now() - start;
		gbs[r] = (double)(chunks * out) / took / 1e9, ratio[r] = copy / took;
	}
	report(b, set, f->name, "DRAM", median(gbs), median(ratio));
}

/* The first chunk again and again. The quickest time counts: of so short a time some are undisturbed on the busiest machine. */
static void time_l2(struct bench *b, const struct kn_set *set, const struct form *f, const struct coded *c, uint8_t *scratch)
{
	const size_t out = (size_t)CHUNK * word_nbytes(f->width), times = REPEATS * b->dram_nbytes / out;
	double copy = INFINITY, took = INFINITY;

	for (size_t i = 0; i < times; i++) {
		double start = seconds_now();
		memcpy(b->dst, b->src, out);
		__asm__ volatile("" ::: "memory");
		copy = MIN(copy, seconds_now() - start);
		start = seconds_now();
		run_chunk(b, set, f, c, 0, scratch);
		took = MIN(took, seconds_now() - start);
	}
	report(b, set, f->name, "L2", (double)out / took / 1e9, copy / took);
}

static void bench_form(struct bench *b, const struct kn_set *set, const struct form *f, uint8_t *scratch)
{
	const size_t out = (size_t)CHUNK * word_nbytes(f->width), chunks = b->dram_nbytes / out;
	struct coded c;
	double seconds = 0;

	if (!f->coded) {
		time_dram(b, set, f, NULL, scratch);
		time_l2(b, set, f, NULL, scratch);
		return;
	}
	for (size_t i = 0; i < COLUMNS + KN_CLASS_PAD; i++)
		b->scaled[i] = (uint8_t)(b->classes.col[i] << f->log2_nb);
	if (!encode_form(b, f, set, &c, &seconds, scratch)) {
		fprintf(stderr, "bench_kernels: %s: cannot be encoded\n", f->name);
		exit(1);
	}
	for (size_t i = 1; i < chunks; i++)
		memcpy(b->pay + i * c.nbytes, b->pay, c.nbytes);
	time_dram(b, set, f, &c, scratch);
	time_l2(b, set, f, &c, scratch);
	double copy = INFINITY;
	for (unsigned r = 0; r < REPEATS; r++) { /* all of it: a chunk alone might be in a cache */
		const double start = seconds_now();
		memcpy(b->dst, b->src, out * chunks);
		copy = MIN(copy, (seconds_now() - start) / (double)chunks);
	}
	report(b, set, f->name, "encode", (double)out / seconds / 1e9, copy / seconds);
	free(c.table);
}

/* The weights of the largest BF16 matrix of a checkpoint. */
static void read_weights(struct bench *b, const char *path)
{
	struct checkpoint c;
	struct error err;
	const struct tensor *best = NULL;

	if (checkpoint_open(path, &c, &err) != BRV_OK) {
		fprintf(stderr, "bench_kernels: %s: %s\n", path, err.text);
		exit(3);
	}
	for (size_t i = 0; i < c.ntensors; i++)
		if (!strcmp(c.tensor[i].dtype->name, "BF16") && c.tensor[i].ndim == 2 && (!best || c.tensor[i].nbytes > best->nbytes))
			best = &c.tensor[i];
	if (!best || best->nbytes < (size_t)CHUNK * CHUNKS * 2 || checkpoint_read(&c, best->offset, b->bf16, (size_t)CHUNK * CHUNKS * 2, &err) != BRV_OK) {
		fprintf(stderr, "bench_kernels: %s: no BF16 matrix of %d weights\n", path, CHUNK * CHUNKS);
		exit(3);
	}
	checkpoint_close(&c);
}

int main(int argc, char **argv)
{
	struct bench b = { .first = true, .dram_nbytes = DRAM_NBYTES };
	const char *path = NULL, *set = getenv("BREVIS_ISA"), *form = "";

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			b.json = true;
		else if (!strcmp(argv[i], "--quick"))
			b.dram_nbytes = QUICK_NBYTES;
		else if (!strncmp(argv[i], "--form=", 7))
			form = argv[i] + 7;
		else
			path = argv[i];
	}
	pin();
	b.bf16 = warm((size_t)CHUNK * CHUNKS * 2);
	b.dst = warm(b.dram_nbytes + 4096), b.src = warm(b.dram_nbytes + 4096), b.pay = warm(2 * b.dram_nbytes);
	b.scaled = warm(COLUMNS + KN_CLASS_PAD);
	uint8_t *scratch = warm(kn_encode_bound(CHUNK) + 16 * CHUNK);
	if (path)
		read_weights(&b, path);
	else
		make_weights(&b);
	const struct class_view view = { .words = b.bf16, .width = 16, .shift = 7, .bits = 8 };
	if (!classes_build(&b.classes, &view, (size_t)CHUNK * CHUNKS / COLUMNS, COLUMNS, 4, 4, (size_t)CHUNK * CHUNKS))
		return 6;
	for (unsigned s = 0; kn_sets[s]; s++)
		for (unsigned i = 0; i < ARRAY_LEN(forms); i++)
			if (kn_sets[s]->supported() && (!set || !strcmp(set, kn_sets[s]->name)) && strstr(forms[i].name, form))
				bench_form(&b, kn_sets[s], &forms[i], scratch);
	if (b.json)
		printf("\n]\n");
	return 0;
}

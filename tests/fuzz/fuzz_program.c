/* fuzz_program.c: small archives around random programs, whole or with some bytes changed: every kernel set makes the same of them.
 *
 * Archives of any bytes hardly ever get past verification. Here the first bytes of the input are decisions, from which a program is made
 * that obeys the type rule, and tests/forge.h makes an archive around it; what follows are changes of the finished archive, three
 * bytes each. Without a change the archive has to decode to what the model says. The mutator keeps the two parts apart.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/deal.h"
#include "runtime/object.h"
#include "tests/forge.h"
#include "tests/fuzz/fuzz_input.h"

enum { DECISIONS_NBYTES = 96, CHANGE_NBYTES = 3, MAX_CHANGES = 8, MAX_DEPTH = 5, MAX_WORDS = 1500, MEMORY_LIMIT = 64 << 20 };
/* What an instruction's words have to do with the chunk's: nothing, a place in a row, word for word the same place. */
enum { IN_RECORDS = 1, IN_STEP };

size_t LLVMFuzzerMutate(uint8_t *data, size_t nbytes, size_t max_nbytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t max_nbytes, unsigned seed);

/* --- Programs --- */

struct making {
	struct fuzz_input *in;
	struct bc_instr instr[HM_INSTR];
	unsigned ninstr, root_width, kr, kc;
	bool claimed[HM_INSTR]; /* a lit.raw that is the target of a carry */
	bool full;		/* there was no room: the program is of no use */
};

static void add(struct making *m, enum bc_op op, unsigned width, unsigned nargs, uint64_t imm)
{
	m->full = m->full || m->ninstr == HM_INSTR;
	if (!m->full)
		m->instr[m->ninstr++] =
			(struct bc_instr){ .op = (uint8_t)op, .width = (uint8_t)width, .nargs = (uint8_t)nargs, .imm = imm };
}

/* Gives the last instruction the flags that are possible and wanted. in_step: its words are those of the chunk. */
static void add_flags(struct making *m, unsigned in_step)
{
	const unsigned wanted = fuzz_u8(m->in);

	if (m->full)
		return;
	struct bc_instr *in = &m->instr[m->ninstr - 1];
	if (wanted & 1 && in_step && (m->kr || m->kc) && (in->op == OP_LIT_WIDE || m->kc <= RANS_MAX_COLS))
		in->flags |= BC_CLASSED;
	for (unsigned i = m->ninstr - 1; wanted & 2 && i-- > 0;)
		if (m->instr[i].op == OP_LIT_RAW && !m->claimed[i]) {
			in->flags |= BC_CARRY, in->aux = i;
			m->claimed[i] = true;
			return;
		}
}

static void add_literal(struct making *m, unsigned width, unsigned in_step)
{
	switch (fuzz_below(m->in, 8)) {
	case 0:
	case 1: add(m, OP_LIT_RAW, width, 0, 0); return;
	case 2: add(m, OP_LIT_PACK, width, 0, 0); return;
	case 3: add(m, OP_CONST, width, 0, fuzz_u64(m->in) & mask_bits(width)); return;
	case 4: add(m, width == m->root_width ? OP_REF : OP_LIT_RAW, width, 0, 0); return;
	case 5: add(m, width <= 8 ? OP_LIT_HUFF : OP_LIT_PACK, width, 0, 0); return;
	case 6: add(m, width <= 16 ? OP_LIT_RANS : OP_LIT_RAW, width, 0, 0); break;
	default: add(m, width <= 10 ? fuzz_below(m->in, 2) ? OP_LIT_WIDE : OP_LIT_ALIAS : OP_LIT_RAW, width, 0, 0); break;
	}
	if (!m->full && m->instr[m->ninstr - 1].op != OP_LIT_RAW)
		add_flags(m, in_step);
}

/* n: words that the chunk's register has, 0: not known (below a gate). Depth is bounded by MAX_DEPTH. */
static void add_any(struct making *m, unsigned width, uint64_t n, unsigned in_step, unsigned depth);

static void add_merge(struct making *m, unsigned width, uint64_t n, unsigned in_step, unsigned depth)
{
	static const uint8_t usual[] = { 8, 7, 6, 2, 1, 16, 24, 23, 3 };
	unsigned nargs = 1, left = width;

	for (; nargs < 4 && left > 1 && (nargs < 2 || fuzz_u8(m->in) % 3 == 0); nargs++) {
		const unsigned choice = fuzz_u8(m->in),
			       part = MIN(choice < 200 ? usual[choice % sizeof(usual)] : 1 + choice % 40, left - 1);
		if (nargs == 1 && choice % 2)
			add(m, OP_LIT_RAW, part, 0, 0);
		else
			add_any(m, part, n, in_step, depth + 1);
		left -= part;
	}
	add_any(m, left, n, in_step, depth + 1);
	add(m, OP_MERGE, width, nargs, 0);
}

static void add_weave(struct making *m, unsigned width, uint64_t n, unsigned in_step, unsigned depth)
{
	const unsigned nargs = 2 + fuzz_below(m->in, 3);
	uint64_t runs = 0, period = 0, run[4];

	for (unsigned k = 0; k < nargs; k++) {
		run[k] = 1 + fuzz_below(m->in, 6);
		runs |= run[k] << 16 * k, period += run[k];
	}
	for (unsigned k = 0; k < nargs; k++)
		add_any(m, width, n / period * run[k], in_step ? IN_RECORDS : 0, depth + 1);
	add(m, OP_WEAVE, width, nargs, runs);
}

/* One field, or one with a bit of each word in a field of its own before it. */
static void add_deal(struct making *m, unsigned width, uint64_t n, unsigned in_step, unsigned depth)
{
	const unsigned choice = fuzz_u8(m->in), bits = width % 8 == 0 ? 1u << choice % 4 : 1, each = width / bits, stride = 1 + (choice >> 2) % 8;
	const bool two = choice & 32;
	const unsigned block = stride * each * (two ? width : 1);
	const uint64_t imm = two ? block | DEAL_FIELD(0, 1, bits, 1) | DEAL_FIELD(1, bits, 0, stride) : block | DEAL_FIELD(0, bits, 0, stride);
	struct deal deal;

	if (!deal_parse(imm, width, bits + two, &deal)) {
		add_literal(m, width, in_step);
		return;
	}
	add_any(m, bits + two, n / deal.nwords * deal.block, in_step ? IN_RECORDS : 0, depth + 1);
	add(m, OP_DEAL, width, 1, imm);
}

/* A lookup, a scatter, a cut or a deal. Words that a chunk says the number of are not known here. */
static void add_chosen(struct making *m, unsigned width, uint64_t n, unsigned in_step, unsigned depth)
{
	const unsigned choice = fuzz_below(m->in, 4), more = fuzz_u8(m->in);

	if (choice == 0) {
		add_any(m, width, 0, false, depth + 1);
		add_any(m, 1 + more % 6, n, in_step, depth + 1);
		add(m, OP_LOOKUP, width, 2, more & 64 ? 16 + fuzz_u8(m->in) : 0);
	} else if (choice == 3 && width <= 32) {
		add_deal(m, width, n, in_step, depth);
	} else if (choice == 1 || width > 32) {
		add_any(m, width, 0, false, depth + 1);
		add_any(m, 1, n, in_step, depth + 1);
		add(m, OP_SCATTER, width, 2, more & 64 ? fuzz_u64(m->in) & mask_bits(width) : 0);
	} else {
		const unsigned fields = 2 + more % (64 / width - 1);
		add_any(m, width * fields, ceil_div(n, fields), in_step ? IN_RECORDS : 0, depth + 1);
		add(m, OP_CUT, width, 1, 0);
	}
}

static void add_any(struct making *m, unsigned width, uint64_t n, unsigned in_step, unsigned depth)
{
	const unsigned choice = fuzz_below(m->in, depth < MAX_DEPTH ? 16 : 1);
	uint64_t imm = 0;

	switch (m->full ? 0 : choice) {
	case 1:
	case 2:
	case 3:
		if (width < 2)
			break;
		add_merge(m, width, n, in_step, depth);
		return;
	case 4:
	case 5:
	case 6:
		imm = choice == 4   ? fuzz_u64(m->in) & mask_bits(width)
		      : choice == 5 ? fuzz_u64(m->in) & mask_bits(width)
				    : fuzz_below(m->in, width);
		add_any(m, width, n, in_step, depth + 1);
		add(m, choice == 4 ? OP_MAP_XOR : choice == 5 ? OP_MAP_ADD : OP_MAP_ROT, width, 1, imm);
		return;
	case 7:
	case 8:
		add_any(m, width, n, in_step, depth + 1);
		add(m, choice == 7 ? OP_MAP_ZIGZAG : OP_MAP_GRAY, width, 1, 0);
		return;
	case 9:
	case 10:
		add_any(m, width, n ? n - 1 : 0, false, depth + 1);
		add(m, choice == 9 ? OP_SCAN_XOR : OP_SCAN_ADD, width, 1, 0);
		return;
	case 11:
		imm = fuzz_below(m->in, (unsigned)n + 1);
		add_any(m, width, imm, false, depth + 1);
		add_any(m, width, n - imm, false, depth + 1);
		add(m, OP_CONCAT, width, 2, imm);
		return;
	case 12:
		imm = 1 + fuzz_below(m->in, 16);
		add_any(m, width, n / imm, false, depth + 1);
		add(m, OP_REPEAT, width, 1, imm);
		return;
	case 13: add_weave(m, width, n, in_step, depth); return;
	case 14:
		if (in_step != IN_STEP || !m->kr)
			break;
		imm = 1 + fuzz_below(m->in, (1u << m->kr) - 1);
		add_any(m, width, 0, false, depth + 1);
		add(m, OP_GATE, width, 1, imm);
		if (!m->full)
			m->instr[m->ninstr - 1].flags = BC_CLASSED;
		return;
	case 15: add_chosen(m, width, n, in_step, depth); return;
	default: break;
	}
	add_literal(m, width, in_step);
}

/* --- Archives --- */

/* An archive of a tensor of raw words, and one of the program under test; false if the decisions do not fit each other. */
static bool make_archive(struct fuzz_input *in, struct buffer *archive, struct buffer *expected)
{
	static const uint16_t lengths[] = { 1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1024, 1025 };
	static const struct {
		const char *dtype;
		unsigned width;
	} types[] = { { "BF16", 16 }, { "U8", 8 }, { "F32", 32 }, { "I64", 64 } };
	struct making m = { .in = in };
	struct forge_tensor tensor = { .name = "t" };
	struct forge f;

	static const uint16_t flags[] = { 0, AR_FLAG_PACKED, AR_FLAG_PACKED | AR_FLAG_ENTRIES };
	const uint16_t seed = fuzz_u16(in);
	forge_begin(&f, seed);
	f.flags = flags[seed % ARRAY_LEN(flags)];
	const unsigned type = fuzz_below(in, ARRAY_LEN(types)), length = fuzz_below(in, 2 * ARRAY_LEN(lengths)), classes = fuzz_u8(in);
	tensor.dtype = types[type].dtype, m.root_width = types[type].width;
	tensor.nwords = length < ARRAY_LEN(lengths) ? lengths[length] : 1 + fuzz_below(in, MAX_WORDS);
	if (classes & 1) {
		tensor.geometry = 1 + fuzz_below(in, 200);
		tensor.nwords += (tensor.geometry - tensor.nwords % tensor.geometry) % tensor.geometry;
	}
	const unsigned chunk = fuzz_below(in, (unsigned)tensor.nwords + 1);
	tensor.chunk = chunk > tensor.nwords / HM_CHUNKS ? chunk : 0;
	if (classes & 1 && classes & 2)
		m.kr = 2 + fuzz_below(in, 7), tensor.rows = forge_classes(&f, tensor.nwords / tensor.geometry, m.kr);
	if (classes & 1 && classes & 4)
		m.kc = 2u << fuzz_below(in, 4), tensor.columns = forge_classes(&f, tensor.geometry, m.kc);
	tensor.log2_nb = 4 + fuzz_below(in, 3), tensor.symbols = 1 + fuzz_u8(in), tensor.outliers = fuzz_u8(in),
	tensor.pack_bits = fuzz_below(in, 65);
	tensor.base = fuzz_u8(in) < 64 ? fuzz_u8(in) : 0;
	const struct bc_instr raw = { .op = OP_LIT_RAW, .width = (uint8_t)m.root_width };
	const struct forge_tensor first = {
		.name = "r", .dtype = tensor.dtype, .program = { { 1, &raw } }, .nwords = tensor.nwords + 5, .chunk = tensor.nwords / 3 + 1
	};
	tensor.ref_stream = f.hm->nstreams, tensor.ref_first = fuzz_below(in, 6);
	const unsigned coded_sections = fuzz_u8(in);

	add_any(&m, m.root_width, tensor.chunk ? tensor.chunk : tensor.nwords, IN_STEP, 0);
	tensor.program[0] = (struct forge_program){ m.ninstr, m.instr };
	const bool good = !m.full && forge_tensor(&f, &first) && forge_tensor(&f, &tensor);
	if (good) {
		forge_end(&f);
		for (unsigned i = 0; i < AR_SECTIONS; i++)
			f.hm->section[i].huffman = coded_sections < 16 && coded_sections >> i & 1,
			f.hm->section[i].predicted = coded_sections >= 16 && coded_sections < 32 && coded_sections >> i & 1;
		hm_write(f.hm, archive);
		buffer_put(expected, f.data.data, f.data.nbytes);
	}
	forge_free(&f);
	return good;
}

/* Applies the changes; their number. Half of them go to the payload. */
static unsigned change(struct fuzz_input in, struct buffer *archive)
{
	unsigned count = 0;

	for (; in.end - in.at >= CHANGE_NBYTES && count < MAX_CHANGES; count++) {
		const size_t where = fuzz_u16(&in), payload = load_u64(archive->data + 24) % (archive->nbytes + 1);
		const size_t from = where & 0x8000 && payload ? archive->nbytes - payload : 8;
		archive->data[from + (where & 0x7fff) % (archive->nbytes - from)] ^= (uint8_t)fuzz_u8(&in);
	}
	hm_fix_sums(archive->data, archive->nbytes);
	return count;
}

/* --- Decoding --- */

struct outcome {
	brv_status_code status;
	uint64_t nbytes;
	uint8_t *data;
};

static struct outcome decode(const struct buffer *archive, const struct kn_set *set, bool checksums)
{
	const brv_options options = { .struct_nbytes = sizeof(options), .memory_limit = MEMORY_LIMIT, .no_checksums = !checksums };
	uint8_t *copy = malloc(archive->nbytes);
	struct outcome out = { 0 };
	brv_archive *opened;
	brv_info info;

	memcpy(copy, archive->data, archive->nbytes);
	out.status = brv_open_memory(copy, archive->nbytes, &options, &opened, NULL);
	if (out.status == BRV_SUCCESS) {
		opened->kernels = set;
		brv_get_info(opened, &info);
		out.nbytes = info.data_nbytes;
		out.status = BRV_E_LIMIT;
		if (out.nbytes <= 64 * MAX_WORDS) {
			out.data = malloc(out.nbytes + 1);
			out.status = brv_decode_data(opened, 0, out.data, out.nbytes, NULL, NULL);
		}
	}
	brv_close(opened);
	free(copy);
	return out;
}

static void dump(const char *suffix, const void *bytes, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct fuzz_input decisions = { data, data + MIN(nbytes, (size_t)DECISIONS_NBYTES) };
	struct buffer archive = { 0 }, expected = { 0 };

	if (make_archive(&decisions, &archive, &expected)) {
		const unsigned changes =
			change((struct fuzz_input){ data + MIN(nbytes, (size_t)DECISIONS_NBYTES), data + nbytes }, &archive);
		dump("brv", archive.data, archive.nbytes);
		struct outcome first = decode(&archive, kn_sets[0], !changes);
		if (!changes)
			FUZZ_CHECK(first.status == BRV_SUCCESS && first.nbytes == expected.nbytes &&
					   memcmp(first.data, expected.data, first.nbytes) == 0,
				   "status %d, %llu bytes", first.status, (unsigned long long)first.nbytes);
		for (unsigned s = 1; kn_sets[s]; s++) {
			if (!kn_sets[s]->supported())
				continue;
			struct outcome other = decode(&archive, kn_sets[s], !changes);
			FUZZ_CHECK(other.status == first.status, "%s: status %d, scalar %d", kn_sets[s]->name, other.status, first.status);
			FUZZ_CHECK(first.status != BRV_SUCCESS || memcmp(first.data, other.data, first.nbytes) == 0, "%s: other bytes",
				   kn_sets[s]->name);
			free(other.data);
		}
		if (first.status == BRV_SUCCESS)
			dump("data", first.data, first.nbytes);
		free(first.data);
	}
	buffer_free(&archive);
	buffer_free(&expected);
	return 0;
}

/* With FUZZ_DUMP=DIRECTORY, archives are written there, then what they decode to if they do: for people, and for other decoders to agree
 * or not. */
static void dump(const char *suffix, const void *bytes, size_t nbytes)
{
	static unsigned number;
	const char *directory = getenv("FUZZ_DUMP");
	char path[4096];

	if (!directory)
		return;
	number += strcmp(suffix, "brv") == 0;
	snprintf(path, sizeof(path), "%s/%06u.%s", directory, number, suffix);
	FILE *file = fopen(path, "wb");
	FUZZ_CHECK(file && fwrite(bytes, 1, nbytes, file) == nbytes && fclose(file) == 0, "%s", path);
}

/* --- The mutator: decisions stay in their place, changes come and go as wholes --- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t max_nbytes, unsigned seed)
{
	if (max_nbytes < DECISIONS_NBYTES + CHANGE_NBYTES)
		return LLVMFuzzerMutate(data, nbytes, max_nbytes);
	if (nbytes < DECISIONS_NBYTES) {
		memset(data + nbytes, 0, DECISIONS_NBYTES - nbytes);
		nbytes = DECISIONS_NBYTES;
	}
	nbytes -= (nbytes - DECISIONS_NBYTES) % CHANGE_NBYTES;
	switch (seed % 8) {
	case 0: return DECISIONS_NBYTES;
	case 1:
	case 2:
		if (nbytes + CHANGE_NBYTES <= max_nbytes) {
			store_u16(data + nbytes, (uint16_t)(seed >> 8));
			data[nbytes + 2] = (uint8_t)(seed & 16 ? 1u << (seed >> 24) % 8 : seed >> 24);
			return nbytes + CHANGE_NBYTES;
		}
		return nbytes - CHANGE_NBYTES;
	case 3:
		if (nbytes > DECISIONS_NBYTES)
			LLVMFuzzerMutate(data + DECISIONS_NBYTES, nbytes - DECISIONS_NBYTES, nbytes - DECISIONS_NBYTES);
		return nbytes;
	default: break;
	}
	const size_t left = LLVMFuzzerMutate(data, DECISIONS_NBYTES, DECISIONS_NBYTES);
	memset(data + left, 0, DECISIONS_NBYTES - left);
	return nbytes;
}

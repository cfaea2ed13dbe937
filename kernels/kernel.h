/* kernel.h: the one signature of all kernels, the kernel sets, and the tables that kernels read.
 *
 * A kernel produces the n words of one register of one chunk. Everything it is given has been verified, except the
 * bytes of the payload and of the streams it reads: a kernel may produce anything from a corrupt payload, but never reads beyond
 * pay + pay_nbytes + KN_PAD nor writes beyond the n words of dst. SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_KERNEL_H
#define KERNELS_KERNEL_H

#include "common/base.h"
#include "common/bytecode.h"

enum {
	KN_PAD = 256,           /* readable bytes that the caller guarantees after every payload and after every argument stream */
	KN_MAX_ROWS = 8,        /* row classes */
	KN_MAX_COLS = 16,       /* column classes of lit.wide */
	ALIAS_LANES = 128,
	ALIAS_MAX_ENTRIES = 256, /* buckets of lit.alias, over the column classes */
	RANS_MAX_COLS = 4,      /* column classes of lit.rans and lit.alias */
	KN_CLASS_PAD = 256,     /* entries that a column-class array is extended by, cyclically */
	KN_DRAIN_NBYTES = 4096,         /* a few times as many lines as the CPU writes at once, so that bursts are short */
	KN_GROUP = 128,         /* words that share a row class */
	RANS_LANES = 128,
	WIDE_LANES = 64,
	WIDE_BITS = 12,         /* of probabilities, of lit.wide and lit.alias */
	HUFF_BITS = 12,
};

/* lit.huff: symbols of the longest code's window. entry[window]: up to 4 whole codes: byte 0..3 the symbols, byte 4 how many, byte 5 their
 * bits together; one[window]: the first symbol and (in the high byte) its length. Windows have `bits` bits, first bit lowest. */
struct kn_huff {
	unsigned bits;                  /* of the longest code */
	uint64_t entry[1 << HUFF_BITS];
	uint16_t one[1 << HUFF_BITS];
	uint8_t length[256];            /* of each symbol's code; 0: none */
	uint16_t code[256];             /* first bit lowest: ready to be OR-ed into a bit string */
};

/* lit.rans: one entry per (column class, bucket) at index column * nb + bucket, per row class. With nb * kc below 64
 * the entries are repeated up to 64, so that a lookup needs no mask. `alias` includes column * nb. */
struct kn_rans_rows {
	uint8_t threshold[256];         /* bucket * C + threshold: the first position of the alias, compared with the low byte */
	uint8_t freq[256];              /* by symbol index (with column * nb) */
	uint8_t before[256];            /* (before - (bucket * C + threshold)) & 255: rank = low byte + this, mod 256 */
	uint8_t alias[256];
};
struct kn_rans {
	uint8_t log2_nb, width, kr, kc;
	uint16_t base;
	uint8_t escape;                 /* symbol index, 255: none */
	uint8_t map[64];                /* repeated up to 64 entries */
	uint8_t tail[16];               /* [15] is 0 */
	struct kn_rans_rows row[KN_MAX_ROWS];
	/* The same for loops without vectors, one lookup a word: flat[(row * kc + column) << 8 | low byte] = freq << 24 | is the escape << 16 |
	 * rank << 8 | byte, which is map's, and has the base added (mod 2^width) if width is at most 8. */
	uint32_t flat[];                /* kr * kc << 8 */
};

/* lit.wide: slot[(row * kc + column) << WIDE_BITS | slot] = freq << 20 | symbol index << 12 | rank. */
struct kn_wide {
	uint8_t width, kr, kc;
	bool has_escape;
	uint16_t nsym;                  /* the escape, if any, is nsym - 1 */
	uint16_t value[256];
	uint32_t slot[];                /* kr * kc << WIDE_BITS */
};

/* lit.alias: what the position's bucket says, at index (column * nb + bucket) * 2 + (whether the position is the bucket's own symbol's). */
struct kn_alias_cell {
	uint16_t limit;                 /* positions (of all 4096, << 4) below it are the own symbol's; the same in both cells */
	uint16_t freq;                  /* << 4 */
	uint16_t add;                   /* rank = position + this, all << 4, mod 2^16 */
	uint16_t value;                 /* the word, or the marker of the escape */
};
struct kn_alias_rows {
	struct kn_alias_cell cell[ALIAS_MAX_ENTRIES][2];
	/* The same for vectors, as arrays; below 64 entries repeated up to there. [0]: the alias, [1]: own. */
	uint16_t limit[ALIAS_MAX_ENTRIES], freq[2][ALIAS_MAX_ENTRIES], add[ALIAS_MAX_ENTRIES], value[2][ALIAS_MAX_ENTRIES];
	/* The alias's bucket (without the class) on top, below it the threshold in the bucket << 4. A bucket that its symbol fills is its own alias. */
	uint16_t alias_limit[64];
	/* And as planes of bytes. limit, add: by bucket; freq, value: by own symbol. alias includes column * nb. */
	uint8_t alias[ALIAS_MAX_ENTRIES], limit_plane[2][ALIAS_MAX_ENTRIES], freq_plane[2][ALIAS_MAX_ENTRIES], add_plane[2][ALIAS_MAX_ENTRIES],
		value_plane[2][ALIAS_MAX_ENTRIES];
};
struct kn_alias {
	uint8_t log2_nb, width, kr, kc;
	bool has_escape;
	uint16_t nsym;                  /* the escape, if any, is nsym - 1 */
	uint16_t marker;                /* a word that is no symbol's: what stands for the escape */
	uint16_t value[ALIAS_MAX_ENTRIES];
	struct kn_alias_rows row[];     /* kr */
};

/* A table as kernels read it, allocated as far as its kind needs. Made by table_expand() from its body in the archive; freed with free(). */
struct kn_table {
	enum bc_table kind;
	union {
		struct kn_huff huff;
		struct kn_rans rans;
		struct kn_wide wide;
		struct kn_alias alias;
	};
};

/* Checks the body of a table (docs/FORMAT.md, 6) and expands it. BRV_DAMAGED, BRV_VERSION (unknown kind) or BRV_MEMORY. */
enum brv_status table_expand(uint8_t kind, struct span body, struct kn_table **out, struct error *err);

/* Row and column classes of a table, and the logarithm of what its kernel wants column classes multiplied by. */
struct kn_table_shape {
	uint8_t kr, kc, log2_nb;
};
struct kn_table_shape table_shape(const struct kn_table *table);

/* Bytes that table_expand() will allocate for this body; 0 if it cannot be valid. */
size_t table_expanded_nbytes(uint8_t kind, struct span body);

/* A field of a fused merge, lowest first: packed words straight from the payload. */
struct kn_field {
	const uint8_t *pay;             /* packed words; the last bc_carry_nbytes() are missing if it is the carry's target */
	size_t pay_nbytes;
	uint8_t width;
	bool carried;
};

/* Where the words of a chunk go block by block while they are in the first-level cache, instead of to a register in memory. */
struct kn_drain {
	void (*put)(struct kn_drain *drain, const uint8_t *bytes, size_t nbytes); /* the next bytes, KN_DRAIN_NBYTES at most */
	uint64_t nbytes;                /* put so far */
};

struct kn_args {
	void *dst;                      /* n words, word_nbytes(width) bytes each; no alignment promised; must not overlap any source */
	size_t n;                       /* > 0 */
	uint8_t op;                     /* enum bc_op: tells ops that share a kernel apart */
	uint8_t width;
	uint8_t nsrc;
	uint64_t imm;
	const void *src[BC_MAX_ARGS];   /* argument streams */
	size_t src_n[BC_MAX_ARGS];      /* their words */
	uint8_t src_width[BC_MAX_ARGS];
	const uint8_t *pay;             /* packed words, first word, or the bytes of the item (after the u32 length) */
	size_t pay_nbytes;
	const struct kn_table *table;
	/* Classes; row_class NULL: all 0. Word i of dst is word first + i of its stream. */
	const uint8_t *row_class;       /* by row */
	const uint8_t *col_class;       /* by column, extended cyclically by KN_CLASS_PAD; for lit.rans and lit.alias already times nb */
	size_t row_words;               /* G; 0 without classes */
	size_t first;
	uint8_t *carry;                 /* receives bc_carry_nbytes(op), or NULL: then final states must be the lowest */
	uint8_t *scratch;               /* for escapes: n * 2 + KN_PAD bytes */
	/* Fused merges: raw fields below the coded one, and the rotation of the whole. */
	const struct kn_field *field;
	uint8_t nfield, rotate;
	uint8_t coded_width;            /* of the coded field; width = sum of the fields + this */
	struct kn_drain *drain;         /* may be NULL. A kernel that can puts all of its words there, and dst is left undefined; else none */
};

/* True on success; false if the payload is damaged (docs/FORMAT.md, 5.3). Fused kernels take any fields and widths, but have fast bodies for
 * some shapes only. */
typedef bool kn_fn(const struct kn_args *args);

enum kn_id {
#define OP(...)
#define FUSED(id, kernel, effect) KN_FUSED_##id,
#include "common/ops.def"
#undef OP
#undef FUSED
	KN_FUSED_COUNT,
};

/* Encoders give the same bytes in every set. They append the item (without its u32 length) to dst and return its size.
 * src: n words of the table's width; what lit.rans's table cannot say becomes an escape or a patch. 0 is returned if a word cannot be coded: lit.huff
 * without a code for it, lit.wide and lit.alias without an escape.
 * dst holds kn_encode_bound(n) bytes. carry: bc_carry_nbytes() to hide, or NULL. */
struct kn_enc_args {
	uint8_t *dst;
	const void *src;
	size_t n;
	const struct kn_table *table;
	const uint8_t *row_class, *col_class;   /* as in kn_args, but col_class is never scaled */
	size_t row_words, first;
	const uint8_t *carry;
	uint8_t *scratch;                       /* kn_encode_bound(n) bytes */
};
typedef size_t kn_enc_fn(const struct kn_enc_args *args);
/* Copies nbytes bytes past the caches, where they are not wanted soon: no line of dst is read before it is written. 0 bytes: waits until whatever this
 * thread so copied is seen by all. */
typedef void kn_past_fn(void *dst, const void *src, size_t nbytes);
static inline size_t kn_encode_bound(size_t n) { return n * 4 + n * 6 + 4096; }

/* Costs of lines (rows or columns of a tensor) in each of some classes: sum[k * stride + i] += cost[(label[r] * classes + k) * 32 + symbol[r * stride + i]]
 * over the n rows r. The same in every set. */
struct kn_class_args {
	const uint8_t *symbol;          /* n rows of `stride` symbols below 32; stride is a multiple of 64 */
	size_t stride, n;
	const uint8_t *label;           /* of each row */
	unsigned classes;
	bool both;                      /* there are symbols above 15 */
	const uint8_t *cost;            /* at most 127 each */
	uint32_t *sum;                  /* classes * stride */
};
typedef void kn_class_fn(const struct kn_class_args *args);

/* out[i] = words[i] of `width` <= 64 bits, rotated left by `rotate` < width and shifted right by `shift`, its `bits` low bits: n words of that width. Nothing
 * needs to be aligned. The same in every set. */
typedef void kn_field_fn(const void *words, size_t n, unsigned width, unsigned rotate, unsigned shift, unsigned bits, void *out);

/* The symbols below 32 that classes are found by: what bits shift..shift + bits - 1 of a word of 8, 16 or 32 bits lie above `base`, from 0 to KN_SCALES - 1, and
 * 16 more where the top bit is set, if `sign`. The same in every set. */
enum { KN_SCALES = 16 };
struct kn_scale {
	unsigned width, shift, bits;    /* bits <= 8 */
	bool sign;
	bool complement;                /* negative words are inverted first */
	uint8_t base;
};
typedef void kn_scale_fn(const struct kn_scale *scale, const void *words, size_t n, uint8_t *out);

/* Writes n words of `width` bits, `base` subtracted from each mod 2^bits, as packed words (docs/FORMAT.md, 1) of `bits` <= 64 bits: packed_nbytes(n, bits) bytes,
 * and up to KN_PACK_PAD more may be overwritten. The same in every set. */
enum { KN_PACK_PAD = 16 };
typedef void kn_pack_fn(uint8_t *out, const void *words, size_t n, unsigned width, uint64_t base, unsigned bits);

/* One instruction set's bodies. fn is indexed by op code (NULL: the executor's own); sets that have no body of their own for an
 * op point to the best set that the same CPUs run: every cell is filled. */
struct kn_set {
	const char *name;                       /* "scalar", "avx2", "avx512", "avx512i", "neon", "hwy" */
	bool (*supported)(void);
	const char *(*why)(void);               /* a word on that: "lacks avx512vbmi2"; static or thread-local text */
	kn_fn *fn[256];
	kn_fn *fused[KN_FUSED_COUNT];
	/* Whether a fused kernel is faster than the ops apart; fields, widths, rotation and table of shape are set. */
	bool (*can_fuse)(enum kn_id id, const struct kn_args *shape);
	kn_enc_fn *enc[TABLE_KINDS];            /* by the kind of table */
	kn_past_fn *copy_past;                  /* NULL: no such stores */
	kn_class_fn *class_costs;
	kn_field_fn *take_field;
	kn_scale_fn *class_symbols;
	kn_pack_fn *pack_words;
};

/* The fused merge under a rANS literal. */
static inline enum kn_id kn_merge_of(uint8_t op)
{
	return op == OP_LIT_RANS ? KN_FUSED_RANS_MERGE : op == OP_LIT_WIDE ? KN_FUSED_WIDE_MERGE : KN_FUSED_ALIAS_MERGE;
}

/* All sets that this build has, reference first, NULL at the end. */
extern const struct kn_set *const kn_sets[];

/* The CPU's name and the features found, in one line for people; always terminated. */
void cpu_describe(char *text, size_t size);

/* The set to use: the last supported one, or the one that BREVIS_ISA names. BRV_USAGE if it names none or one that this CPU lacks. */
enum brv_status kn_choose(const struct kn_set **out, struct error *err);

#endif

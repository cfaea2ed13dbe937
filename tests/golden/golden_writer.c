/* golden_writer.c: the golden archives: small ones that every release must decode, one for each op, each form of a literal and of a
 * table, and each corner of the format that a reader of docs/FORMAT.md could miss.
 *
 *     golden-writer DIRECTORY      writes NAME.brv and NAME.safetensors for each case
 *
 * What is committed stays as it is: a case is added, never made anew, because archives in the world do not change either. An encoder
 * that got better gives other bytes, hence the program writes only what is not there yet. (synthesized.brv is not from here:
 * brevis-synth made it.) SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "common/archive.h"
#include "common/deal.h"
#include "tests/forge.h"

enum { MAX_NBYTES = 8192, MAX_TENSORS = 4 };

#define I(op_, width_, nargs_, ...) { .op = OP_##op_, .width = width_, .nargs = nargs_, __VA_ARGS__ }
#define P(...) { FORGE_PROGRAM(__VA_ARGS__) }
#define RUNS(a, b, c, d) ((uint64_t)(a) | (uint64_t)(b) << 16 | (uint64_t)(c) << 32 | (uint64_t)(d) << 48)

#define Q5 (32 | DEAL_FIELD(0, 1, 4, 1) | DEAL_FIELD(1, 4, 0, 16))
#define Q6 (256 | DEAL_FIELD(0, 4, 0, 64) | DEAL_FIELD(1, 2, 4, 32))

struct golden {
	const char *name;
	unsigned rows, kr, columns, kc; /* class streams 1 (rows) and 2 (columns), or whichever there is as 1 */
	bool coded_sections, predicted_sections;
	uint16_t flags; /* of the prelude */
	struct forge_tensor tensor[MAX_TENSORS];
};

/* A tensor of one program and n words, and whatever else. */
#define T(name_, dtype_, n_, program_, ...) { .name = name_, .dtype = dtype_, .nwords = n_, .program = program_, __VA_ARGS__ }

static const struct golden cases[] = {
	/* Literals. */
	{ "lit-raw", .tensor = { T("t", "U16", 100, P(I(LIT_RAW, 16, 0))) } },
	{ "lit-raw-odd-widths", .tensor = { T("t", "U64", 77,
					      P(I(LIT_RAW, 1, 0), I(LIT_RAW, 3, 0), I(LIT_RAW, 7, 0), I(LIT_RAW, 13, 0), I(LIT_RAW, 33, 0),
						I(LIT_RAW, 7, 0), I(MERGE, 64, 6))) } },
	{ "lit-pack", .tensor = { T("t", "I32", 100, P(I(LIT_PACK, 32, 0)), .pack_bits = 5) } },
	{ "lit-pack-0-bits", .tensor = { T("t", "I64", 100, P(I(LIT_PACK, 64, 0)), .pack_bits = 0) } },
	{ "lit-pack-all-bits", .tensor = { T("t", "U8", 33, P(I(LIT_PACK, 3, 0), I(LIT_PACK, 5, 0), I(MERGE, 8, 2)), .pack_bits = 64) } },
	{ "lit-huff-one-segment", .tensor = { T("t", "U8", 255, P(I(LIT_HUFF, 8, 0)), .symbols = 40) } },
	{ "lit-huff-eight-segments", .tensor = { T("t", "U8", 1000, P(I(LIT_HUFF, 8, 0)), .symbols = 200) } },
	{ "lit-huff-short-segments", .tensor = { T("t", "U8", 257, P(I(LIT_HUFF, 8, 0)), .symbols = 2) } },
	{ "lit-huff-odd-width", .tensor = { T("t", "U8", 300, P(I(LIT_RAW, 3, 0), I(LIT_HUFF, 5, 0), I(MERGE, 8, 2)), .symbols = 9) } },
	{ "lit-rans-nb16", .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0)), .log2_nb = 4, .symbols = 15) } },
	{ "lit-rans-nb32", .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0)), .log2_nb = 5, .symbols = 31) } },
	{ "lit-rans-nb64", .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0)), .log2_nb = 6, .symbols = 60) } },
	{ "lit-rans-escapes", .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0)), .log2_nb = 4, .symbols = 40, .outliers = 9) } },
	{ "lit-rans-patches", .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0)), .log2_nb = 4, .symbols = 16, .outliers = 40) } },
	{ "lit-rans-wide-words", .tensor = { T("t", "U16", 1000, P(I(LIT_RANS, 16, 0)), .log2_nb = 5, .symbols = 60, .outliers = 50) } },
	{ "lit-rans-base", .tensor = { T("t", "U8", 1000, P(I(LIT_RANS, 8, 0)), .symbols = 30, .outliers = 30, .base = 201),
				       T("u", "U8", 1000, P(I(LIT_RAW, 3, 0), I(LIT_RANS, 5, 0), I(MERGE, 8, 2)), .symbols = 28,
					 .outliers = 30, .base = 13) } },
	{ "lit-rans-9-bits",
	  .tensor = { T("t", "BF16", 700,
			P(I(LIT_RAW, 7, 0), I(LIT_RANS, 9, 0, .flags = BC_CARRY), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1)),
			.log2_nb = 5, .symbols = 40, .outliers = 60) } },
	{ "lit-rans-few-words", .tensor = { T("t", "U8", 1, P(I(LIT_RANS, 8, 0))), T("u", "U8", 127, P(I(LIT_RANS, 8, 0))),
					    T("v", "U8", 129, P(I(LIT_RANS, 8, 0))) } },
	{ "lit-rans-carry",
	  .tensor = { T("t", "BF16", 900,
			P(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1)),
			.symbols = 14, .chunk = 450) } },
	{ "lit-rans-carry-elsewhere",
	  .tensor = { T("t", "U16", 1100,
			P(I(LIT_RAW, 1, 0), I(LIT_RAW, 9, 0), I(LIT_RANS, 6, 0, .flags = BC_CARRY, .aux = 0), I(MERGE, 16, 3)),
			.log2_nb = 6, .symbols = 50) } },
	{ "lit-rans-carry-only",
	  .tensor = { T("t", "U8", 130, P(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(CONCAT, 8, 2, .imm = 128))) } },
	{ "lit-rans-carry-outside", .tensor = { T("t", "F32", 500,
						  P(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0), I(MERGE, 16, 2),
						    I(LIT_RANS, 8, 0, .flags = BC_CARRY, .aux = 0), I(MERGE, 32, 3))) } },
	{ "lit-rans-row-classes", .rows = 30, .kr = 3,
	  .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0, .flags = BC_CLASSED)), .chunk = 650, .geometry = 50, .rows = 1) } },
	{ "lit-rans-column-classes", .columns = 50, .kc = 4,
	  .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0, .flags = BC_CLASSED)), .chunk = 650, .geometry = 50, .columns = 1) } },
	{ "lit-rans-both-classes", .rows = 24, .kr = 8, .columns = 64, .kc = 4,
	  .tensor = { T(
		  "t", "BF16", 24 * 64,
		  P(I(LIT_RAW, 7, 0), I(LIT_RANS, 9, 0, .flags = BC_CARRY | BC_CLASSED), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1)),
		  .chunk = 1000, .log2_nb = 5, .symbols = 50, .outliers = 70, .geometry = 64, .rows = 1, .columns = 2) } },
	{ "lit-rans-long-rows", .rows = 3, .kr = 2, .columns = 500, .kc = 2,
	  .tensor = { T("t", "U8", 1500, P(I(LIT_RANS, 8, 0, .flags = BC_CLASSED)), .log2_nb = 6, .symbols = 40, .geometry = 500, .rows = 1,
			.columns = 2) } },
	{ "lit-wide", .tensor = { T("t", "U8", 1500, P(I(LIT_WIDE, 8, 0)), .symbols = 256) } },
	{ "lit-wide-escape", .tensor = { T("t", "U16", 800, P(I(LIT_WIDE, 16, 0)), .symbols = 400, .outliers = 30) } },
	{ "lit-wide-byte-escape", .tensor = { T("t", "U8", 300, P(I(LIT_WIDE, 8, 0)), .symbols = 3, .outliers = 30) } },
	{ "lit-wide-few-words", .tensor = { T("t", "U8", 1, P(I(LIT_WIDE, 8, 0))), T("u", "U8", 63, P(I(LIT_WIDE, 8, 0))),
					    T("v", "U8", 65, P(I(LIT_WIDE, 8, 0))) } },
	{ "lit-wide-carry",
	  .tensor = { T("t", "F16", 700,
			P(I(LIT_RAW, 6, 0), I(LIT_WIDE, 10, 0, .flags = BC_CARRY), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1)),
			.symbols = 300, .outliers = 50) } },
	{ "lit-wide-both-classes", .rows = 20, .kr = 3, .columns = 60, .kc = 4,
	  .tensor = { T("t", "U8", 1200, P(I(LIT_WIDE, 8, 0, .flags = BC_CLASSED)), .chunk = 500, .symbols = 20, .geometry = 60, .rows = 1,
			.columns = 2) } },
	{ "lit-wide-16-columns", .columns = 48, .kc = 16,
	  .tensor = { T("t", "U8", 960, P(I(LIT_WIDE, 8, 0, .flags = BC_CLASSED)), .symbols = 8, .geometry = 48, .columns = 1) } },
	{ "lit-alias", .tensor = { T("t", "U8", 1500, P(I(LIT_ALIAS, 8, 0)), .symbols = 16), T("u", "U8", 1200, P(I(LIT_ALIAS, 8, 0)), .log2_nb = 5, .symbols = 30) } },
	{ "lit-alias-nb64-nb128", .tensor = { T("t", "U8", 1500, P(I(LIT_ALIAS, 8, 0)), .log2_nb = 6, .symbols = 60),
					      T("u", "U8", 1200, P(I(LIT_ALIAS, 8, 0)), .log2_nb = 7, .symbols = 128) } },
	{ "lit-alias-nb256", .tensor = { T("t", "U8", 2500, P(I(LIT_ALIAS, 8, 0)), .log2_nb = 8, .symbols = 256) } },
	{ "lit-alias-escape", .tensor = { T("t", "U16", 1300, P(I(LIT_ALIAS, 16, 0)), .log2_nb = 6, .symbols = 100, .outliers = 30) } },
	{ "lit-alias-byte-escape", .tensor = { T("t", "U8", 300, P(I(LIT_ALIAS, 8, 0)), .symbols = 20, .outliers = 30) } },
	{ "lit-alias-few-words", .tensor = { T("t", "U8", 1, P(I(LIT_ALIAS, 8, 0))), T("u", "U8", 127, P(I(LIT_ALIAS, 8, 0))),
					     T("v", "U8", 129, P(I(LIT_ALIAS, 8, 0))) } },
	{ "lit-alias-carry",
	  .tensor = { T("t", "BF16", 900,
			P(I(LIT_RAW, 7, 0), I(LIT_ALIAS, 9, 0, .flags = BC_CARRY), I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 1)),
			.log2_nb = 5, .symbols = 30, .outliers = 50, .chunk = 450) } },
	{ "lit-alias-carry-elsewhere",
	  .tensor = { T("t", "U16", 2100,
			P(I(LIT_RAW, 1, 0), I(LIT_RAW, 9, 0), I(LIT_ALIAS, 6, 0, .flags = BC_CARRY, .aux = 0), I(MERGE, 16, 3)),
			.log2_nb = 6, .symbols = 50) } },
	{ "lit-alias-both-classes", .rows = 20, .kr = 3, .columns = 60, .kc = 4,
	  .tensor = { T("t", "U8", 1200, P(I(LIT_ALIAS, 8, 0, .flags = BC_CLASSED)), .log2_nb = 6, .chunk = 500, .symbols = 20, .geometry = 60, .rows = 1,
			.columns = 2) } },
	/* Words from nothing, and from other words. */
	{ "const", .tensor = { T("t", "F32", 1000, P(I(CONST, 32, 0, .imm = 0x3f800000))),
			       T("u", "I64", 3, P(I(CONST, 64, 0, .imm = 0x8000000000000001))) } },
	{ "concat", .tensor = { T("t", "U8", 60, P(I(CONST, 8, 0, .imm = 7), I(LIT_RAW, 8, 0), I(CONCAT, 8, 2, .imm = 21))) } },
	{ "concat-empty", .tensor = { T("t", "U16", 20, P(I(LIT_RANS, 16, 0), I(LIT_RAW, 16, 0), I(CONCAT, 16, 2, .imm = 0))),
				      T("u", "U16", 20, P(I(LIT_RAW, 16, 0), I(CONST, 16, 0), I(CONCAT, 16, 2, .imm = 20))) } },
	{ "repeat", .tensor = { T("t", "I32", 90, P(I(LIT_RAW, 32, 0), I(REPEAT, 32, 1, .imm = 9))),
				T("u", "U8", 90, P(I(LIT_RAW, 8, 0), I(REPEAT, 8, 1, .imm = 1))) } },
	{ "ref", .tensor = { T("t", "BF16", 300, P(I(LIT_RAW, 16, 0)), .chunk = 70),
			     T("u", "I16", 200, P(I(REF, 16, 0)), .chunk = 90, .ref_stream = 1, .ref_first = 65),
			     T("v", "U16", 64, P(I(REF, 16, 0), I(MAP_XOR, 16, 1, .imm = 0x8000)), .ref_stream = 1, .ref_first = 236) } },
	/* Maps and scans: every size of word, and odd widths. */
	{ "map-xor", .tensor = { T("t", "U64", 30,
				   P(I(LIT_RAW, 31, 0), I(MAP_XOR, 31, 1, .imm = 0x55555555), I(LIT_RAW, 33, 0),
				     I(MAP_XOR, 33, 1, .imm = 1), I(MERGE, 64, 2), I(MAP_XOR, 64, 1, .imm = ~0ull))) } },
	{ "map-add", .tensor = { T("t", "U32", 30,
				   P(I(LIT_RAW, 9, 0), I(MAP_ADD, 9, 1, .imm = 500), I(LIT_RAW, 23, 0), I(MAP_ADD, 23, 1, .imm = 1),
				     I(MERGE, 32, 2), I(MAP_ADD, 32, 1, .imm = 0xffffffff))) } },
	{ "map-zigzag", .tensor = { T("t", "U32", 100,
				      P(I(LIT_RAW, 3, 0), I(MAP_ZIGZAG, 3, 1), I(LIT_RAW, 13, 0), I(MAP_ZIGZAG, 13, 1), I(LIT_RAW, 16, 0),
					I(MAP_ZIGZAG, 16, 1), I(MERGE, 32, 3), I(MAP_ZIGZAG, 32, 1))) } },
	{ "map-gray", .tensor = { T("t", "U64", 100,
				    P(I(LIT_RAW, 1, 0), I(MAP_GRAY, 1, 1), I(LIT_RAW, 7, 0), I(MAP_GRAY, 7, 1), I(LIT_RAW, 56, 0),
				      I(MAP_GRAY, 56, 1), I(MERGE, 64, 3), I(MAP_GRAY, 64, 1))) } },
	{ "map-rot", .tensor = { T("t", "U16", 60,
				   P(I(LIT_RAW, 5, 0), I(MAP_ROT, 5, 1, .imm = 4), I(LIT_RAW, 11, 0), I(MAP_ROT, 11, 1, .imm = 0),
				     I(MERGE, 16, 2), I(MAP_ROT, 16, 1, .imm = 3))) } },
	{ "scan-xor",
	  .tensor = { T("t", "U16", 100, P(I(LIT_RAW, 16, 0), I(SCAN_XOR, 16, 1)), .chunk = 33) } }, /* the last chunk has one word */
	{ "scan-add",
	  .tensor = { T("t", "I64", 70, P(I(LIT_PACK, 64, 0), I(SCAN_ADD, 64, 1), I(SCAN_ADD, 64, 1)), .pack_bits = 3, .chunk = 23) } },
	{ "scan-add-odd-width",
	  .tensor = { T("t", "U8", 50, P(I(LIT_RAW, 5, 0), I(SCAN_ADD, 5, 1), I(LIT_RAW, 3, 0), I(SCAN_XOR, 3, 1), I(MERGE, 8, 2))) } },
	/* Merges, records, rows. */
	{ "merge-2", .tensor = { T("t", "F32", 50, P(I(LIT_RAW, 8, 0), I(LIT_RAW, 24, 0), I(MERGE, 32, 2))) } },
	{ "merge-16",
	  .tensor = { T("t", "U16", 40,
			P(I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0),
			  I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0),
			  I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(LIT_RAW, 1, 0), I(MERGE, 16, 16))) } },
	{ "weave-2",
	  .tensor = { T("t", "U8", 180, P(I(LIT_RAW, 8, 0), I(CONST, 8, 0, .imm = 3), I(WEAVE, 8, 2, .imm = RUNS(2, 16, 0, 0)))) } },
	{ "weave-4", .tensor = { T("t", "U32", 60,
				   P(I(LIT_RAW, 32, 0), I(CONST, 32, 0, .imm = 3), I(LIT_PACK, 32, 0), I(LIT_RAW, 32, 0),
				     I(WEAVE, 32, 4, .imm = RUNS(1, 1, 3, 1))),
				   .pack_bits = 9) } },
	{ "gate", .rows = 20, .kr = 3,
	  .tensor = { T("t", "U16", 300, P(I(LIT_RAW, 16, 0), I(GATE, 16, 1, .flags = BC_CLASSED, .imm = 2)), .chunk = 67, .geometry = 15,
			.rows = 1) } },
	{ "gate-below-merge", .rows = 20, .kr = 2,
	  .tensor = { T("t", "F32", 300,
			P(I(LIT_RAW, 16, 0), I(GATE, 16, 1, .flags = BC_CLASSED, .imm = 1), I(LIT_RANS, 16, 0, .flags = BC_CLASSED),
			  I(MERGE, 32, 2)),
			.geometry = 15, .rows = 1, .outliers = 60) } },
	{ "gate-everything", .rows = 4, .kr = 2,
	  .tensor = { T("t", "U8", 40, P(I(LIT_HUFF, 8, 0), I(GATE, 8, 1, .flags = BC_CLASSED, .imm = 3)), .geometry = 10, .rows = 1) } },
	/* Words chosen. */
	{ "lookup", .tensor = { T("t", "F32", 500, P(I(LIT_RAW, 32, 0), I(LIT_RAW, 5, 0), I(LOOKUP, 32, 2)), .chunk = 130),
				T("u", "U8", 300, P(I(LIT_RAW, 8, 0), I(LIT_RAW, 8, 0), I(LOOKUP, 8, 2))),
				T("v", "I64", 70, P(I(LIT_PACK, 64, 0), I(LIT_HUFF, 3, 0), I(LOOKUP, 64, 2)), .pack_bits = 40, .symbols = 7) } },
	{ "lookup-blocks", .tensor = { T("t", "F16", 500, P(I(LIT_RAW, 16, 0), I(LIT_RANS, 4, 0), I(LOOKUP, 16, 2, .imm = 48)), .chunk = 240),
				       T("u", "U16", 65, P(I(LIT_RAW, 16, 0), I(LIT_RAW, 1, 0), I(LOOKUP, 16, 2, .imm = 3))),
				       T("v", "U16", 65, P(I(LIT_RAW, 16, 0), I(LIT_RAW, 2, 0), I(LOOKUP, 16, 2, .imm = 1ull << 40))) } },
	{ "lookup-classed", .rows = 20, .kr = 3, .columns = 32, .kc = 2,
	  .tensor = { T("t", "BF16", 640, P(I(LIT_PACK, 16, 0), I(LIT_RANS, 5, 0, .flags = BC_CLASSED), I(LOOKUP, 16, 2)), .pack_bits = 9, .symbols = 20,
			.geometry = 32, .rows = 1, .columns = 2) } },
	{ "lookup-wide-index", .tensor = { T("t", "U16", 1100, P(I(LIT_RAW, 13, 0), I(LIT_RAW, 10, 0), I(LOOKUP, 13, 2), I(LIT_RAW, 3, 0), I(MERGE, 16, 2))) } },
	{ "scatter", .tensor = { T("t", "BF16", 700,
				   P(I(LIT_RAW, 8, 0), I(LIT_RANS, 8, 0, .flags = BC_CARRY), I(MERGE, 16, 2), I(LIT_RAW, 1, 0), I(SCATTER, 16, 2)),
				   .chunk = 400),
				 T("u", "U32", 90, P(I(LIT_RAW, 32, 0), I(LIT_HUFF, 1, 0), I(SCATTER, 32, 2, .imm = 0x3f800000)), .symbols = 2) } },
	{ "scatter-ends", .tensor = { T("t", "U8", 40, P(I(LIT_HUFF, 8, 0), I(CONST, 1, 0), I(SCATTER, 8, 2, .imm = 9))),
				      T("u", "U64", 40, P(I(LIT_RAW, 64, 0), I(CONST, 1, 0, .imm = 1), I(SCATTER, 64, 2, .imm = 9))) } },
	{ "scatter-classed", .rows = 20, .kr = 2,
	  .tensor = { T("t", "U8", 640, P(I(LIT_RAW, 8, 0), I(LIT_RANS, 1, 0, .flags = BC_CLASSED), I(SCATTER, 8, 2)), .symbols = 2, .geometry = 32,
			.rows = 1) } },
	{ "scatter-in-gate", .rows = 20, .kr = 2,
	  .tensor = { T("t", "U16", 300,
			P(I(LIT_RAW, 16, 0), I(LIT_RAW, 3, 0), I(LOOKUP, 16, 2), I(LIT_RAW, 1, 0), I(SCATTER, 16, 2),
			  I(GATE, 16, 1, .flags = BC_CLASSED, .imm = 1)),
			.chunk = 150, .geometry = 15, .rows = 1) } },
	{ "cut", .tensor = { T("t", "U8", 120, P(I(LIT_RAW, 8, 0), I(LIT_RANS, 4, 0), I(CUT, 1, 1), I(SCATTER, 8, 2)), .symbols = 10),
			     T("u", "U16", 60, P(I(LIT_RAW, 60, 0), I(CUT, 15, 1), I(LIT_RAW, 2, 0), I(CUT, 1, 1), I(MERGE, 16, 2))),
			     T("v", "U16", 64, P(I(LIT_HUFF, 8, 0), I(CUT, 2, 1), I(LIT_RAW, 64, 0), I(CUT, 8, 1), I(LIT_RAW, 6, 0), I(MERGE, 16, 3))) } },
	{ "cut-part", .tensor = { T("t", "U8", 9, P(I(LIT_RAW, 7, 0), I(CONST, 4, 0), I(CUT, 1, 1), I(MERGE, 8, 2))) } },
	/* Records. */
	{ "deal", .tensor = { T("t", "U8", 220, P(I(LIT_RAW, 16, 0), I(CUT, 8, 1), I(LIT_RANS, 5, 0), I(DEAL, 8, 1, .imm = Q5), I(WEAVE, 8, 2, .imm = RUNS(2, 20, 0, 0))),
				.log2_nb = 5, .symbols = 28),
			      T("u", "U8", 420, P(I(LIT_WIDE, 6, 0), I(DEAL, 8, 1, .imm = Q6), I(LIT_RAW, 8, 0), I(LIT_RAW, 16, 0), I(CUT, 8, 1), I(WEAVE, 8, 3, .imm = RUNS(192, 16, 2, 0))),
				.chunk = 210, .symbols = 60),
			      T("v", "I32", 40, P(I(LIT_HUFF, 4, 0), I(DEAL, 32, 1, .imm = 8 | DEAL_FIELD(0, 4, 0, 1))), .symbols = 15),
			      T("w", "U16", 63, P(I(LIT_RAW, 7, 0), I(DEAL, 16, 1, .imm = 48 | DEAL_FIELD(0, 1, 2, 3) | DEAL_FIELD(1, 4, 3, 4) | DEAL_FIELD(2, 2, 0, 1)), I(MAP_ADD, 16, 1, .imm = 77))) } },
	{ "classes-in-records", .rows = 11, .kr = 3, .columns = 96, .kc = 4,
	  .tensor = { T("t", "U8", 726, P(I(LIT_RAW, 8, 0), I(LIT_RANS, 5, 0, .flags = BC_CLASSED), I(DEAL, 8, 1, .imm = Q5), I(WEAVE, 8, 2, .imm = RUNS(2, 20, 0, 0))),
			.chunk = 264, .log2_nb = 5, .symbols = 28, .geometry = 96, .rows = 1, .columns = 2),
		      T("u", "U8", 1122, P(I(LIT_RAW, 16, 0), I(CUT, 8, 1), I(LIT_WIDE, 8, 0, .flags = BC_CLASSED), I(WEAVE, 8, 2, .imm = RUNS(2, 32, 0, 0))),
			.chunk = 340, .symbols = 90, .geometry = 96, .rows = 1, .columns = 2),
		      T("v", "U8", 1000, P(I(LIT_WIDE, 16, 0, .flags = BC_CLASSED), I(CUT, 8, 1)), .chunk = 300, .geometry = 96, .columns = 2, .symbols = 9) } },
	/* The archive. */
	{ "sections-coded", .coded_sections = true,
	  .tensor = { T("t", "U8", 300, P(I(LIT_HUFF, 8, 0)), .chunk = 100), T("u", "U8", 10, P(I(CONST, 8, 0))) } },
	{ "sections-predicted", .predicted_sections = true, .rows = 60, .kr = 3,
	  .tensor = { T("t", "U8", 300, P(I(LIT_HUFF, 8, 0)), .chunk = 100), T("u", "BF16", 600, P(I(LIT_HUFF, 8, 0), I(LIT_RAW, 8, 0), I(MERGE, 16, 2)), .chunk = 20),
		      T("v", "U16", 300, P(I(LIT_RAW, 16, 0), I(GATE, 16, 1, .flags = BC_CLASSED, .imm = 2)), .chunk = 67, .geometry = 5, .rows = 1) } },
	{ "variants", .tensor = { { .name = "t",
				    .dtype = "I16",
				    .nwords = 1000,
				    .chunk = 150,
				    .symbols = 20,
				    .outliers = 90,
				    .program = { FORGE_PROGRAM(I(LIT_RANS, 16, 0)),
						 FORGE_PROGRAM(I(LIT_RAW, 8, 0), I(LIT_HUFF, 8, 0), I(MERGE, 16, 2)) } } } },
	{ "names", .tensor = { T("layers.0.\xce\xb1", "U8", 3, P(I(LIT_RAW, 8, 0))), T("quo\"ted\n", "U8", 3, P(I(LIT_RAW, 8, 0))),
			       T("", "U8", 3, P(I(LIT_RAW, 8, 0))), T("no data", "U8", 0, P(I(LIT_RAW, 8, 0))) } },
	{ "sub-byte-types", .tensor = { T("t", "F4", 9, P(I(LIT_RAW, 8, 0))), T("u", "F6_E2M3", 9, P(I(LIT_RAW, 8, 0))),
					T("v", "C64", 4, P(I(LIT_RAW, 32, 0))), T("w", "X3", 5, P(I(LIT_RAW, 8, 0))) } },
	{ "nothing", .tensor = { { 0 } } },
	{ "header-packed", .flags = AR_FLAG_PACKED,
	  .tensor = { T("layers.0.attention.query.weight", "U8", 3, P(I(LIT_RAW, 8, 0))), T("layers.0.attention.\xce\xb1.weight", "U8", 3, P(I(LIT_RAW, 8, 0))),
		      T("quo\"ted\n", "U8", 3, P(I(LIT_RAW, 8, 0))), T("layers.1.attention.query.weight", "U8", 3, P(I(LIT_RAW, 8, 0))) } },
	{ "header-entries", .flags = AR_FLAG_PACKED | AR_FLAG_ENTRIES, .rows = 20, .kr = 3,
	  .tensor = { T("layers.10.attention.query.weight", "BF16", 0, P(I(LIT_RAW, 16, 0))),
		      T("layers.10.attention.\xce\xb1.weight", "F32", 300, P(I(LIT_RAW, 32, 0)), .geometry = 15, .rows = 1), T("", "X3", 5, P(I(LIT_RAW, 8, 0))),
		      T("layers.11.attention.query.weight", "I64", 2, P(I(LIT_RAW, 64, 0))) } },
	{ "header-entries-none", .flags = AR_FLAG_PACKED | AR_FLAG_ENTRIES, .tensor = { { 0 } } },
};

static bool write_file(const char *directory, const char *name, const char *suffix, const struct buffer *bytes)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s%s", directory, name, suffix);
	FILE *file = fopen(path, "wbx");
	if (!file)
		return false;
	const bool good = fwrite(bytes->data, 1, bytes->nbytes, file) == bytes->nbytes;
	return fclose(file) == 0 && good;
}

static int make(const struct golden *golden, const char *directory)
{
	struct forge f;
	struct buffer archive = { 0 }, checkpoint = { 0 };
	int bad = 0;

	forge_begin(&f, XXH3_64bits(golden->name, strlen(golden->name)));
	f.flags = golden->flags;
	if (golden->kr)
		forge_classes(&f, golden->rows, golden->kr);
	if (golden->kc)
		forge_classes(&f, golden->columns, golden->kc);
	for (unsigned i = 0; i < MAX_TENSORS && golden->tensor[i].name; i++) {
		struct forge_tensor tensor = golden->tensor[i];
		tensor.ref_stream += tensor.ref_stream ? f.hm->nstreams - i - 1 : 0; /* cases count tensors from 1 */
		if (!forge_tensor(&f, &tensor)) {
			fprintf(stderr, "golden-writer: %s: tensor %s cannot be made\n", golden->name, tensor.name);
			bad = 1;
		}
	}
	forge_end(&f);
	for (unsigned i = 0; i < AR_SECTIONS; i++)
		f.hm->section[i].huffman = golden->coded_sections, f.hm->section[i].predicted = golden->predicted_sections;
	hm_write(f.hm, &archive);
	forge_expected(&f, &checkpoint);
	if (archive.nbytes > MAX_NBYTES || checkpoint.nbytes > MAX_NBYTES) {
		fprintf(stderr, "golden-writer: %s: %zu and %zu bytes\n", golden->name, archive.nbytes, checkpoint.nbytes);
		bad = 1;
	}
	if (!bad && write_file(directory, golden->name, ".brv", &archive) &&
	    write_file(directory, golden->name, ".safetensors", &checkpoint))
		printf("%s: %zu bytes, stands for %zu\n", golden->name, archive.nbytes, checkpoint.nbytes);
	buffer_free(&archive);
	buffer_free(&checkpoint);
	forge_free(&f);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: golden-writer DIRECTORY\n");
		return 2;
	}
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
		bad |= make(&cases[i], argv[1]);
	return bad;
}

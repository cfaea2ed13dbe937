/* items.c: the items of lit.rans and lit.wide, of any bytes, taken apart by the loops without vectors.
 *
 * They end where memory ends, and their sizes go from one byte too few to one too many. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rans_item.h"
#include "kernels/wide_item.h"

enum { N = 2 * RANS_LANES + 64, WORDS = 2 };

static struct kn_table table;

static void rans(unsigned nescapes, unsigned nliterals, unsigned npatches, unsigned more)
{
	uint8_t memory[N], out[WORDS + KN_PAD], words[4 * WORDS];
	struct rans_item item;
	const unsigned nbytes = 3 + (nescapes + 1) / 2 + nliterals + npatches * RANS_PATCH_NBYTES + RANS_STATE_NBYTES + more - 2;
	uint8_t *bytes = memory + N - nbytes;
	const size_t n = WORDS;

	anything(memory, sizeof memory), anything(out, sizeof out), anything(words, sizeof words);
	bytes[0] = (uint8_t)nescapes, bytes[1] = (uint8_t)nliterals, bytes[2] = (uint8_t)npatches;
	if (!rans_item_parse(bytes, nbytes, n, &item))
		return;
	//@ assert item.end == &memory[0] + N;
	//@ assert item.states + 256 == item.renorm && item.renorm <= item.end;
	if (!rans_item_escapes(&item, &table.rans, (uint8_t)any_u32(0, 255), out))
		return;
	rans_item_patch(&item, words + 3 * WORDS, n, 8, 8, 0, 0);
	rans_item_patch(&item, words + 2 * WORDS, n, 16, 8, 7, 1);
	rans_item_patch(&item, words, n, 32, 16, 16, 5);
}

/* Literals of one or two bytes; the last ones may be missing. */
static void wide(unsigned width, unsigned nliterals, unsigned more)
{
	uint8_t memory[N];
	const unsigned nbytes = 1 + nliterals * ((width + 7) / 8) + 4 * WIDE_LANES + more - 2;
	uint8_t *bytes = memory + N - nbytes;
	struct wide_run run;

	anything(memory, sizeof memory);
	bytes[0] = (uint8_t)nliterals;
	table.wide.width = (uint8_t)width;
	const struct kn_args args = { .n = WORDS, .table = &table, .pay = bytes, .pay_nbytes = nbytes };
	if (!wide_start(&run, &args))
		return;
	//@ assert run.end == &memory[0] + N;
	for (unsigned i = 0; i < WORDS + 1; i++)
		wide_literal(&run.literals);
}

int main(void)
{
	for (unsigned width = 1; width <= 16; width += 7)
		for (unsigned nliterals = 0; nliterals <= WORDS + 1; nliterals++)
			for (unsigned more = 1; more <= 3; more++)
				wide(width, nliterals, more);
	anything(&table, sizeof table);
	table.rans.width = any_u32(1, 16);
	for (unsigned nescapes = 0; nescapes <= WORDS + 1; nescapes++)
		for (unsigned nliterals = 0; nliterals <= nescapes + 1; nliterals++)
			for (unsigned npatches = 0; npatches <= 1; npatches++)
				for (unsigned more = 1; more <= 3; more++)
					rans(nescapes, nliterals, npatches, more);
	return 0;
}

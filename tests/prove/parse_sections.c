/* parse_sections.c: the sections of an archive, sized, read and decoded into the one piece of memory that they share.
 *
 * The prelude is what prelude_read() lets through (prelude.c), a source reads any bytes or fails, a table may be refused (table_huff.c), and the kernel
 * reads and writes all that its contract allows (kernels/kernel.h). SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernel.h"

#include "runtime/sections.c"

static struct ar_prelude known;
static uint8_t first_symbol, last_symbol;

enum brv_status prelude_read(const uint8_t bytes[AR_PRELUDE_NBYTES], struct ar_prelude *out, struct error *err)
{
	(void)bytes, (void)err;
	*out = known;
	return any_u32(0, 1) ? BRV_OK : BRV_DAMAGED;
}

/* Of any bytes, but that the Huffman tables, which coded sections begin with, say what they hold. */
enum brv_status source_read(struct source *source, uint64_t offset, void *buffer, size_t nbytes, struct error *err)
{
	uint8_t *bytes = buffer;
	(void)source, (void)err;
	anything(bytes, nbytes);
	if (offset == AR_PRELUDE_NBYTES)
		for (unsigned i = 0; i < AR_SECTIONS; i++) {
			const uint64_t stored = known.section[i].stored_nbytes;
			if (stored >= 2)
				bytes[0] = first_symbol, bytes[1] = last_symbol;
			bytes += stored;
		}
	return any_u32(0, 1) ? BRV_OK : BRV_IO;
}

enum brv_status table_expand(uint8_t kind, struct span body, struct kn_table **out, struct error *err)
{
	(void)kind, (void)err;
	//@ assert \valid_read(body.ptr + (0 .. body.nbytes - 1));
	*out = malloc(1);
	return *out ? BRV_OK : BRV_MEMORY;
}

/* Which tests/test_lzp.c and fuzzing stand behind. */
enum brv_status lzp_decode(struct span coded, uint8_t *out, size_t nbytes, struct error *err)
{
	//@ assert coded.nbytes == 0 || \valid_read(coded.ptr + (0 .. coded.nbytes - 1));
	anything(out, nbytes);
	*err = (struct error){ "why" };
	return any_u32(0, 1) ? BRV_OK : BRV_DAMAGED;
}

static bool lit_huff(const struct kn_args *args)
{
	//@ assert \valid_read(args->pay + (0 .. args->pay_nbytes + 255));
	anything(args->dst, args->n);
	return any_u32(0, 1);
}

static const struct kn_set set = { .fn = { [OP_LIT_HUFF] = lit_huff } };
const struct kn_set *const kn_sets[] = { &set, NULL };

static void room(void)
{
	struct error err;
	uint64_t stored, decoded, limit = any_u64();

	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		known.section[i].form = any_u32(AR_FORM_PLAIN, AR_FORM_LZP);
		known.section[i].stored_nbytes = Frama_C_unsigned_long_long_interval(0, AR_MAX_SECTION_NBYTES);
		known.section[i].decoded_nbytes = Frama_C_unsigned_long_long_interval(0, AR_MAX_SECTION_NBYTES);
	}
	if (sizes(&known, limit, &stored, &decoded, &err) == BRV_OK) {
		//@ assert stored <= 4 * 0x80000000 && decoded <= 4 * 0x80000000 + 4 * 256;
	}
}

static void all(enum ar_form form, unsigned nplain, unsigned ncoded, unsigned decoded, unsigned which)
{
	struct view view = { 0 };
	struct error err;
	struct source source = { .nbytes = any_u64() };

	for (unsigned i = 0; i < AR_SECTIONS; i++)
		if (which >> i & 1)
			known.section[i].form = form, known.section[i].stored_nbytes = ncoded, known.section[i].decoded_nbytes = decoded;
		else
			known.section[i].form = AR_FORM_PLAIN, known.section[i].stored_nbytes = known.section[i].decoded_nbytes = nplain;
	known.archive_nbytes = any_u64();
	known.sections_sum = any_u64();
	if (sections_read(&view, &source, any_u64(), &err) == BRV_OK) {
		for (unsigned i = 0; i < AR_SECTIONS; i++) {
			//@ assert view.section[i].nbytes == known.section[i].decoded_nbytes;
			//@ assert view.section[i].nbytes == 0 || \valid_read(view.section[i].ptr + (0 .. view.section[i].nbytes - 1));
		}
	}
	free(view.section_bytes);
}

int main(void)
{
	static const uint8_t symbols[][2] = { { 5, 4 }, { 5, 5 }, { 5, 8 }, { 0, 255 } }, coded[] = { 0, 1, 6, 9, 15 };

	room();
	for (unsigned i = 0; i < ARRAY_LEN(coded); i++)
		for (unsigned k = 0; k < ARRAY_LEN(symbols); k++) {
			first_symbol = symbols[k][0], last_symbol = symbols[k][1];
			for (unsigned ncoded = 0; ncoded <= 5; ncoded++)
				all(AR_FORM_HUFF, coded[i] & 1 ? 3 : 0, ncoded, ncoded * 8 + ncoded % 3, coded[i]);
		}
	for (unsigned i = 0; i < ARRAY_LEN(coded); i++)
		all(AR_FORM_LZP, 3, 2, 7, coded[i]);
	return 0;
}

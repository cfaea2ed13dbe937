/* test_format.c: archives, good and broken: each rule of docs/FORMAT.md is broken once. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <xxhash.h>

#include "runtime/brevis.h"
#include "tests/forge.h"
#include "tests/sample.h"

/* Opens a copy of the bytes in a block of just their size (a read beyond is the sanitizer's) and decodes everything.
 * Writes what came out (header, then data) to *out if it is not NULL. */
static enum brv_status read_all(const uint8_t *bytes, size_t nbytes, struct buffer *out, brv_error *error)
{
	brv_archive *archive;
	brv_info info;
	uint8_t *copy = malloc(nbytes + !nbytes);
	const brv_options options = { .struct_nbytes = sizeof options, .memory_limit = 64 << 20 };
	memcpy(copy, bytes, nbytes);
	error->text[0] = 0;
	brv_status_code status = brv_open_memory(copy, nbytes, &options, &archive, error);
	if (status == BRV_SUCCESS) {
		brv_get_info(archive, &info);
		uint8_t *data = info.data_nbytes < 1 << 20 ? malloc(info.data_nbytes + 1) : NULL;
		status = data ? brv_decode_data(archive, 0, data, info.data_nbytes, NULL, error) : BRV_E_LIMIT;
		if (out && status == BRV_SUCCESS) {
			buffer_put(out, brv_header(archive), info.header_nbytes);
			buffer_put(out, data, info.data_nbytes);
		}
		free(data);
	}
	brv_close(archive);
	free(copy);
	return (enum brv_status)status;
}

static bool is_sample(const struct sample *s, const struct buffer *out)
{
	return out->nbytes == s->header.nbytes + s->data.nbytes && memcmp(out->data, s->header.data, s->header.nbytes) == 0 &&
	       memcmp(out->data + s->header.nbytes, s->data.data, s->data.nbytes) == 0;
}

/* The sample's bytes, its sections in a form. */
static void write_sample(struct sample *s, enum ar_form form, struct buffer *bytes)
{
	sample_make(s);
	for (unsigned i = 0; i < AR_SECTIONS; i++)
		s->hm->section[i].huffman = form == AR_FORM_HUFF, s->hm->section[i].predicted = form == AR_FORM_LZP;
	hm_write(s->hm, bytes);
}

static void check_sample(enum ar_form form)
{
	struct sample s;
	struct buffer bytes, out = { 0 };
	brv_error error;
	write_sample(&s, form, &bytes);
	cr_assert_eq(read_all(bytes.data, bytes.nbytes, &out, &error), BRV_OK, "%s", error.text);
	cr_assert(is_sample(&s, &out));
	sample_free(&s);
	buffer_free(&bytes);
	buffer_free(&out);
}

Test(format, sample_decodes) { check_sample(AR_FORM_PLAIN); }
Test(format, sample_with_coded_sections_decodes) { check_sample(AR_FORM_HUFF); }
Test(format, sample_with_predicted_sections_decodes) { check_sample(AR_FORM_LZP); }

/* A mutation of the sample; what it has to lead to. */
struct broken {
	const char *what;
	void (*mutate)(struct handmade *hm);
	enum brv_status status;
};

static const char sixty_five[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0";

#define HM struct handmade *hm
#define BREAK(name, body) static void name(HM) { body; }
#define STREAM(s) (&hm->stream[s])
#define INSTR(p, i) (&hm->instr[p][i])
#define CHUNK(s, k) (&hm->stream[s].chunks[k])

/* 2: layout */
BREAK(m_archive_size, hm->archive_change = 1)
BREAK(m_payload_size, hm->payload_change = 1)
BREAK(m_payload_both, hm->payload_change = hm->archive_change = 1)
BREAK(m_stored_size, hm->section[AR_TABL].stored_change = 1)
BREAK(m_decoded_size, hm->section[AR_CODE].decoded_change = 1)
BREAK(m_form, hm->section[AR_INDX].form = 3)
BREAK(m_form_predicted, hm->section[AR_INDX].form = 2)
BREAK(m_form_version, hm->section[AR_INDX].predicted = true; hm->version = 1)
BREAK(m_form_size, hm->section[AR_INDX].predicted = true; hm->section[AR_INDX].decoded_change = 1 << 16)
BREAK(m_form_short, hm->section[AR_INDX].predicted = true; hm->section[AR_INDX].decoded_change = 10000)
BREAK(m_form_huff, hm->section[AR_INDX].form = 1)
BREAK(m_flags_unknown, hm->flags = 4)
BREAK(m_flags_entries, hm->flags = AR_FLAG_ENTRIES)
BREAK(m_flags_version, hm->flags = AR_FLAG_PACKED; hm->version = 1)
BREAK(m_flags_packed, hm->flags = AR_FLAG_PACKED)
BREAK(m_flags_both, hm->flags = AR_FLAG_PACKED | AR_FLAG_ENTRIES)
BREAK(m_sections_sum, hm->bad_sections_sum = true)
BREAK(m_code_extra, buffer_put_u8(&hm->section[AR_CODE].extra, 0))
BREAK(m_tabl_extra, buffer_put_u8(&hm->section[AR_TABL].extra, 0))
BREAK(m_indx_extra, buffer_put_u8(&hm->section[AR_INDX].extra, 0))
BREAK(m_sums_extra, buffer_put_u8(&hm->section[AR_SUMS].extra, 0))
BREAK(m_sums_extra8, buffer_put_u64(&hm->section[AR_SUMS].extra, 0))
BREAK(m_payload_extra, buffer_put_u8(&hm->payload_extra, 0))
/* 3: CODE */
BREAK(m_program_count, hm->section[AR_CODE].count_change = 1)
BREAK(m_program_count_huge, hm->section[AR_CODE].count_change = 1 << 20)
BREAK(m_no_instr, hm->ninstr[P_SCAN] = 0)
BREAK(m_many_instr, hm->ninstr[P_SCAN] = 65)
BREAK(m_cut_instr, hm->ninstr[P_SCAN] = 3; hm->nprograms = P_SCAN + 1; hm->ninstr[P_SCAN] = 40)
BREAK(m_unknown_op, INSTR(P_SCALAR, 0)->op = 0x7f)
BREAK(m_unknown_flag, INSTR(P_CLASSED, 1)->flags |= 4)
BREAK(m_width_0, INSTR(P_SCALAR, 0)->width = 0)
BREAK(m_width_65, INSTR(P_SCALAR, 0)->width = 65)
BREAK(m_width_of_op, INSTR(P_HUFF, 0)->width = 9)
BREAK(m_nargs_few, INSTR(P_CLASSED, 2)->nargs = 1)
BREAK(m_nargs_many, INSTR(P_CLASSED, 2)->nargs = 3)
BREAK(m_two_roots, INSTR(P_CLASSED, 3)->op = OP_LIT_RAW; INSTR(P_CLASSED, 3)->nargs = 0)
BREAK(m_aux, INSTR(P_SCALAR, 0)->aux = 1)
BREAK(m_imm, INSTR(P_HUFF, 0)->imm = 1)
BREAK(m_flag_of_op, INSTR(P_HUFF, 0)->flags = BC_CARRY)
/* 4: INDX */
BREAK(m_stream_count, hm->section[AR_INDX].count_change = 1)
BREAK(m_stream_count_huge, hm->section[AR_INDX].count_change = 1 << 24)
BREAK(m_kind, STREAM(S_ROWS)->kind = 3)
BREAK(m_two_headers, STREAM(S_ROWS)->kind = AR_HEADER)
BREAK(m_no_header, STREAM(S_HEADER)->kind = AR_CLASS)
BREAK(m_class_late, STREAM(S_GATE)->kind = AR_CLASS)
BREAK(m_header_width, STREAM(S_HEADER)->width = 16)
BREAK(m_class_width, STREAM(S_ROWS)->width = 9)
BREAK(m_header_huge, STREAM(S_HEADER)->nwords = 100000001; STREAM(S_HEADER)->chunk = 0)
BREAK(m_name_before, STREAM(S_CLASSED)->name_distance -= 1000)
BREAK(m_name_behind, STREAM(S_HUFF)->name_distance += 1000)
BREAK(m_name_long, STREAM(S_HUFF)->name_nbytes += 1000)
BREAK(m_name_same, STREAM(S_SCAN)->name = "h.classed"; STREAM(S_SCAN)->name_nbytes = 9)
BREAK(m_name_utf8, STREAM(S_SCAN)->name = "\xc0\x80"; STREAM(S_SCAN)->name_nbytes = 2)
BREAK(m_name_surrogate, STREAM(S_SCAN)->name = "\xed\xa0\x80"; STREAM(S_SCAN)->name_nbytes = 3)
BREAK(m_name_placed, STREAM(S_SCAN)->name_distance = 1)
BREAK(m_dtype, STREAM(S_SCALAR)->dtype = 99)
BREAK(m_dtype_name_empty, STREAM(S_OTHER)->dtype_nbytes = 0)
BREAK(m_dtype_name_long, STREAM(S_OTHER)->dtype_name = sixty_five; STREAM(S_OTHER)->dtype_nbytes = 65)
BREAK(m_other_size, STREAM(S_OTHER)->data_nbytes = 1ull << 63)
BREAK(m_ndim, STREAM(S_SCALAR)->ndim = 65536)
BREAK(m_shape_over, STREAM(S_CLASSED)->dim[0] = 1ull << 61)
BREAK(m_shape_bits, STREAM(S_GATE)->dtype = 1; STREAM(S_GATE)->dim[0] = 1; STREAM(S_GATE)->dim[1] = 3)
BREAK(m_sum_of_data, STREAM(S_EMPTY)->dim[0] = 1ull << 58)
BREAK(m_tensor_width, STREAM(S_GATE)->width = 24)
BREAK(m_tensor_divisor, STREAM(S_OTHER)->width = 64)
BREAK(m_chunk_large, STREAM(S_HUFF)->chunk = (1 << 20) + 1)
BREAK(m_chunk_0_large, STREAM(S_ROWS)->nwords = (1 << 20) + 1)
BREAK(m_chunk_count, STREAM(S_HUFF)->chunk = 200)
BREAK(m_geometry, STREAM(S_CLASSED)->geometry = 33)
BREAK(m_rows_words, STREAM(S_CLASSED)->geometry = 16)
BREAK(m_rows_stream, STREAM(S_GATE)->rows = S_CLASSED + 1)
BREAK(m_rows_none, STREAM(S_GATE)->rows = 100)
BREAK(m_rows_huge, STREAM(S_GATE)->rows = 1ull << 32 | 2)
BREAK(m_kr_1, STREAM(S_GATE)->kr = 1)
BREAK(m_kr_9, STREAM(S_GATE)->kr = 9)
BREAK(m_kr_small, STREAM(S_GATE)->kr = 2)
BREAK(m_kc_3, STREAM(S_CLASSED)->kc = 3)
BREAK(m_columns_words, STREAM(S_CLASSED)->columns = S_ROWS + 1)
BREAK(m_no_variants, STREAM(S_SCALAR)->nvariants = 0)
BREAK(m_variants_of_nothing, STREAM(S_EMPTY)->nvariants = 1)
BREAK(m_variants_256, STREAM(S_SCALAR)->nvariants = 256)
BREAK(m_program_number, STREAM(S_SCALAR)->program[0] = P_COUNT)
BREAK(m_program_width, STREAM(S_SCALAR)->program[0] = P_SCAN - 1)
BREAK(m_variant, CHUNK(S_HUFF, 0)->variant = 2)
BREAK(m_table_number, CHUNK(S_HUFF, 0)->operand[0] = 3)
BREAK(m_table_kind, CHUNK(S_HUFF, 0)->operand[0] = T_WIDE)
BREAK(m_payload_32, CHUNK(S_HUFF, 0)->claims = true; CHUNK(S_HUFF, 0)->payload_claim = 1ull << 32)
BREAK(m_payload_more, CHUNK(S_HUFF, 0)->claims = true; CHUNK(S_HUFF, 0)->payload_claim = CHUNK(S_HUFF, 0)->payload.nbytes + 1)
BREAK(m_payload_less, CHUNK(S_HUFF, 0)->claims = true; CHUNK(S_HUFF, 0)->payload_claim = CHUNK(S_HUFF, 0)->payload.nbytes - 1)
BREAK(m_sum, CHUNK(S_HUFF, 0)->sum ^= 1)
BREAK(m_sum_header, CHUNK(S_HEADER, 0)->sum ^= 1)
BREAK(m_sum_class, CHUNK(S_COLUMNS, 1)->sum ^= 1)
BREAK(m_sum_ref, CHUNK(S_REF, 0)->sum ^= 1)
/* 5: programs */
BREAK(m_payload_left, buffer_put_u8(&CHUNK(S_SCAN, 0)->payload, 0))
BREAK(m_payload_short, CHUNK(S_SCAN, 0)->payload.nbytes--)
BREAK(m_item_long, CHUNK(S_HUFF, 0)->payload.data[0]++)
BREAK(m_item_huge, CHUNK(S_HUFF, 0)->payload.data[3] = 255)
BREAK(m_const, INSTR(P_OTHER, 0)->imm = 256)
BREAK(m_concat, INSTR(P_OTHER, 3)->imm = 13)
BREAK(m_repeat_0, INSTR(P_OTHER, 2)->imm = 0)
BREAK(m_repeat, INSTR(P_OTHER, 2)->imm = 6)
BREAK(m_ref_self, CHUNK(S_REF, 0)->operand[0] = S_REF)
BREAK(m_ref_later, CHUNK(S_REF, 0)->operand[0] = S_WIDE)
BREAK(m_ref_class, CHUNK(S_REF, 0)->operand[0] = S_ROWS)
BREAK(m_ref_words, CHUNK(S_REF, 0)->operand[1] = 1)
BREAK(m_ref_wraps, CHUNK(S_REF, 0)->operand[1] = UINT64_MAX)
BREAK(m_ref_width, INSTR(P_REF, 0)->width = 8; STREAM(S_REF)->width = 8)
BREAK(m_map_xor, INSTR(P_WEAVE, 6)->imm = 1 << 16)
BREAK(m_map_rot, INSTR(P_CLASSED, 3)->imm = 16)
BREAK(m_map_gray, INSTR(P_WEAVE, 3)->imm = 1)
BREAK(m_map_width, INSTR(P_WEAVE, 3)->width = 15)
BREAK(m_merge_width, INSTR(P_WIDE, 0)->width = 7)
BREAK(m_weave_runs, INSTR(P_WEAVE, 7)->imm = 1)
BREAK(m_weave_more_runs, INSTR(P_WEAVE, 7)->imm |= 1ull << 32)
BREAK(m_weave_period, INSTR(P_WEAVE, 7)->imm = 1 | 6 << 16)
BREAK(m_gate_empty, INSTR(P_GATE, 1)->imm = 0)
BREAK(m_gate_classes, INSTR(P_GATE, 1)->imm = 8)
BREAK(m_gate_flag, INSTR(P_GATE, 1)->flags = 0)
BREAK(m_gate_rows, STREAM(S_GATE)->rows = 0)
BREAK(m_gate_words, CHUNK(S_GATE, 0)->payload.nbytes--; buffer_put_u8(&CHUNK(S_GATE, 2)->payload, 1))
BREAK(m_classed_moved, INSTR(P_CLASSED, 3)->op = OP_REPEAT)
BREAK(m_classed_flag, INSTR(P_CLASSED, 1)->flags = BC_CARRY)
BREAK(m_carry_target, INSTR(P_CLASSED, 1)->aux = 1)
BREAK(m_carry_none, INSTR(P_CLASSED, 1)->flags = BC_CLASSED)
BREAK(m_carry_short, STREAM(S_CLASSED)->chunk = 127; STREAM(S_CLASSED)->nchunks = 3)
BREAK(m_pack_bits, CHUNK(S_WEAVE, 0)->payload.data[4] = 17)
BREAK(m_pack_length, CHUNK(S_WEAVE, 0)->payload.data[4] = 6)
BREAK(m_rans_left, hm->stream[S_CLASSED].chunks[0].payload.data[0]--)
BREAK(m_wide_escapes, CHUNK(S_WIDE, 0)->payload.data[22 + 4]++)
BREAK(m_lookup_width, INSTR(P_LOOKUP, 0)->width = 31)
BREAK(m_lookup_index_width, INSTR(P_LOOKUP, 1)->width = 21)
BREAK(m_lookup_none, CHUNK(S_LOOKUP, 0)->operand[0] = 0)
BREAK(m_lookup_more, CHUNK(S_LOOKUP, 0)->operand[0] = 21)
BREAK(m_lookup_huge, CHUNK(S_LOOKUP, 1)->operand[0] = UINT64_MAX)
BREAK(m_lookup_blocks, CHUNK(S_LOOKUP, 0)->operand[0] = 5)
BREAK(m_lookup_index, CHUNK(S_LOOKUP, 1)->payload.data[24] |= 7)
BREAK(m_lookup_version, hm->version = 1)
BREAK(m_scatter_width, INSTR(P_SCATTER, 0)->width = 7)
BREAK(m_scatter_mask_width, INSTR(P_SCATTER, 2)->width = 2)
BREAK(m_scatter_imm, INSTR(P_SCATTER, 3)->imm = 256)
BREAK(m_scatter_few, CHUNK(S_SCATTER, 0)->operand[0] = 6; memmove(CHUNK(S_SCATTER, 0)->payload.data, CHUNK(S_SCATTER, 0)->payload.data + 1, 9);
      CHUNK(S_SCATTER, 0)->payload.nbytes--)
BREAK(m_scatter_more, CHUNK(S_SCATTER, 0)->operand[0] = 22)
BREAK(m_scatter_mask, CHUNK(S_SCATTER, 0)->payload.data[7] ^= 1)
BREAK(m_scatter_payload, CHUNK(S_SCATTER, 0)->operand[0] = 8)
BREAK(m_cut_width, INSTR(P_SCATTER, 1)->width = 1)
BREAK(m_cut_left, CHUNK(S_SCATTER, 0)->payload.data[9] |= 0x20)
/* 6: TABL */
BREAK(m_table_count, hm->section[AR_TABL].count_change = 1)
BREAK(m_table_unknown, hm->table_kind[T_HUFF] = TABLE_KINDS)
BREAK(m_table_long, hm->table_change[T_WIDE] = 1)
BREAK(m_table_short, hm->table[T_RANS].nbytes--)
BREAK(m_huff_symbols, hm->table[T_HUFF].data[0] = 4)
BREAK(m_huff_sum, hm->table[T_HUFF].data[2] = 0x22)
BREAK(m_huff_length, hm->table[T_HUFF].data[3] = 0xd3)
BREAK(m_huff_one, hm->table[T_HUFF].data[2] = 1; hm->table[T_HUFF].data[3] = 0)
BREAK(m_rans_buckets, hm->table[T_RANS].data[0] = 7)
BREAK(m_rans_width, hm->table[T_RANS].data[1] = 7)
BREAK(m_rans_rows, hm->table[T_RANS].data[2] = 2)
BREAK(m_rans_columns, hm->table[T_RANS].data[3] = 3)
BREAK(m_rans_base, hm->table[T_RANS].data[5] = 1)
BREAK(m_rans_escape, hm->table[T_RANS].data[6] = 16)
BREAK(m_rans_reserved, hm->table[T_RANS].data[7] = 1)
BREAK(m_rans_freq, memset(hm->table[T_RANS].data + 39, 0, 16))
BREAK(m_wide_width, hm->table[T_WIDE].data[0] = 9)
BREAK(m_wide_rows, hm->table[T_WIDE].data[1] = 0)
BREAK(m_wide_escape, hm->table[T_WIDE].data[3] = 2)
BREAK(m_wide_one, hm->table[T_WIDE].data[4] = 0)
BREAK(m_wide_value, hm->table[T_WIDE].data[7] = 127)
BREAK(m_wide_sum, hm->table[T_WIDE].data[8] ^= 16)
/* 7: classes */
BREAK(m_class_classed, INSTR(P_CLASSES2, 0)->op = OP_LIT_RANS; INSTR(P_CLASSES2, 0)->flags = BC_CLASSED; CHUNK(S_ROWS, 0)->noperands = 1)
BREAK(m_class_number, CHUNK(S_ROWS, 0)->payload.data[0] |= 3; CHUNK(S_ROWS, 0)->sum = XXH3_64bits("\3\1\2\1\0\2\1\0", 8))

#define D BRV_DAMAGED
#define V BRV_VERSION
#define L BRV_LIMIT
#define ROW(name, status) { #name, m_##name, status }
static const struct broken table[] = {
	ROW(archive_size, D), ROW(payload_size, D), ROW(payload_both, D), ROW(stored_size, D), ROW(decoded_size, D), ROW(form, V),
	ROW(form_predicted, D), ROW(form_version, V), ROW(form_size, D), ROW(form_short, D), ROW(form_huff, D), ROW(flags_unknown, V), ROW(flags_entries, V), ROW(flags_version, V), ROW(flags_packed, D), ROW(flags_both, D), ROW(sections_sum, D), ROW(code_extra, D), ROW(tabl_extra, D), ROW(indx_extra, D), ROW(sums_extra, D), ROW(sums_extra8, D),
	ROW(payload_extra, D),
	ROW(program_count, D), ROW(program_count_huge, D), ROW(no_instr, D), ROW(many_instr, D), ROW(cut_instr, D), ROW(unknown_op, V),
	ROW(unknown_flag, V), ROW(width_0, D), ROW(width_65, D), ROW(width_of_op, D), ROW(nargs_few, D), ROW(nargs_many, D), ROW(two_roots, D),
	ROW(aux, D), ROW(imm, D), ROW(flag_of_op, D),
	ROW(stream_count, D), ROW(stream_count_huge, D), ROW(kind, D), ROW(two_headers, D), ROW(no_header, D), ROW(class_late, D),
	ROW(header_width, D), ROW(class_width, D), ROW(header_huge, D), ROW(name_before, D), ROW(name_behind, D), ROW(name_long, D),
	ROW(name_same, D), ROW(name_utf8, D), ROW(name_surrogate, D), ROW(name_placed, D), ROW(dtype, D), ROW(dtype_name_empty, D),
	ROW(dtype_name_long, D), ROW(other_size, D), ROW(ndim, D), ROW(shape_over, D), ROW(shape_bits, D), ROW(sum_of_data, D),
	ROW(tensor_width, D), ROW(tensor_divisor, D), ROW(chunk_large, D), ROW(chunk_0_large, D), ROW(chunk_count, D), ROW(geometry, D),
	ROW(rows_words, D), ROW(rows_stream, D), ROW(rows_none, D), ROW(rows_huge, D), ROW(kr_1, D), ROW(kr_9, D), ROW(kr_small, D), ROW(kc_3, D),
	ROW(columns_words, D), ROW(no_variants, D), ROW(variants_of_nothing, D), ROW(variants_256, D), ROW(program_number, D),
	ROW(program_width, D), ROW(variant, D), ROW(table_number, D), ROW(table_kind, D), ROW(payload_32, D), ROW(payload_more, D),
	ROW(payload_less, D), ROW(sum, D), ROW(sum_header, D), ROW(sum_class, D), ROW(sum_ref, D),
	ROW(payload_left, D), ROW(payload_short, D), ROW(item_long, D), ROW(item_huge, D), ROW(const, D), ROW(concat, D), ROW(repeat_0, D),
	ROW(repeat, D), ROW(ref_self, D), ROW(ref_later, D), ROW(ref_class, D), ROW(ref_words, D), ROW(ref_wraps, D), ROW(ref_width, D),
	ROW(map_xor, D), ROW(map_rot, D), ROW(map_gray, D), ROW(map_width, D), ROW(merge_width, D), ROW(weave_runs, D), ROW(weave_more_runs, D),
	ROW(weave_period, D), ROW(gate_empty, D), ROW(gate_classes, D), ROW(gate_flag, D), ROW(gate_rows, D), ROW(gate_words, D),
	ROW(classed_moved, D), ROW(classed_flag, D), ROW(carry_target, D), ROW(carry_none, D), ROW(carry_short, D), ROW(pack_bits, D),
	ROW(pack_length, D), ROW(rans_left, D), ROW(wide_escapes, D),
	ROW(lookup_width, D), ROW(lookup_index_width, D), ROW(lookup_none, D), ROW(lookup_more, D), ROW(lookup_huge, D), ROW(lookup_blocks, D),
	ROW(lookup_index, D), ROW(lookup_version, D), ROW(scatter_width, D), ROW(scatter_mask_width, D), ROW(scatter_imm, D), ROW(scatter_few, D),
	ROW(scatter_more, D), ROW(scatter_mask, D), ROW(scatter_payload, D), ROW(cut_width, D), ROW(cut_left, D),
	ROW(table_count, D), ROW(table_unknown, V), ROW(table_long, D), ROW(table_short, D), ROW(huff_symbols, D), ROW(huff_sum, D),
	ROW(huff_length, D), ROW(huff_one, D), ROW(rans_buckets, D), ROW(rans_width, D), ROW(rans_rows, D), ROW(rans_columns, D),
	ROW(rans_base, D), ROW(rans_escape, D), ROW(rans_reserved, D), ROW(rans_freq, D), ROW(wide_width, D), ROW(wide_rows, D),
	ROW(wide_escape, D), ROW(wide_one, D), ROW(wide_value, D), ROW(wide_sum, D),
	ROW(class_classed, D), ROW(class_number, D),
};

Test(format, each_rule_broken)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct sample s;
		struct buffer bytes;
		brv_error error;
		sample_make(&s);
		table[i].mutate(s.hm);
		hm_write(s.hm, &bytes);
		enum brv_status status = read_all(bytes.data, bytes.nbytes, NULL, &error);
		cr_expect_eq(status, table[i].status, "%s: %s (%s)", table[i].what, status_text(status), error.text);
		cr_expect(status == BRV_OK || error.text[0], "%s: no reason is given", table[i].what);
		sample_free(&s);
		buffer_free(&bytes);
	}
}

/* An archive that says an older version than an op of it has, or than a table's kind has, is damaged. */
Test(format, op_of_a_later_version)
{
	static const struct bc_instr alias[] = { { .op = OP_LIT_ALIAS, .width = 8 } }, raw[] = { { .op = OP_LIT_RAW, .width = 8 } };
	static const struct forge_tensor tensor = { .name = "t", .dtype = "U8", .nwords = 300, .program = { { 1, alias } } };

	for (unsigned version = 0; version <= AR_VERSION; version++)
		for (unsigned unused = 0; unused < 2; unused++) {
			struct forge f;
			struct buffer bytes = { 0 }, checkpoint = { 0 }, out = { 0 };
			brv_error error;
			forge_begin(&f, 1);
			cr_assert(forge_tensor(&f, &tensor));
			forge_end(&f);
			if (unused) { /* the table alone: no chunk names it */
				struct hm_stream *stream = &f.hm->stream[f.hm->nstreams - 1];
				f.hm->instr[f.hm->nprograms - 1][0] = raw[0];
				stream->chunks[0].noperands = 0;
				stream->chunks[0].payload.nbytes = 0;
				buffer_put(&stream->chunks[0].payload, f.data.data + f.data_at[f.hm->nstreams - 1], tensor.nwords);
			}
			f.hm->version = version;
			hm_write(f.hm, &bytes);
			forge_expected(&f, &checkpoint);
			const bool good = version >= 2 || (version == 0 && !unused); /* 0: the lowest that its ops have */
			cr_assert_eq(read_all(bytes.data, bytes.nbytes, &out, &error), good ? BRV_OK : BRV_DAMAGED, "version %u: %s", version, error.text);
			cr_assert(good || strstr(error.text, "version 1"), "%s", error.text);
			cr_assert(!good || (out.nbytes == checkpoint.nbytes - 8 && !memcmp(out.data, checkpoint.data + 8, out.nbytes)));
			buffer_free(&out);
			buffer_free(&bytes);
			buffer_free(&checkpoint);
			forge_free(&f);
		}
}

/* Changes of the prelude, whose own checksum is corrected. */
Test(format, prelude)
{
	static const struct {
		unsigned at;
		enum brv_status status;
	} bytes_of[] = { { 0, D }, { 7, D }, { 8, V }, { 10, D }, { 11, V }, { 12, D }, { 16, D }, { 24, D }, { 128, D } };
	struct sample s;
	struct buffer bytes;
	brv_error error;
	sample_make(&s);
	hm_write(s.hm, &bytes);
	for (size_t i = 0; i < ARRAY_LEN(bytes_of); i++) {
		bytes.data[bytes_of[i].at] ^= 1;
		store_u64(bytes.data + 136, XXH3_64bits(bytes.data, 136));
		enum brv_status status = read_all(bytes.data, bytes.nbytes, NULL, &error);
		cr_expect_eq(status, bytes_of[i].status, "byte %u: %s", bytes_of[i].at, error.text);
		bytes.data[bytes_of[i].at] ^= 1;
	}
	sample_free(&s);
	buffer_free(&bytes);
}

Test(format, truncated_anywhere)
{
	struct sample s;
	struct buffer bytes;
	brv_error error;
	sample_make(&s);
	hm_write(s.hm, &bytes);
	for (size_t n = 0; n < bytes.nbytes; n++)
		cr_expect_eq(read_all(bytes.data, n, NULL, &error), BRV_DAMAGED, "%zu bytes: %s", n, error.text);
	buffer_put_u8(&bytes, 0);
	cr_expect_eq(read_all(bytes.data, bytes.nbytes, NULL, &error), BRV_DAMAGED, "a byte too many: %s", error.text);
	sample_free(&s);
	buffer_free(&bytes);
}

/* No flipped bit goes unseen. */
static void flip_bits(enum ar_form form)
{
	struct sample s;
	struct buffer bytes;
	brv_error error;
	write_sample(&s, form, &bytes);
	for (size_t bit = 0; bit < 8 * bytes.nbytes; bit++) {
		struct buffer out = { 0 };
		bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		enum brv_status status = read_all(bytes.data, bytes.nbytes, &out, &error);
		cr_expect(status == BRV_DAMAGED || status == BRV_VERSION || is_sample(&s, &out), "bit %zu: %s", bit, status_text(status));
		bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		buffer_free(&out);
	}
	sample_free(&s);
	buffer_free(&bytes);
}

Test(format, each_bit_flipped) { flip_bits(AR_FORM_PLAIN); }
Test(format, each_bit_flipped_with_coded_sections) { flip_bits(AR_FORM_HUFF); }
Test(format, each_bit_flipped_with_predicted_sections) { flip_bits(AR_FORM_LZP); }

/* The same with the checksums of prelude and sections corrected, as one would who means harm: whatever comes of it, it comes
 * without a crash. */
static void forge_bits(enum ar_form form)
{
	struct sample s;
	struct buffer bytes;
	brv_error error;
	write_sample(&s, form, &bytes);
	uint8_t *forged = malloc(bytes.nbytes);
	for (size_t bit = 0; bit < 8 * bytes.nbytes; bit++) {
		memcpy(forged, bytes.data, bytes.nbytes);
		forged[bit / 8] ^= (uint8_t)(1 << bit % 8);
		hm_fix_sums(forged, bytes.nbytes);
		enum brv_status status = read_all(forged, bytes.nbytes, NULL, &error);
		cr_expect(status == BRV_OK || error.text[0], "bit %zu: no reason is given", bit);
	}
	free(forged);
	sample_free(&s);
	buffer_free(&bytes);
}

Test(format, each_bit_forged) { forge_bits(AR_FORM_PLAIN); }
Test(format, each_bit_forged_with_coded_sections) { forge_bits(AR_FORM_HUFF); }
Test(format, each_bit_forged_with_predicted_sections) { forge_bits(AR_FORM_LZP); }

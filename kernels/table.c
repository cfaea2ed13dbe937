/* table.c: entropy tables checked (docs/FORMAT.md, 6) and expanded into what kernels look up.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/archive.h"
#include "kernels/table_bits.h"

enum { RANS_HEAD_NBYTES = 8, RANS_TAIL_NBYTES = 15 };

/* Canonical codes from lengths; false unless they fill the code space exactly. */
static bool assign_codes(struct kn_huff *huff)
{
	unsigned code = 0, used = 0;

	for (unsigned length = 1; length <= HUFF_BITS; length++, code <<= 1)
		for (unsigned s = 0; s < 256; s++) {
			if (huff->length[s] != length)
				continue;
			unsigned reversed = 0;
			for (unsigned b = 0; b < length; b++)
				reversed |= (code >> b & 1) << (length - 1 - b);
			huff->code[s] = (uint16_t)reversed;
			code++, used += 1u << (HUFF_BITS - length);
		}
	return used == 1u << HUFF_BITS;
}

static void fill_windows(struct kn_huff *huff)
{
	const unsigned bits = huff->bits, windows = 1u << bits;

	for (unsigned s = 0; s < 256; s++)
		for (unsigned w = huff->code[s]; huff->length[s] && w < windows; w += 1u << huff->length[s])
			huff->one[w] = (uint16_t)(s | huff->length[s] << 8);
	for (unsigned w = 0; w < windows; w++) {
		unsigned used = 0, count = 0;
		uint64_t entry = 0;
		while (count < 4) {
			const unsigned one = huff->one[w >> used], next = used + (one >> 8);
			if (next > bits)
				break;
			entry |= (uint64_t)(one & 255) << (8 * count++);
			used = next;
		}
		huff->entry[w] = entry | (uint64_t)count << 32 | (uint64_t)used << 40;
	}
}

static enum brv_status expand_huff(struct span body, struct kn_huff *huff, struct error *err)
{
	struct cursor c = { body.ptr, body.ptr + body.nbytes, false };
	const unsigned first = cursor_u8(&c), last = cursor_u8(&c);
	unsigned codes = 0;

	if (c.bad || last < first || cursor_left(&c) != (last - first + 2) / 2)
		return fail(err, BRV_DAMAGED, "a Huffman table of %zu bytes for symbols %u..%u", body.nbytes, first, last);
	for (unsigned s = first; s <= last; s++) {
		const unsigned length = c.at[(s - first) / 2] >> ((s - first) % 2 * 4) & 15;
		if (length > HUFF_BITS)
			return fail(err, BRV_DAMAGED, "a Huffman code of %u bits", length);
		huff->length[s] = (uint8_t)length;
		huff->bits = MAX(huff->bits, length);
		codes += length != 0;
	}
	if ((last - first) % 2 == 0 && c.at[(last - first) / 2] >> 4)
		return fail(err, BRV_DAMAGED, "a Huffman table's last nibble is not 0");
	if (codes < 2 || !assign_codes(huff))
		return fail(err, BRV_DAMAGED, "a Huffman table's codes do not fill the code space");
	fill_windows(huff);
	return BRV_OK;
}

/* Fills the lookups of one class pair from its nb bucket bytes. */
static bool expand_buckets(const uint8_t *bucket, unsigned log2_nb, unsigned column, struct kn_rans_rows *rows)
{
	const unsigned nb = 1u << log2_nb, log2_c = 8 - log2_nb, c = 1u << log2_c, base = column * nb;
	unsigned freq[64] = { 0 }, rank[64];

	for (unsigned b = 0; b < nb; b++)
		rank[b] = bucket[b] & (c - 1), freq[b] += rank[b], freq[bucket[b] >> log2_c] += c - rank[b];
	for (unsigned b = 0; b < nb; b++) {
		const unsigned threshold = bucket[b] & (c - 1), alias = bucket[b] >> log2_c;
		if (freq[b] > 255)
			return false;
		rows->threshold[base + b] = (uint8_t)(b * c + threshold);
		rows->freq[base + b] = (uint8_t)freq[b];
		rows->alias[base + b] = (uint8_t)(base + alias);
		rows->before[base + b] = (uint8_t)(rank[alias] - (b * c + threshold));
		rank[alias] += c - threshold;
	}
	return true;
}

static void repeat_to_64(uint8_t *entries, unsigned n)
{
	for (unsigned i = n; i < 64; i++)
		entries[i] = entries[i % n];
}

/* What plain loops look up, from what vectors do. */
static void fill_flat(struct kn_rans *rans)
{
	const unsigned nb = 1u << rans->log2_nb, log2_c = 8 - rans->log2_nb;
	const unsigned add = rans->width <= 8 ? rans->base : 0, mask = (unsigned)mask_bits(MIN(rans->width, 8));

	for (unsigned r = 0; r < rans->kr; r++) {
		const struct kn_rans_rows *rows = &rans->row[r];
		for (unsigned c = 0; c < rans->kc; c++) {
			uint32_t *flat = rans->flat + ((r * rans->kc + c) << 8);
			for (unsigned lo = 0; lo < 256; lo++) {
				const unsigned b = c * nb + (lo >> log2_c);
				const bool own = lo < rows->threshold[b];
				const unsigned j = own ? b : rows->alias[b], s = j & (nb - 1);
				const unsigned rank = own ? lo & ((1u << log2_c) - 1) : (lo + rows->before[b]) & 255;
				flat[lo] = (uint32_t)rows->freq[j] << 24 | (uint32_t)(s == rans->escape) << 16 | rank << 8 | ((rans->map[s] + add) & mask);
			}
		}
	}
}

static enum brv_status expand_rans(struct span body, struct kn_rans *rans, struct error *err)
{
	const uint8_t *p = body.ptr;

	if (body.nbytes < RANS_HEAD_NBYTES)
		return fail(err, BRV_DAMAGED, "a rANS table of %zu bytes", body.nbytes);
	rans->log2_nb = p[0], rans->width = p[1], rans->kr = p[2], rans->kc = p[3];
	rans->base = load_u16(p + 4), rans->escape = p[6];
	if (rans->log2_nb < 4 || rans->log2_nb > 6 || rans->width < 1 || rans->width > 16 || rans->kr < 1 || rans->kr > KN_MAX_ROWS ||
	    (rans->kc != 1 && rans->kc != 2 && rans->kc != 4) || rans->base > mask_bits(rans->width) || p[7])
		return fail(err, BRV_DAMAGED, "a rANS table's head is out of range");
	const unsigned nb = 1u << rans->log2_nb;
	if ((rans->escape >= nb && rans->escape != 255) ||
	    body.nbytes != RANS_HEAD_NBYTES + nb + RANS_TAIL_NBYTES + (size_t)rans->kr * rans->kc * nb)
		return fail(err, BRV_DAMAGED, "a rANS table of %zu bytes for %u symbols and %u x %u classes", body.nbytes, nb, rans->kr, rans->kc);
	memcpy(rans->map, p + RANS_HEAD_NBYTES, nb);
	repeat_to_64(rans->map, nb);
	memcpy(rans->tail, p + RANS_HEAD_NBYTES + nb, RANS_TAIL_NBYTES);
	p += RANS_HEAD_NBYTES + nb + RANS_TAIL_NBYTES;
	for (unsigned r = 0; r < rans->kr; r++) {
		struct kn_rans_rows *rows = &rans->row[r];
		for (unsigned c = 0; c < rans->kc; c++, p += nb)
			if (!expand_buckets(p, rans->log2_nb, c, rows))
				return fail(err, BRV_DAMAGED, "a rANS table gives one symbol all positions");
		if (nb * rans->kc < 64) {
			repeat_to_64(rows->threshold, nb * rans->kc);
			repeat_to_64(rows->freq, nb * rans->kc);
			repeat_to_64(rows->before, nb * rans->kc);
			repeat_to_64(rows->alias, nb * rans->kc);
		}
	}
	fill_flat(rans);
	return BRV_OK;
}

static enum brv_status expand_wide(struct span body, struct kn_wide *wide, struct error *err)
{
	struct bits bits = { .bytes = { body.ptr, body.ptr + body.nbytes, false } };
	struct cursor *c = &bits.bytes;

	wide->width = cursor_u8(c), wide->kr = cursor_u8(c), wide->kc = cursor_u8(c);
	const unsigned escape = cursor_u8(c);
	wide->has_escape = escape == 1, wide->nsym = (uint16_t)(cursor_u8(c) + 1);
	if (c->bad || wide->width < 1 || wide->width > 16 || escape > 1 || wide->nsym < 2)
		return fail(err, BRV_DAMAGED, "a wide table's head is out of range");
	if (!take_values(c, wide->nsym - escape, wide->width, wide->value))
		return fail(err, BRV_DAMAGED, "a wide table's value is out of range");
	for (unsigned pair = 0; pair < (unsigned)wide->kr * wide->kc; pair++) {
		uint32_t *slot = wide->slot + ((size_t)pair << WIDE_BITS);
		unsigned sum = 0;
		for (unsigned j = 0; j < wide->nsym; j++) {
			const unsigned k = take_bits(&bits, 4);
			if (k > WIDE_BITS)
				return fail(err, BRV_DAMAGED, "a wide table's frequency is out of range");
			const unsigned freq = k ? (1u << (k - 1)) + take_bits(&bits, k - 1) : 0;
			const unsigned first = sum, end = sum + freq;
			if (freq > (1u << WIDE_BITS) - 1 || end > 1u << WIDE_BITS)
				return fail(err, BRV_DAMAGED, "a wide table's frequencies add up to more than 4096");
			for (; sum < end; sum++)
				slot[sum] = freq << 20 | j << 12 | (sum - first);
		}
		if (sum != 1u << WIDE_BITS)
			return fail(err, BRV_DAMAGED, "a wide table's frequencies add up to %u, not 4096", sum);
	}
	if (c->bad || cursor_left(c) || bits.held)
		return fail(err, BRV_DAMAGED, "a wide table does not end with its frequencies");
	return BRV_OK;
}

/* Class pairs of a rANS, wide or alias table, whose heads have them at `at`; 0: out of range. Column classes are a power of 2. */
static size_t pairs_of(struct span body, unsigned at, unsigned max_kc)
{
	if (body.nbytes < at + 2u)
		return 0;
	const unsigned kr = body.ptr[at], kc = body.ptr[at + 1];
	return kr >= 1 && kr <= KN_MAX_ROWS && kc >= 1 && kc <= max_kc && !(kc & (kc - 1)) ? (size_t)kr * kc : 0;
}

size_t table_expanded_nbytes(uint8_t kind, struct span body)
{
	size_t pairs;

	switch (kind) {
	case TABLE_HUFF:
		return body.nbytes >= 2 ? offsetof(struct kn_table, huff) + sizeof(struct kn_huff) : 0;
	case TABLE_RANS:
		pairs = pairs_of(body, 2, RANS_MAX_COLS);
		return pairs ? offsetof(struct kn_table, rans.flat) + (pairs << 8) * sizeof(uint32_t) : 0;
	case TABLE_WIDE:
		pairs = pairs_of(body, 1, KN_MAX_COLS);
		return pairs ? offsetof(struct kn_table, wide.slot) + (pairs << WIDE_BITS) * sizeof(uint32_t) : 0;
	case TABLE_ALIAS:
		pairs = pairs_of(body, 2, RANS_MAX_COLS);
		return pairs ? offsetof(struct kn_table, alias.row) + body.ptr[2] * sizeof(struct kn_alias_rows) : 0;
	default:
		return 0;
	}
}

enum brv_status table_expand(uint8_t kind, struct span body, struct kn_table **out, struct error *err)
{
	const size_t nbytes = table_expanded_nbytes(kind, body);

	*out = NULL;
	if (kind < TABLE_HUFF || kind >= TABLE_KINDS)
		return fail(err, BRV_VERSION, "unknown kind of table %u", kind);
	if (!nbytes)
		return fail(err, BRV_DAMAGED, "a table of %zu bytes", body.nbytes);
	struct kn_table *table = calloc(1, nbytes);
	if (!table)
		return fail(err, BRV_MEMORY, "no memory for a table of %zu bytes", nbytes);
	table->kind = kind;
	enum brv_status status = kind == TABLE_HUFF ? expand_huff(body, &table->huff, err) :
				 kind == TABLE_RANS ? expand_rans(body, &table->rans, err) :
				 kind == TABLE_WIDE ? expand_wide(body, &table->wide, err) : table_expand_alias(body, &table->alias, err);
	if (status != BRV_OK) {
		free(table);
		return status;
	}
	*out = table;
	return BRV_OK;
}

struct kn_table_shape table_shape(const struct kn_table *table)
{
	switch (table->kind) {
	case TABLE_RANS: return (struct kn_table_shape){ table->rans.kr, table->rans.kc, table->rans.log2_nb };
	case TABLE_WIDE: return (struct kn_table_shape){ table->wide.kr, table->wide.kc, 0 };
	case TABLE_ALIAS: return (struct kn_table_shape){ table->alias.kr, table->alias.kc, table->alias.log2_nb };
	default: return (struct kn_table_shape){ 1, 1, 0 };
	}
}

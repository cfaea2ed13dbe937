/* alias_table.c: the tables of lit.alias, checked and expanded (docs/FORMAT.md, 6.4). SPDX-License-Identifier: Apache-2.0 */
#include "kernels/table_bits.h"

enum { TOTAL = 1 << WIDE_BITS };

/* One class pair: bucket b is that of the symbol with the b-th largest frequency. */
struct pair {
	unsigned nb, size;              /* buckets; positions of one */
	unsigned freq[ALIAS_MAX_ENTRIES], threshold[ALIAS_MAX_ENTRIES], alias[ALIAS_MAX_ENTRIES];
	uint8_t symbol[ALIAS_MAX_ENTRIES];
};

/* How many bits frequencies have is said by the difference to the one before. False if it is out of range. */
static bool take_frequencies(struct bits *bits, unsigned n, unsigned *freq)
{
	unsigned sum = 0;
	int k = 0;

	for (unsigned j = 0; j < n; j++) {
		int step = 0;
		while (step <= WIDE_BITS && !take_bits(bits, 1))
			step++;
		k += step && take_bits(bits, 1) ? -step : step;
		if (k < 0 || k > WIDE_BITS)
			return false;
		freq[j] = k ? (1u << (k - 1)) + take_bits(bits, (unsigned)k - 1) : 0;
		sum += freq[j];
		if (freq[j] >= TOTAL || sum > TOTAL)
			return false;
	}
	return sum == TOTAL;
}

/* Symbols by frequency, the largest first, of equal ones the lower index: by insertion, where each place is seen to be below n. */
static void sort_symbols(struct pair *pair, const unsigned *freq, unsigned n)
{
	for (unsigned j = 0; j < n; j++) {
		unsigned b = j;
		for (; b > 0 && pair->freq[b - 1] < freq[j]; b--)
			pair->symbol[b] = pair->symbol[b - 1], pair->freq[b] = pair->freq[b - 1];
		pair->symbol[b] = (uint8_t)j, pair->freq[b] = freq[j];
	}
	for (unsigned b = n; b < pair->nb; b++)
		pair->symbol[b] = 0, pair->freq[b] = 0;
}

/* Walker's aliases (1977): a bucket that its symbol does not fill gets the rest from the symbol that has most left. So the positions of frequent
 * symbols are spread over all, which is what keeps states from growing more than they have to. */
static void fill_buckets(struct pair *pair)
{
	unsigned rest[ALIAS_MAX_ENTRIES], large = 0;

	memcpy(rest, pair->freq, sizeof(rest));
	while (large < pair->nb && rest[large] >= pair->size)
		large++;
	for (unsigned b = 0; b < large; b++)
		pair->threshold[b] = pair->size, pair->alias[b] = b;
	for (unsigned x = large; x < pair->nb; x++) {
		unsigned b = x;
		do {
			unsigned most = 0;
			for (unsigned l = 1; l < large; l++)
				most = rest[l] > rest[most] ? l : most;
			pair->threshold[b] = rest[b], pair->alias[b] = most;
			rest[most] -= pair->size - rest[b];
			rest[b] = 0;    /* full: done with */
			b = most;
		} while (rest[b] < pair->size);
	}
}

/* Fills the cells of one class pair. */
static void fill_cells(const struct kn_alias *t, const struct pair *pair, unsigned base, struct kn_alias_rows *rows)
{
	unsigned rank[ALIAS_MAX_ENTRIES];

	memcpy(rank, pair->threshold, sizeof(rank));
	for (unsigned b = 0; b < pair->nb; b++) {
		const unsigned alias = pair->alias[b], limit = b * pair->size + pair->threshold[b];
		for (unsigned own = 0; own < 2; own++) {
			const unsigned at = own ? b : alias, symbol = pair->symbol[at];
			rows->cell[base + b][own] = (struct kn_alias_cell){
				.limit = (uint16_t)MIN(limit << 4, 65535u), .freq = (uint16_t)(pair->freq[at] << 4),
				.add = (uint16_t)((own ? 0 - b * pair->size : rank[alias] - limit) << 4),
				.value = t->has_escape && symbol == t->nsym - 1u ? t->marker : t->value[symbol],
			};
		}
		rows->alias[base + b] = (uint8_t)(base + alias);
		rank[alias] += pair->size - pair->threshold[b];
	}
}

/* The same as arrays and planes. */
static void fill_arrays(struct kn_alias_rows *rows, unsigned n, unsigned log2_nb)
{
	const unsigned nb = 1u << log2_nb;

	for (unsigned i = 0; i < MAX(n, 64u); i++) {
		const struct kn_alias_cell *cell = rows->cell[i % n];
		rows->limit[i] = cell[0].limit, rows->add[i] = cell[0].add;
		for (unsigned own = 0; own < 2; own++)
			rows->freq[own][i] = cell[own].freq, rows->value[own][i] = cell[own].value;
		if (i < 64) {
			const unsigned bucket = i % n % nb, alias = rows->alias[i % n] % nb, mask = 65536 / nb - 1;
			const bool fills = alias == bucket;
			rows->alias_limit[i] = (uint16_t)(alias << 16 >> log2_nb | (fills ? 0 : cell[0].limit & mask));
			rows->add[i] = fills ? cell[1].add : cell[0].add;
		}
		for (unsigned high = 0; high < 2; high++) {
			rows->limit_plane[high][i] = (uint8_t)(cell[1].limit >> (8 * high));
			rows->freq_plane[high][i] = (uint8_t)(cell[1].freq >> (8 * high));
			rows->add_plane[high][i] = (uint8_t)(cell[0].add >> (8 * high));
			rows->value_plane[high][i] = (uint8_t)(cell[1].value >> (8 * high));
		}
		rows->alias[i] = rows->alias[i % n];
	}
}

/* A word that no symbol stands for; all have less than 16 bits, or there are more words than symbols. */
static uint16_t free_word(const uint16_t *value, unsigned n)
{
	unsigned word = 65535;

	for (unsigned j = n; j > 0 && value[j - 1] == word; j--)
		word--;
	return (uint16_t)word;
}

enum brv_status table_expand_alias(struct span body, struct kn_alias *alias, struct error *err)
{
	struct bits bits = { .bytes = { body.ptr, body.ptr + body.nbytes, false } };
	struct cursor *c = &bits.bytes;
	struct pair pair = { 0 };
	unsigned freq[ALIAS_MAX_ENTRIES] = { 0 };

	alias->log2_nb = cursor_u8(c), alias->width = cursor_u8(c), alias->kr = cursor_u8(c), alias->kc = cursor_u8(c);
	const unsigned escape = cursor_u8(c), nb = 1u << MIN(alias->log2_nb, 8);
	alias->has_escape = escape == 1, alias->nsym = (uint16_t)(cursor_u8(c) + 1);
	if (c->bad || alias->log2_nb < 4 || alias->log2_nb > 8 || alias->width < 1 || alias->width > 16 || alias->kc * nb > ALIAS_MAX_ENTRIES || escape > 1 ||
	    alias->nsym < 2 || alias->nsym > nb)
		return fail(err, BRV_DAMAGED, "an alias table's head is out of range");
	if (!take_values(c, alias->nsym - escape, alias->width, alias->value))
		return fail(err, BRV_DAMAGED, "an alias table's value is out of range");
	alias->marker = free_word(alias->value, alias->nsym - escape);
	pair.nb = nb, pair.size = TOTAL >> alias->log2_nb;
	for (unsigned r = 0; r < alias->kr; r++) {
		for (unsigned k = 0; k < alias->kc; k++) {
			if (!take_frequencies(&bits, alias->nsym, freq))
				return fail(err, BRV_DAMAGED, "an alias table's frequencies do not add up to 4096");
			sort_symbols(&pair, freq, alias->nsym);
			fill_buckets(&pair);
			fill_cells(alias, &pair, k * nb, &alias->row[r]);
		}
		fill_arrays(&alias->row[r], alias->kc * nb, alias->log2_nb);
	}
	if (c->bad || cursor_left(c) || bits.held)
		return fail(err, BRV_DAMAGED, "an alias table does not end with its frequencies");
	return BRV_OK;
}

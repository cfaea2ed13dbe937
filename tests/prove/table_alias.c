/* table_alias.c: alias tables of any bytes, for a choice of buckets and classes, checked and expanded. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/kernel.h"
#include "tests/prove/havoc_cursor.h"

static uint8_t body[64];        /* how many there are does not matter to a reader that gives any */

static void expand(unsigned log2_nb, unsigned kr, unsigned kc)
{
	struct kn_table *table;
	struct error err;

	anything(body, sizeof body);
	body[0] = (uint8_t)log2_nb, body[2] = (uint8_t)kr, body[3] = (uint8_t)kc;
	const struct havoc head[] = { HAVOC_IS(log2_nb), HAVOC_ANY, HAVOC_IS(kr), HAVOC_IS(kc) };
	havoc_start(body, sizeof body, head, ARRAY_LEN(head), NULL, 0);
	if (table_expand(TABLE_ALIAS, (struct span){ body, sizeof body }, &table, &err) == BRV_OK)
		free(table);
}

int main(void)
{
	expand(3, 1, 1), expand(4, 1, 1), expand(8, 1, 1), expand(9, 1, 1);
	expand(6, KN_MAX_ROWS, RANS_MAX_COLS);
	expand(8, 1, 2);
	return 0;
}

/* table_wide.c: wide tables of any bytes, for a choice of classes, checked and expanded. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/kernel.h"
#include "tests/prove/havoc_cursor.h"

static uint8_t body[64];        /* how many there are does not matter to a reader that gives any */

static void expand(unsigned kr, unsigned kc)
{
	struct kn_table *table;
	struct error err;

	anything(body, sizeof body);
	body[1] = (uint8_t)kr, body[2] = (uint8_t)kc;
	const struct havoc head[] = { HAVOC_ANY, HAVOC_IS(kr), HAVOC_IS(kc) };
	havoc_start(body, sizeof body, head, ARRAY_LEN(head), NULL, 0);
	if (table_expand(TABLE_WIDE, (struct span){ body, sizeof body }, &table, &err) == BRV_OK)
		free(table);
}

int main(void)
{
	expand(1, 1);
	expand(3, 2);
	expand(KN_MAX_ROWS, KN_MAX_COLS);
	return 0;
}

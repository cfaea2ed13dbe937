/* table_huff.c: Huffman tables with any lengths of codes, for a choice of symbols, checked and expanded. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/kernel.h"

static void expand(unsigned first, unsigned last, unsigned nbytes)
{
	uint8_t memory[2 + 128], *body = memory + sizeof memory - nbytes;
	struct kn_table *table;
	struct error err;

	anything(memory, sizeof memory);
	body[0] = (uint8_t)first, body[1] = (uint8_t)last;
	if (table_expand(TABLE_HUFF, (struct span){ body, nbytes }, &table, &err) == BRV_OK)
		free(table);
}

int main(void)
{
	expand(0, 255, 130);
	expand(3, 8, 5), expand(3, 8, 4), expand(3, 8, 6);
	expand(7, 9, 4), expand(9, 7, 4), expand(255, 255, 3);
	return 0;
}

/* table_rans.c: rANS tables of any bytes, for each number of buckets and a choice of classes, checked and expanded. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kernels/kernel.h"

static void expand(unsigned log2_nb, unsigned kr, unsigned kc, unsigned more)
{
	uint8_t memory[8 + 15 + 64 * (1 + 2)];
	const unsigned nbytes = 8 + 15 + (1u << log2_nb) * (1 + kr * kc) + more - 1;
	uint8_t *body = memory + sizeof memory - nbytes;
	struct kn_table *table;
	struct error err;

	if (nbytes > sizeof memory)
		return;
	anything(memory, sizeof memory);
	body[0] = (uint8_t)log2_nb, body[2] = (uint8_t)kr, body[3] = (uint8_t)kc;
	if (table_expand(TABLE_RANS, (struct span){ body, nbytes }, &table, &err) == BRV_OK)
		free(table);
}

int main(void)
{
	expand(4, 1, 1, 0), expand(4, 1, 1, 1), expand(4, 1, 1, 2);
	expand(5, 1, 2, 1);
	expand(6, 2, 1, 1);
	return 0;
}

/* prelude.c: any 144 bytes as a prelude: what is accepted keeps within the sizes that later sums rely on. SPDX-License-Identifier: Apache-2.0 */
#include "common/archive.h"

int main(void)
{
	uint8_t bytes[AR_PRELUDE_NBYTES];
	struct ar_prelude prelude;
	struct error err;

	anything(bytes, sizeof bytes);
	if (prelude_read(bytes, &prelude, &err) != BRV_OK)
		return 0;
	for (unsigned i = 0; i < AR_SECTIONS; i++) {
		//@ assert prelude.section[i].form <= 2;
		//@ assert prelude.section[i].stored_nbytes <= 0x80000000;
		//@ assert prelude.section[i].decoded_nbytes <= 0x80000000;
	}
	//@ assert 1 <= prelude.version;
	return 0;
}

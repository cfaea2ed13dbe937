/* stand_in.c: the functions that proofs have in place of others: any checksum, an error without its text.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <xxhash.h>

#include "common/status.h"

uint64_t XXH3_64bits(const void *bytes, size_t nbytes)
{
	if (nbytes)
		(void)(((const volatile uint8_t *)bytes)[0] + ((const volatile uint8_t *)bytes)[nbytes - 1]);
	return any_u64();
}

/* Which text there is, is no matter of safety; vsnprintf() keeps within it. */
enum brv_status fail(struct error *err, enum brv_status status, const char *format, ...)
{
	(void)format;
	if (err)
		err->text[0] = 0;
	return status;
}

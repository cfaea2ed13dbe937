/* status.c: names and exit codes of statuses. SPDX-License-Identifier: Apache-2.0 */
#include "common/status.h"

#include <stdarg.h>
#include <stdio.h>

enum brv_status fail(struct error *err, enum brv_status status, const char *format, ...)
{
	va_list args;

	if (err) {
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
		for (char *c = err->text; *c; c++) /* what was found may be quoted, line ends and all */
			*c = (unsigned char)*c < ' ' ? ' ' : *c;
	}
	return status;
}

const char *status_text(enum brv_status status)
{
	switch (status) {
#define STATUS(id, number, exit_code, text) case BRV_##id: return text;
		BRV_STATUS_TABLE(STATUS)
#undef STATUS
	}
	return "unknown status";
}

int status_exit_code(enum brv_status status)
{
	switch (status) {
#define STATUS(id, number, exit_code, text) case BRV_##id: return exit_code;
		BRV_STATUS_TABLE(STATUS)
#undef STATUS
	}
	return 1;
}

/* status.h: what can go wrong, as values. One table makes the enum, the names and the exit codes of the commands.
 *
 * A function that can fail returns enum brv_status and, where a reader of the message needs more than the name, fills a
 * struct error with one line of text. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_STATUS_H
#define COMMON_STATUS_H

/* STATUS(ID, number, exit code of the commands, text) */
#define BRV_STATUS_TABLE(STATUS)                                        \
	STATUS(OK, 0, 0, "success")                                     \
	STATUS(OTHER, 1, 1, "internal error")                           \
	STATUS(USAGE, 2, 2, "wrong use")                                \
	STATUS(INPUT, 3, 3, "not a valid checkpoint")                   \
	STATUS(DAMAGED, 4, 4, "damaged or foreign archive")             \
	STATUS(IO, 5, 5, "input or output failed")                      \
	STATUS(LIMIT, 6, 6, "over a limit")                             \
	STATUS(MEMORY, 7, 6, "out of memory")                           \
	STATUS(VERSION, 8, 4, "unknown format version, op or flag")     \
	STATUS(NOTFOUND, 9, 2, "no such tensor or range")               \
	STATUS(CANCELLED, 10, 1, "cancelled")

enum brv_status {
#define STATUS(id, number, exit_code, text) BRV_##id = number,
	BRV_STATUS_TABLE(STATUS)
#undef STATUS
};

/* One line about a failure: what was expected, what was found, where. Never ends with a newline. */
struct error {
	char text[256];
};

/* Writes the formatted line into err (which may be NULL) and returns status, so that `return fail(...)` reads well. */
enum brv_status fail(struct error *err, enum brv_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

const char *status_text(enum brv_status status);
int status_exit_code(enum brv_status status);

/* Returns from the calling function if an expression of type enum brv_status is not BRV_OK. */
#define TRY(expression)                              \
	do {                                         \
		enum brv_status try_ = (expression); \
		if (try_ != BRV_OK)                  \
			return try_;                 \
	} while (0)

#endif

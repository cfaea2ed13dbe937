/* progress.c: one line on stderr that says how far a command is (progress.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"

enum { EVERY_NS = 100000000 };

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void progress_start(struct progress *progress, const char *label, bool wanted)
{
	*progress = (struct progress){ .on = wanted && isatty(STDERR_FILENO), .label = label };
	progress->start_ns = progress->last_ns = progress->on ? now_ns() : 0;
}

int progress_update(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;
	if (!progress->on)
		return 0;
	uint64_t now = now_ns();
	if (now - progress->last_ns < EVERY_NS)
		return 0;
	progress->last_ns = now;
	double seconds = (double)(now - progress->start_ns) / 1e9;
	char done_text[16], total_text[16], rate_text[16];
	fprintf(stderr, "\r\033[K%s %s of %s, %.0f %%, %s/s", progress->label, text_nbytes(done, done_text), text_nbytes(total, total_text),
		total ? 100.0 * (double)done / (double)total : 100.0, text_nbytes((uint64_t)((double)done / seconds), rate_text));
	fflush(stderr);
	progress->shown = true;
	return 0;
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->on = progress->shown = false;
}

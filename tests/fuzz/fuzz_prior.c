/* fuzz_prior.c: any bytes as a file of a learned prior: refused with a reason, or it gives probabilities and survives being saved.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "synth/prior.h"
#include "tests/fuzz/fuzz_input.h"

static const struct prior_context contexts[] = {
	{ 0 }, { 14, 16, 0, 0, 3 }, { 13, 8, 1, 0x40, 7 }, { 255, 64, 255, 255, 255 }, { 17, 32, 2, 0x24, 5 },
};

static void bits_of(const struct prior *prior, double bits[ARRAY_LEN(contexts)][PRIOR_MAX_PRODUCTIONS])
{
	for (unsigned c = 0; c < ARRAY_LEN(contexts); c++) {
		double least = -1;
		memset(bits[c], 0, sizeof(bits[c]));
		prior_bits(prior, &contexts[c], bits[c], &least);
		for (unsigned p = 0; p < PRIOR_MAX_PRODUCTIONS; p++)
			FUZZ_CHECK(!(bits[c][p] < 0) && !isnan(bits[c][p]), "production %u costs %g bits", p, bits[c][p]);
		FUZZ_CHECK(least >= 0 && least < HUGE_VAL, "the cheapest production costs %g bits", least);
	}
}

static void check_saved(const struct prior *prior)
{
	double before[ARRAY_LEN(contexts)][PRIOR_MAX_PRODUCTIONS], after[ARRAY_LEN(contexts)][PRIOR_MAX_PRODUCTIONS];
	struct prior *again = alloc_prior();
	struct error err = { "" };
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/brevis-fuzz-prior-%d", getpid());
	bits_of(prior, before);
	FUZZ_CHECK(prior_save(prior, path, true, &err) == BRV_OK, "%s", err.text);
	FUZZ_CHECK(prior_load(again, path, &err) == BRV_OK, "what was saved is refused: %s", err.text);
	bits_of(again, after);
	for (unsigned c = 0; c < ARRAY_LEN(contexts); c++)
		for (unsigned p = 0; p < PRIOR_MAX_PRODUCTIONS; p++)
			FUZZ_CHECK(fabs(before[c][p] - after[c][p]) <= 1e-6 * (1 + before[c][p]), "production %u: %g bits, then %g", p,
				   before[c][p], after[c][p]);
	unlink(path);
	free_prior(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct prior *prior = alloc_prior();
	struct error err = { "" };
	char path[64];
	const int fd = fuzz_file(data, nbytes, path);

	if (prior_load(prior, path, &err) == BRV_OK)
		check_saved(prior);
	else
		FUZZ_CHECK(err.text[0] && !strchr(err.text, '\n'), "no reason, or more than a line: %s", err.text);
	close(fd);
	free_prior(prior);
	return 0;
}

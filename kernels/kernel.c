/* kernel.c: the list of kernel sets and the choice among them, made once. SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernel.h"

#include <stdlib.h>

#include "kernels/cpu.h"

extern const struct kn_set kn_set_scalar, kn_set_avx2, kn_set_avx512, kn_set_avx512i, kn_set_neon, kn_set_hwy;

/* Sets of the test programs only: bodies of other machines, or of newer ones, through SIMDe. Only used if asked for. */
#ifdef KN_TEST_SETS
extern const struct kn_set kn_set_avx2_simde;
bool kn_supported_avx2_simde(void) { return true; }
const char *kn_why_avx2_simde(void) { return "runs everywhere"; }
#ifdef __aarch64__
#define TEST_SETS &kn_set_avx2_simde,
#else
extern const struct kn_set kn_set_neon_simde;
bool kn_supported_neon_simde(void) { return true; }
const char *kn_why_neon_simde(void) { return "runs everywhere"; }
#define TEST_SETS &kn_set_avx2_simde, &kn_set_neon_simde,
#endif
#endif

const struct kn_set *const kn_sets[] = {
	&kn_set_scalar,
#ifdef KN_HAVE_HWY
	&kn_set_hwy,
#endif
#if defined(__x86_64__)
	&kn_set_avx2,
	&kn_set_avx512,
	&kn_set_avx512i,
#elif defined(__aarch64__)
	&kn_set_neon,
#endif
#ifdef KN_TEST_SETS
	TEST_SETS
#endif
	NULL,
};

static const char *const known[] = { "scalar", "avx2", "avx512", "avx512i", "neon", "hwy" };

/* The set that BREVIS_ISA names. */
static enum brv_status choose_named(const char *name, const struct kn_set **out, struct error *err)
{
	for (unsigned i = 0; kn_sets[i]; i++)
		if (!strcmp(kn_sets[i]->name, name)) {
			if (!kn_sets[i]->supported())
				return fail(err, BRV_USAGE, "BREVIS_ISA=%s: this CPU does not have it", name);
			*out = kn_sets[i];
			return BRV_OK;
		}
	for (unsigned i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(known[i], name))
			return fail(err, BRV_USAGE, "BREVIS_ISA=%s: not in this build", name);
	return fail(err, BRV_USAGE, "BREVIS_ISA=%.40s: expected scalar, avx2, avx512, avx512i, neon or hwy", name);
}

static bool only_if_asked(const char *name) { return !strcmp(name, "hwy") || strstr(name, "_simde"); }

enum brv_status kn_choose(const struct kn_set **out, struct error *err)
{
	static const struct kn_set *chosen; /* racing threads store the same value */
	const char *name;

	*out = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
	if (*out)
		return BRV_OK;
	name = getenv("BREVIS_ISA");
	if (name && *name) {
		TRY(choose_named(name, out, err));
	} else {
		for (unsigned i = 0; kn_sets[i]; i++)
			if (kn_sets[i]->supported() && !cpu_avoids(kn_sets[i]->name) && !only_if_asked(kn_sets[i]->name))
				*out = kn_sets[i];
	}
	__atomic_store_n(&chosen, *out, __ATOMIC_RELEASE);
	return BRV_OK;
}

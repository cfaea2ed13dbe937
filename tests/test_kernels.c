/* test_kernels.c: every kernel set x every op and fused kernel against the reference set and, for ops without tables, their definition.
 *
 * A new op or set is found by itself. Sets that this CPU or this build lacks are skipped by name. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/run_case.h"

enum { SMALL_N = 300, SEEDS = 6 };

/* Words of a call; 0 is never passed to a kernel. */
static const size_t large_n[] = { 511, 512, 513, 1029, 4096, 4097, 8200, 12301, 40013 };

static size_t nth_length(unsigned i) { return i < SMALL_N ? i + 1 : large_n[i - SMALL_N]; }

static bool make_case(const struct bc_opinfo *op, int fused, unsigned seed, size_t n, struct gen_case *out)
{
	if (fused != GEN_PLAIN || op->table != TABLE_NONE)
		return gen_entropy_case(op, fused, seed, n, out);
	return gen_case(op, seed, n, out);
}

/* One op or fused kernel of a set, over all lengths. */
static void walk_lengths(const struct kn_set *set, const struct bc_opinfo *op, int fused)
{
	unsigned made = 0;

	for (unsigned i = 0; i < SMALL_N + ARRAY_LEN(large_n); i++)
		for (unsigned seed = 0; seed < SEEDS; seed++) {
			struct gen_case gen;
			if (make_case(op, fused, seed, nth_length(i), &gen)) {
				run_case(set, &gen, (i * SEEDS + seed) % 64);
				made++;
			}
			gen_end(&gen);
		}
	cr_assert(made > SMALL_N, "%s: %s: only %u cases", set->name, op->name, made);
}

static const struct kn_set *set_named(const char *name)
{
	for (unsigned s = 0; kn_sets[s]; s++)
		if (!strcmp(kn_sets[s]->name, name))
			return kn_sets[s];
	return NULL;
}

static const struct kn_set *set_or_skip(const char *name)
{
	const struct kn_set *set = set_named(name);

	if (!set)
		cr_skip_test("%s: not in this build", name);
	else if (!set->supported())
		cr_skip_test("%s: this CPU lacks it", name);
	return set;
}

static void walk_ops(const char *name, bool tables)
{
	const struct kn_set *set = set_or_skip(name);

	for (unsigned code = 0; code < 256; code++) {
		const struct bc_opinfo *op = bc_opinfo((uint8_t)code);
		cr_assert_eq(set->fn[code] == NULL, !op || op->code == OP_REF, "%s: op 0x%02x", name, code);
		if (op && set->fn[code] && (op->table != TABLE_NONE) == tables)
			walk_lengths(set, op, GEN_PLAIN);
	}
}

static void walk_fused(const char *name)
{
	static const struct { enum kn_id id; uint8_t op; } fused[] = {
		{ KN_FUSED_RANS_MERGE, OP_LIT_RANS }, { KN_FUSED_WIDE_MERGE, OP_LIT_WIDE },
		{ KN_FUSED_ALIAS_MERGE, OP_LIT_ALIAS },
	};
	static_assert(ARRAY_LEN(fused) == KN_FUSED_COUNT, "each fused kernel has its literal here");
	const struct kn_set *set = set_or_skip(name);

	for (unsigned i = 0; i < ARRAY_LEN(fused); i++)
		walk_lengths(set, bc_opinfo(fused[i].op), (int)fused[i].id);
}

#define SET_TESTS(set)                                                                  \
	Test(kernels, set) { walk_ops(#set, false); }                                   \
	Test(kernels_with_tables, set, .timeout = 300) { walk_ops(#set, true); }        \
	Test(kernels_fused, set, .timeout = 300) { walk_fused(#set); }
SET_TESTS(scalar)
SET_TESTS(avx2)
SET_TESTS(avx512)
SET_TESTS(avx512i)
SET_TESTS(neon)
SET_TESTS(hwy)
SET_TESTS(avx2_simde)
SET_TESTS(neon_simde)

/* Copies past the caches at every alignment and around every length that has a line of its own. */
Test(kernel_sets, copy_past_the_caches)
{
	static uint8_t from[512 + 64], to[512 + 192];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 37 + i / 256 + 1);
	for (unsigned s = 0; kn_sets[s]; s++)
		for (size_t n = 1; kn_sets[s]->supported() && kn_sets[s]->copy_past && n <= 512; n += n < 200 ? 1 : 13)
			for (size_t at = 0; at < 64; at++) {
				memset(to, 0, sizeof(to));
				kn_sets[s]->copy_past(to + 64 + at, from + (at * 7 + n) % 64, n);
				kn_sets[s]->copy_past(NULL, NULL, 0);
				cr_assert(!memcmp(to + 64 + at, from + (at * 7 + n) % 64, n), "%s: %zu bytes to %zu", kn_sets[s]->name, n, at);
				cr_assert(!to[63 + at] && !to[64 + at + n], "%s: %zu bytes to %zu: beside them", kn_sets[s]->name, n, at);
			}
}

/* A set that is in none of the tests above would not be tested. */
Test(kernel_sets, are_all_tested)
{
	static const char *const tested[] = { "scalar", "avx2", "avx512", "avx512i", "neon", "hwy", "avx2_simde", "neon_simde" };

	cr_assert_str_eq(kn_sets[0]->name, "scalar");
	for (unsigned s = 0; kn_sets[s]; s++) {
		bool found = false;
		for (unsigned t = 0; t < ARRAY_LEN(tested); t++)
			found |= !strcmp(tested[t], kn_sets[s]->name);
		cr_assert(found, "set %s has no tests", kn_sets[s]->name);
	}
}

Test(kernel_sets, chosen_by_name)
{
	const struct kn_set *set;
	struct error err;

	setenv("BREVIS_ISA", "z80", 1);
	cr_assert_eq(kn_choose(&set, &err), BRV_USAGE);
	cr_assert(strstr(err.text, "z80"), "%s", err.text);
	for (unsigned i = 0; i < 2; i++) {
		const char *foreign = i ? "neon" : "avx512";
		if (set_named(foreign) && set_named(foreign)->supported())
			continue;
		setenv("BREVIS_ISA", foreign, 1);
		cr_assert_eq(kn_choose(&set, &err), BRV_USAGE);
		cr_assert(strstr(err.text, foreign), "%s", err.text);
	}
	setenv("BREVIS_ISA", "scalar", 1);
	cr_assert_eq(kn_choose(&set, &err), BRV_OK);
	cr_assert_str_eq(set->name, "scalar");
	setenv("BREVIS_ISA", "z80", 1);
	cr_assert_eq(kn_choose(&set, &err), BRV_OK, "the choice is made once");
}

Test(kernel_sets, chosen_by_cpu)
{
	const struct kn_set *set;

	unsetenv("BREVIS_ISA");
	cr_assert_eq(kn_choose(&set, NULL), BRV_OK);
	cr_assert(set->supported());
}

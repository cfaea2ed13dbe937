/* cpuid.c: x86 features: what CPUID reports and XCR0 says the operating system saves. SPDX-License-Identifier: Apache-2.0 */
#include <cpuid.h>
#include <stdio.h>

#include "kernels/cpu.h"
#include "kernels/kernel.h"

enum {
	F_OSXSAVE = 1u << 0, F_AVX2 = 1u << 1, F_BMI = 1u << 2, F_AVX512F = 1u << 3, F_AVX512BW = 1u << 4, F_AVX512VL = 1u << 5,
	F_AVX512DQ = 1u << 6, F_VBMI = 1u << 7, F_VBMI2 = 1u << 8, F_OS_AVX = 1u << 9, F_OS_AVX512 = 1u << 10, F_SLOW_AVX512 = 1u << 11,
	F_FMA = 1u << 12, F_POPCNT = 1u << 13, F_LZCNT = 1u << 14, F_INTEL = 1u << 15, F_KNOWN = 1u << 31,
};

static const struct { unsigned bit; const char *name; } names[] = {
	{ F_AVX2, "avx2" }, { F_BMI, "bmi2" }, { F_FMA, "fma" }, { F_POPCNT, "popcnt" }, { F_LZCNT, "lzcnt" },
	{ F_AVX512F, "avx512f" }, { F_AVX512BW, "avx512bw" }, { F_AVX512VL, "avx512vl" },
	{ F_AVX512DQ, "avx512dq" }, { F_VBMI, "avx512vbmi" }, { F_VBMI2, "avx512vbmi2" },
	{ F_OS_AVX, "os-avx" }, { F_OS_AVX512, "os-avx512" },
};

static uint64_t read_xcr0(void)
{
	uint32_t low, high;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* Skylake-X and Cascade Lake (family 6, model 0x55) run 512-bit code at a lower clock. */
static bool slow_avx512(void)
{
	unsigned a, b, c, d;
	__cpuid(1, a, b, c, d);
	const unsigned family = (a >> 8 & 15) + (a >> 20 & 255), model = (a >> 4 & 15) | (a >> 12 & 0xf0);
	return family == 6 && model == 0x55;
}

static unsigned detect(void)
{
	unsigned a, b, c, d, vendor, found = F_KNOWN;

	if (__get_cpuid_max(0, &vendor) < 7)
		return found;
	found |= vendor == signature_INTEL_ebx ? F_INTEL : 0;
	__cpuid(1, a, b, c, d);
	found |= c >> 12 & 1 ? F_FMA : 0;
	found |= c >> 23 & 1 ? F_POPCNT : 0;
	if (c >> 27 & 1) {
		const uint64_t xcr0 = read_xcr0();
		found |= F_OSXSAVE;
		found |= (xcr0 & 0x6) == 0x6 ? F_OS_AVX : 0;
		found |= (xcr0 & 0xe6) == 0xe6 ? F_OS_AVX512 : 0;
	}
	if (__get_cpuid(0x80000001u, &a, &b, &c, &d))
		found |= c >> 5 & 1 ? F_LZCNT : 0;
	__cpuid_count(7, 0, a, b, c, d);
	found |= b >> 5 & 1 ? F_AVX2 : 0;
	found |= (b >> 3 & 1 && b >> 8 & 1) ? F_BMI : 0;
	found |= b >> 16 & 1 ? F_AVX512F : 0;
	found |= b >> 17 & 1 ? F_AVX512DQ : 0;
	found |= b >> 30 & 1 ? F_AVX512BW : 0;
	found |= b >> 31 & 1 ? F_AVX512VL : 0;
	found |= c >> 1 & 1 ? F_VBMI : 0;
	found |= c >> 6 & 1 ? F_VBMI2 : 0;
	found |= slow_avx512() ? F_SLOW_AVX512 : 0;
	return found;
}

static unsigned features(void)
{
	static unsigned cached; /* racing threads store the same value */
	unsigned f = __atomic_load_n(&cached, __ATOMIC_RELAXED);

	if (!f)
		__atomic_store_n(&cached, f = detect(), __ATOMIC_RELAXED);
	return f;
}

/* All that the Makefile lets the compiler use. */
static const unsigned need_avx2 = F_AVX2 | F_BMI | F_FMA | F_POPCNT | F_LZCNT | F_OS_AVX;
static const unsigned need_avx512 = F_AVX2 | F_BMI | F_FMA | F_POPCNT | F_LZCNT | F_OS_AVX512 | F_AVX512F | F_AVX512BW | F_AVX512VL |
				    F_AVX512DQ | F_VBMI | F_VBMI2;

bool kn_supported_scalar(void) { return true; }
bool kn_supported_avx2(void) { return (features() & need_avx2) == need_avx2; }
bool kn_supported_avx512(void) { return (features() & need_avx512) == need_avx512; }
const char *kn_why_scalar(void) { return "runs everywhere"; }

/* The first needed feature that is missing. */
static const char *missing(unsigned need)
{
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (need & ~features() & names[i].bit)
			return names[i].name;
	return NULL;
}

static const char *why(unsigned need, char text[64])
{
	const char *lacks = missing(need);
	snprintf(text, 64, lacks ? "lacks %s" : "supported", lacks);
	return text;
}

const char *kn_why_avx2(void)
{
	static __thread char text[64];
	return why(need_avx2, text);
}

const char *kn_why_avx512(void)
{
	static __thread char text[64];
	if (kn_supported_avx512() && cpu_avoids("avx512"))
		return "supported, but this CPU lowers its clock for it: only used if asked for";
	return why(need_avx512, text);
}

/* Its permutes of two registers are three operations; so they are on all its cores that have VBMI. */
static bool is_intel(void) { return features() & F_INTEL; }

bool kn_supported_avx512i(void) { return kn_supported_avx512(); }

const char *kn_why_avx512i(void)
{
	return kn_supported_avx512() && !is_intel() ? "supported, but made for Intel's cores: only used if asked for" : kn_why_avx512();
}

bool cpu_avoids(const char *set)
{
	if (!strcmp(set, "avx512i") && !is_intel())
		return true;
	return !strncmp(set, "avx512", 6) && features() & F_SLOW_AVX512;
}

void cpu_describe(char *text, size_t size)
{
	char brand[49] = "unknown x86";
	unsigned word[12] = { 0 };
	int used;

	if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
		for (unsigned i = 0; i < 3; i++)
			__cpuid(0x80000002u + i, word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]);
		memcpy(brand, word, 48);
		brand[48] = 0;
	}
	used = snprintf(text, size, "%s:", brand + strspn(brand, " "));
	for (unsigned i = 0; i < ARRAY_LEN(names) && used >= 0 && (size_t)used < size; i++)
		if (features() & names[i].bit)
			used += snprintf(text + used, size - (size_t)used, " %s", names[i].name);
}

# cross.mk: kernel sets for tests only, the optional Highway set, and checks on other machines. Included by the Makefile before its rules.
# SPDX-License-Identifier: Apache-2.0

# Bodies of other machines compiled here through SIMDe, for the test program: -O1, because its fallbacks are large and only results count.
TEST_SETS_x86_64  := avx2_simde neon_simde
TEST_SETS_aarch64 := avx2_simde
SYSROOT           ?=
# Not under the sanitizers, where they take minutes to compile: guard pages watch them in the native build.
TEST_SETS         := $(if $(SAN),,$(if $(wildcard $(SYSROOT)/usr/include/simde/arm/neon.h),$(TEST_SETS_$(ARCH))))
FLAGS_avx2_simde  := -O1 -Wno-psabi -DKN_SIMDE -DKN_TEST_SETS -DKN_SET_avx2
FLAGS_neon_simde  := -O1 -DKN_SIMDE -DKN_TEST_SETS -DKN_SET_neon
TEST_SET_OBJ      := $(foreach s,$(TEST_SETS),$(patsubst %.c,$(BUILD)/%.$(s).o,$(BODY_SRC))) $(if $(TEST_SETS),$(BUILD)/kernels/kernel.test.o)

$(BUILD)/%.test.o: %.c
	$(call say,CC  )
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DKN_TEST_SETS -MMD -MP -c -o $@ $<

# make HWY=1: the kernel set `hwy` (kernels/highway_set.c), the only C++; in a build directory of its own.
ifdef HWY
CXX        ?= g++
CXXFLAGS   ?= -O3 -g
ALL_CXXFLAGS = -std=gnu++17 $(CXXFLAGS) -Wall -Wextra -Werror -fno-exceptions -fno-rtti -fPIC -fvisibility=hidden -I. $(SANITIZE) $(EXTRA_CFLAGS)
override EXTRA_CFLAGS += -DKN_HAVE_HWY
override LDFLAGS += -lhwy -lstdc++
CORE_OBJ   += $(BUILD)/kernels/highway.o

$(BUILD)/%.o: %.cc
	$(call say,CXX )
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(ALL_CXXFLAGS) -MMD -MP -c -o $@ $<
endif

.PHONY: check-arm64 check-old-x86
ARM64_SYSROOT := build/arm64-sysroot
ARM64_MAKE = $(MAKE) -s -j$(JOBS) BUILD=build-arm64 CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ AR=aarch64-linux-gnu-ar \
	     OBJCOPY=aarch64-linux-gnu-objcopy FUSE=0 SYSROOT=$(ARM64_SYSROOT) EXTRA_CFLAGS=--sysroot=$(abspath $(ARM64_SYSROOT))

check-arm64: ## build for arm64; kernel tests and a round trip under qemu, with SVE and without
	@scripts/arm64-sysroot $(ARM64_SYSROOT)
	+@$(ARM64_MAKE) build tests
	@scripts/check-emulated arm64 build-arm64 $(ARM64_SYSROOT)

check-old-x86: ## the same programs on a CPU of 2008 and one of 2013, under qemu: no newer instruction in baseline code
	+@$(MAKE) -s -j$(JOBS) build tests
	@scripts/check-emulated x86 $(BUILD)

# trust.mk: what tests of faults and damage are built of. Included by the Makefile. SPDX-License-Identifier: Apache-2.0

# To be preloaded, so not under sanitizers. Its functions stand in for the C library's: no fortification, no attributes of theirs believed.
FAULTS := $(if $(SANITIZE),,$(BUILD)/libfaults.so)
$(BUILD)/libfaults.so: tests/faults/fault_inject.c
	$(call say,LD  )
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O1 -g $(WARN) -Wno-nonnull -Wno-missing-prototypes -U_FORTIFY_SOURCE -D_GNU_SOURCE -fPIC -shared -fvisibility=hidden \
	  -fno-builtin -o $@ $< -ldl

# Archives damaged in every way, with the library linked in.
$(BUILD)/damage: $(BUILD)/tests/damage/damage.o $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_RUNTIME) $(LDFLAGS)

# What threads share, for ThreadSanitizer and valgrind.
TSAN_BUILD := build-tsan
$(BUILD)/threads: $(BUILD)/tests/threads/threads.o $(call obj,$(SYNTH_SRC)) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_SYNTH) $(LDFLAGS)

.PHONY: tsan coverage coverage-build
tsan: ## the test of what threads share, built for ThreadSanitizer
	+@$(MAKE) -s -j$(JOBS) BUILD=$(TSAN_BUILD) CFLAGS='-O1 -g' SANITIZE='-fsanitize=thread -fno-omit-frame-pointer' EXTRA_CFLAGS=-Wno-error $(TSAN_BUILD)/threads

COV_BUILD := build-cov
coverage-build:
	+@! command -v gcovr >/dev/null || $(MAKE) -s -j$(JOBS) BUILD=$(COV_BUILD) CFLAGS='-O1 -g --coverage -fprofile-update=atomic' EXTRA_CFLAGS=-Wno-error build tests
coverage: coverage-build ## what the tests reach of common, runtime and synth
	@scripts/coverage $(COV_BUILD)

# fuzz.mk: fuzzers (libFuzzer, so clang) and the writer of golden archives: tests that are no part of tests.bin. Included by the Makefile.
# SPDX-License-Identifier: Apache-2.0

FUZZ_BUILD := build-fuzz
FUZZ_CC    := clang
FUZZERS    := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
TIME       ?= 60
# Without pointer-overflow: for clang NULL + 0 is one, which means nothing and which the kernels do for what is not there.
FUZZ_MAKE   = $(MAKE) -s -j$(JOBS) BUILD=$(FUZZ_BUILD) CC=$(FUZZ_CC) CFLAGS='-O1 -g' \
	      SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer'
FORGE_OBJ  := $(call obj,tests/forge.c tests/handmade.c tests/model.c)

.PHONY: fuzz fuzz-check fuzz-replay fuzzers golden
fuzz: ## search for crashes, TIME=60 seconds for each target; FUZZERS=fuzz_archive: only that
	+@$(FUZZ_MAKE) fuzzers
	@scripts/run-fuzzers $(FUZZ_BUILD) $(TIME) $(FUZZERS)

fuzz-check: ## every fuzz target for 30 seconds, from its seeds
	+@$(MAKE) -s fuzz TIME=30

fuzz-replay: ## the fuzzers' seeds only, which hold what once went wrong
	+@$(FUZZ_MAKE) fuzzers
	@scripts/run-fuzzers $(FUZZ_BUILD) 0 $(FUZZERS)

fuzzers: $(FUZZERS:%=$(BUILD)/%)
$(FUZZERS:%=$(BUILD)/%): $(BUILD)/%: $(BUILD)/tests/fuzz/%.o $(FORGE_OBJ) $(call obj,$(SYNTH_SRC)) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS_SYNTH) $(LDFLAGS)

# Writes only what is not there yet: see the program.
golden: $(BUILD)/golden-writer ## write the golden archives of new cases
	@$(BUILD)/golden-writer tests/golden
$(BUILD)/golden-writer: $(BUILD)/tests/golden/golden_writer.o $(FORGE_OBJ) $(call obj,$(SYNTH_SRC)) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_SYNTH) $(LDFLAGS)

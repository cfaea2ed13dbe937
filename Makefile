# Makefile: build, test, bench. `make help` lists the targets.

.DEFAULT_GOAL := help
BUILD   ?= build
CC      ?= gcc
AR      ?= ar
ARCH    := $(shell $(CC) -dumpmachine | cut -d- -f1)
WARN    := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
CFLAGS  ?= -O3 -g
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) -fPIC -fvisibility=hidden -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(EXTRA_CFLAGS)
LDLIBS_RUNTIME := -lxxhash -lpthread
LDLIBS_SYNTH   := -ljansson -lm $(LDLIBS_RUNTIME)
LDLIBS_TEST    := -lcriterion $(LDLIBS_SYNTH)

# Kernel sets: every kernels/op_*.c and enc_*.c and set.c is compiled once for each (kernels/body.h).
SETS_x86_64  := scalar avx2 avx512
SETS_aarch64 := scalar neon
SETS         := $(SETS_$(ARCH))
FLAGS_scalar :=
FLAGS_avx2   := -mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mfma
FLAGS_avx512 := $(FLAGS_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vbmi2 -mprefer-vector-width=512
FLAGS_neon   :=

COMMON_SRC  := $(wildcard common/*.c)
BODY_SRC    := $(wildcard kernels/op_*.c kernels/enc_*.c) kernels/set.c
KERNEL_SRC  := $(filter-out $(BODY_SRC),$(wildcard kernels/*.c)) \
	       $(if $(filter x86_64,$(ARCH)),$(wildcard kernels/x86/*.c),$(wildcard kernels/arm/*.c))
RUNTIME_SRC := $(filter-out runtime/%_main.c runtime/cmd_%.c,$(wildcard runtime/*.c))
CLI_SRC     := $(wildcard runtime/cmd_*.c) runtime/brevis_main.c
SYNTH_SRC   := $(filter-out synth/%_main.c,$(wildcard synth/*.c))
TEST_SRC    := $(wildcard tests/*.c tests/ops/*.c)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
BODY_OBJ    := $(foreach s,$(SETS),$(patsubst %.c,$(BUILD)/%.$(s).o,$(BODY_SRC)))
LIB_OBJ     := $(call obj,$(COMMON_SRC) $(KERNEL_SRC) $(RUNTIME_SRC)) $(BODY_OBJ)

.PHONY: help build runtime synth clean
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: runtime synth ## the two commands and the library
runtime: $(BUILD)/brevis $(BUILD)/libbrevis.a ## command brevis and libbrevis, C only
synth: $(BUILD)/brevis-synth ## command brevis-synth

$(BUILD)/libbrevis.a: $(LIB_OBJ)
	rm -f $@; $(AR) rcs $@ $^
$(BUILD)/brevis: $(call obj,$(CLI_SRC)) $(BUILD)/libbrevis.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_RUNTIME) $(LDFLAGS)
$(BUILD)/brevis-synth: $(call obj,$(SYNTH_SRC) synth/synth_main.c) $(BUILD)/libbrevis.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_SYNTH) $(LDFLAGS)
$(BUILD)/tests.bin: $(call obj,$(TEST_SRC) $(SYNTH_SRC)) $(BUILD)/libbrevis.a
	$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_TEST) $(LDFLAGS)

define set_rule
$(BUILD)/%.$(1).o: %.c
	@mkdir -p $$(@D)
	$(CC) $$(ALL_CFLAGS) $$(FLAGS_$(1)) -DKN_SET=$(1) -DKN_SET_$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach s,$(SETS),$(eval $(call set_rule,$(s))))
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

clean: ## remove what was built
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# Makefile: build, test, install. `make help` lists the targets. SPDX-License-Identifier: Apache-2.0

.DEFAULT_GOAL := help
OBJCOPY ?= objcopy
JOBS    ?= $(shell nproc 2>/dev/null || echo 1)
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
MANDIR  ?= $(PREFIX)/share/man
ifeq ($(origin CC),default)
CC      := gcc
endif
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null || uname -m)))
VERSION := $(shell sed -n 's/^.define BRV_VERSION_STRING "\(.*\)"/\1/p' runtime/brevis.h)
SONAME  := libbrevis.so.$(firstword $(subst ., ,$(VERSION)))

# SAN=1: a second build, in its own directory, that aborts at the first undefined behaviour, bad access or leak.
ifdef SAN
BUILD   ?= build-asan
CFLAGS  ?= -O1 -g
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
# HWY=1: with the Highway kernel set (scripts/cross.mk), in its own directory.
ifdef HWY
BUILD   ?= build-hwy
endif
BUILD   ?= build
CFLAGS  ?= -O3 -g
# CPPFLAGS, CFLAGS and LDFLAGS are whoever builds's (a distribution's); what the code needs beside them is added. WERROR= lets other compilers warn.
# The sanitizers keep gcc from unrolling some loops that ask for it, and it has no name for that warning: errors only in the native build.
WERROR  ?= $(if $(SAN),,-Werror)
WARN    := -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
ALL_CFLAGS = -std=gnu11 $(CPPFLAGS) $(CFLAGS) $(WARN) -fPIC -fvisibility=hidden -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(SANITIZE) $(FILE_CFLAGS) $(EXTRA_CFLAGS)
# The command (never the library) mounts with libfuse3 if that is there; FUSE=0: do without.
PKG_CONFIG ?= pkg-config
FUSE    ?= $(shell $(PKG_CONFIG) --exists fuse3 2>/dev/null && echo 1 || echo 0)
ifneq ($(FUSE),0)
FUSE_CFLAGS := $(shell $(PKG_CONFIG) --cflags fuse3)
FUSE_LIBS   := $(shell $(PKG_CONFIG) --libs fuse3)
endif
LDLIBS_RUNTIME := -lxxhash -lhwloc -lpthread
LDLIBS_SYNTH   := -ljansson -lm $(LDLIBS_RUNTIME)
LDLIBS_TEST    := -lcriterion $(LDLIBS_SYNTH)

# Kernel sets: every kernels/op_*.c and enc_*.c, past.c and set.c is compiled once for each (kernels/body.h).
SETS_x86_64  := scalar avx2 avx512
SETS_aarch64 := scalar neon
SETS         := $(SETS_$(ARCH))
# Sets that are another one but for lit.rans.
PART_SETS    := $(if $(filter avx512,$(SETS)),avx512i)
PART_SRC     := kernels/op_rans.c kernels/set.c
FLAGS_scalar :=
FLAGS_avx2   := -mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mfma
FLAGS_avx512 := $(FLAGS_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vbmi2 -mprefer-vector-width=512
FLAGS_avx512i := $(FLAGS_avx512) -DKN_SET_avx512 -DRANS_INTEL
FLAGS_neon   :=

COMMON_SRC  := $(wildcard common/*.c)
BODY_SRC    := $(wildcard kernels/op_*.c kernels/enc_*.c) kernels/past.c kernels/set.c
KERNEL_SRC  := $(filter-out $(BODY_SRC),$(wildcard kernels/*.c)) \
	       $(if $(filter x86_64,$(ARCH)),$(wildcard kernels/x86/*.c),$(wildcard kernels/arm/*.c))
CLI_SRC     := $(wildcard runtime/cmd_*.c runtime/cli*.c) runtime/salvage.c runtime/brevis_main.c \
	       $(filter-out runtime/mount_$(if $(filter 0,$(FUSE)),fuse,none).c,$(wildcard runtime/mount_*.c))
RUNTIME_SRC := $(filter-out $(CLI_SRC) $(wildcard runtime/mount_*.c),$(wildcard runtime/*.c))
SYNTH_SRC   := $(filter-out synth/%_main.c,$(wildcard synth/*.c))
TEST_SRC    := $(wildcard tests/*.c tests/ops/*.c)
EXAMPLES    := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
RUNTIME_OBJ := $(call obj,$(RUNTIME_SRC))
BODY_OBJ    := $(foreach s,$(SETS),$(patsubst %.c,$(BUILD)/%.$(s).o,$(BODY_SRC))) \
	       $(foreach s,$(PART_SETS),$(patsubst %.c,$(BUILD)/%.$(s).o,$(PART_SRC)))
CORE_OBJ    := $(RUNTIME_OBJ) $(call obj,$(COMMON_SRC) $(KERNEL_SRC)) $(BODY_OBJ)
include scripts/cross.mk
include scripts/fuzz.mk
include scripts/trust.mk
include scripts/package.mk

# One short line for each file made; V=1 shows the commands themselves, -s nothing.
Q   := $(if $(V),,@)
say  = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@echo "  $(1) $@")


.PHONY: bench help deps build runtime synth tests demo check check-quick asan lint fmt install clean distclean
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(filter Makefile %.mk,$(MAKEFILE_LIST))

deps: ## install the Debian packages that are missing
	@scripts/install-deps test

build: runtime synth ## the two commands and the library
runtime: $(BUILD)/brevis $(BUILD)/libbrevis.a $(BUILD)/libbrevis.so $(BUILD)/brevis.pc ## command brevis and libbrevis, C only
synth: $(BUILD)/brevis-synth ## command brevis-synth
tests: $(BUILD)/tests.bin $(BUILD)/damage $(FAULTS) $(EXAMPLES) ## the C tests, and the examples

demo: ## from nothing: install, build, fetch a real model, compress, unpack, compare, measure
	@scripts/install-deps test
	+@$(MAKE) -s -j$(JOBS) build
	@scripts/fetch-models demo
	@scripts/demo $(BUILD)

check: ## everything: rules, every test natively and under sanitizers, fuzzing, analysers, coverage (FUZZ_SECONDS=30 for each target)
	@scripts/install-deps test
	+@$(MAKE) -s -j$(JOBS) build tests
	+@$(MAKE) -s -j$(JOBS) SAN=1 build tests
	+@$(MAKE) -s tsan coverage-build
	+@! command -v $(FUZZ_CC) >/dev/null || $(FUZZ_MAKE) fuzzers
	@scripts/make-venv
	@scripts/fetch-models test
	@scripts/run-tests $(BUILD) build-asan

check-quick: ## rules, unit tests, cases, bombs and a part of the damage, natively: under three minutes
	@scripts/install-deps test
	+@$(MAKE) -s -j$(JOBS) build tests
	@scripts/make-venv
	@scripts/run-tests --quick $(BUILD)

bench: $(BUILD)/bench_kernels $(BUILD)/bench_decode ## GB/s of every kernel set next to memcpy (MODEL=FILE: on its weights; ARCHIVES=...: decode these)
	@$(BUILD)/bench_kernels $(MODEL)
	@$(if $(ARCHIVES),$(BUILD)/bench_decode $(ARCHIVES))

asan: ## every test under sanitizers only
	@scripts/install-deps test
	+@$(MAKE) -s -j$(JOBS) SAN=1 build tests
	@scripts/make-venv
	@scripts/fetch-models test
	@scripts/run-tests build-asan

lint: ## rules that need no build: who includes whom, documents that agree with the code
	@scripts/check-includes
	@scripts/check-docs
	@scripts/check-manual

fmt: ## clang-format on all C
	clang-format -i $$(git ls-files '*.c' '*.h')

install: build ## DESTDIR, PREFIX (/usr/local), LIBDIR, MANDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LIBDIR)/pkgconfig
	install $(BUILD)/brevis $(BUILD)/brevis-synth $(DESTDIR)$(PREFIX)/bin
	install -m 644 runtime/brevis.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(BUILD)/libbrevis.a $(DESTDIR)$(LIBDIR)
	install -m 644 $(BUILD)/libbrevis.so $(DESTDIR)$(LIBDIR)/libbrevis.so.$(VERSION)
	ln -sf libbrevis.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libbrevis.so
	install -d $(DESTDIR)$(PREFIX)/share/brevis/batch
	install synth/batch/brevis-batch synth/batch/brevis-stage synth/batch/brevis-array.sbatch $(DESTDIR)$(PREFIX)/share/brevis/batch
	install -m 644 synth/batch/brevis-job.yaml $(DESTDIR)$(PREFIX)/share/brevis/batch
	install -m 644 $(BUILD)/brevis.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions zsh/site-functions)
	install -m 644 completions/brevis.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/brevis
	ln -sf brevis $(DESTDIR)$(PREFIX)/share/bash-completion/completions/brevis-synth
	install -m 644 completions/_brevis $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3
	install -m 644 man/*.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 man/*.3 $(DESTDIR)$(MANDIR)/man3

clean: ## remove what was built; downloads stay
	rm -rf build-asan build-tsan build-cov build-fuzz
	find $(BUILD) -mindepth 1 -maxdepth 1 ! -name models ! -name venv -exec rm -rf {} +
distclean: ## remove downloads too
	rm -rf build build-asan build-tsan build-cov build-fuzz

# All objects, for what is built here; and the library for others: one object in which only brv_ names are left.
$(BUILD)/internal.a: $(CORE_OBJ)
	$(call say,AR  )
	$(Q)rm -f $@; $(AR) rcs $@ $^
$(BUILD)/libbrevis.a: $(RUNTIME_OBJ) $(BUILD)/internal.a
	$(call say,AR  )
	$(Q)$(CC) -r -nostdlib -o $(BUILD)/libbrevis.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(BUILD)/libbrevis.o
	$(Q)rm -f $@; $(AR) rcs $@ $(BUILD)/libbrevis.o
$(BUILD)/libbrevis.so: $(RUNTIME_OBJ) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(SONAME) $(if $(SANITIZE),,-Wl,-z,defs) -o $@ $^ $(LDLIBS_RUNTIME) $(LDFLAGS)
$(BUILD)/brevis: $(call obj,$(CLI_SRC)) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_RUNTIME) $(FUSE_LIBS) $(LDFLAGS)
$(BUILD)/runtime/mount_fuse.o $(BUILD)/perf/mount_copy.o: FILE_CFLAGS := $(FUSE_CFLAGS)
$(BUILD)/brevis-synth: $(call obj,$(SYNTH_SRC) synth/synth_main.c) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_SYNTH) $(LDFLAGS)
$(BUILD)/bench_%: $(BUILD)/perf/bench_%.o $(call obj,$(SYNTH_SRC)) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_SYNTH) $(LDFLAGS)
$(EXAMPLES): $(BUILD)/examples/%: examples/%.c examples/adler32.h runtime/brevis.h $(BUILD)/libbrevis.a
	$(call say,CC  )
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(CFLAGS) $(WARN) $(SANITIZE) $(EXTRA_CFLAGS) -Iruntime -o $@ $< $(BUILD)/libbrevis.a $(LDLIBS_RUNTIME) $(LDFLAGS)

$(BUILD)/mount_copy: $(BUILD)/perf/mount_copy.o
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(FUSE_LIBS) $(LDFLAGS)
$(BUILD)/tests.bin: $(call obj,$(TEST_SRC) $(SYNTH_SRC)) $(TEST_SET_OBJ) $(BUILD)/internal.a
	$(call say,LD  )
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LDLIBS_TEST) $(LDFLAGS)

.PHONY: FORCE
$(BUILD)/brevis.pc: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' 'Name: brevis' \
	  'Description: decoder of Brevis archives of model checkpoints' 'Version: $(VERSION)' 'Libs: -L$${libdir} -lbrevis' \
	  'Libs.private: $(LDLIBS_RUNTIME)' 'Cflags: -I$${includedir}' >$@

define set_rule
$(BUILD)/%.$(1).o: %.c
	$$(call say,CC  )
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(CC) $$(ALL_CFLAGS) $$(if $$(SANITIZE),-g1) $$(FLAGS_$(1)) -DKN_SET=$(1) -DKN_SET_$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach s,$(SETS) $(PART_SETS) $(TEST_SETS),$(eval $(call set_rule,$(s))))
$(BUILD)/%.o: %.c
	$(call say,CC  )
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(addprefix $(BUILD)/,common kernels runtime synth tests perf) -type f -name '*.d' 2>/dev/null)

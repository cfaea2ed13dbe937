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

# Precompiled headers: part of the Makefile. They save a third of the time of a complete build. g++ needs one for
# each set of flags. ccache saves more time, but cannot cache objects that use a precompiled header.
ifeq ($(CXX)$(CCACHE),g++)
CORE_CC = $(wildcard src/core/*/*.cc src/tls/*.cc)
SHELL_CC = $(wildcard src/io/*/*.cc) src/server.cc $(CLI)

# $(1): the name of the header's folder, $(2): the objects that use it. Make compiles it with their flags, as a
# target's variables also apply to its prerequisites.
define precompiled
$(2): PCH = -Winvalid-pch -include build/pch/$(1)/precompiled.h
$(2): | build/pch/$(1)/precompiled.h.gch
endef
$(eval $(call precompiled,release-core,$(call release,$(CORE_CC))))
$(eval $(call precompiled,release-client,$(call release,$(filter-out $(CORE_CC),$(CLIENT)))))
$(eval $(call precompiled,release-shell,$(call release,$(SHELL_CC))))
$(eval $(call precompiled,asan-client,$(call asan,$(filter-out %/fiber.cc,$(CLIENT)))))
$(eval $(call precompiled,asan-shell,$(call asan,$(sort $(SHELL_CC) $(UNIT) $(INTEGRATION)))))

build/pch/release-%/precompiled.h.gch: KIND = $(RELEASE)
build/pch/asan-%/precompiled.h.gch: KIND = $(ASAN)
build/pch/%/precompiled.h.gch: src/precompiled.h Makefile src/precompiled.mk
	$(call say,PCH,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(FLAGS) $(KIND) $(INCLUDES) -Itests $(CPPFLAGS) -x c++-header -o $@ $<
endif

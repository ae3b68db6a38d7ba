# The objects of the server with sanitizers: part of the Makefile.

# The code of each request. These objects come first when a program is linked, so that inline functions of
# several objects are the optimised ones, and those with sanitizers.
HOT = $(patsubst %,build/asan/src/units/core-%.o,base codec engine events keyspace lock state)
$(HOT): OPT_ASAN = -O1

# The server's files with sanitizers have a precompiled header, too: one without optimisation, one with it.
with_pch = $(addprefix -include-pch ,$(CLANG_PCH))
SERVER = $(filter src/core/% src/io/% src/server.cc,$(LIB) src/server.cc)
# Not those with flags of their own.
SERVER_ASAN = $(filter-out %/fiber.o %/build_info.o,$(call asan,$(SERVER)))
$(call asan,$(SERVER)): FLAGS += -fPIC
ifndef CCACHE
$(HOT): CLANG_PCH = build/asan/hot.pch
$(HOT): build/asan/hot.pch
build/asan/hot.pch: OPT_ASAN = -O1
$(filter-out $(HOT),$(SERVER_ASAN)): CLANG_PCH = build/asan/server.pch
$(filter-out $(HOT),$(SERVER_ASAN)): build/asan/server.pch
build/asan/hot.pch build/asan/server.pch: src/precompiled.h build/flags
	$(call say,PCH,$@)
	@mkdir -p $(@D)
	$(Q)$(ASAN_CXX) $(FLAGS) -fPIC $(ASAN) -Xclang -fpch-instantiate-templates $(INCLUDES) -Itests \
	  $(CPPFLAGS) -MMD -MP -MF $@.d -MT $@ -x c++-header -o $@ $<
endif
linked = $(filter $(HOT),$(1)) $(filter-out $(HOT),$(sort $(1)))

# fiber.cc switches stacks, and reports that to AddressSanitizer. Instrumented code of this file would look
# for its frames on the wrong stack.
build/asan/src/core/base/fiber.o: ASAN += -fno-sanitize=address -DHOLDFAST_ASAN

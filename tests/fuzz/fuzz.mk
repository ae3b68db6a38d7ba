# Fuzzing with libFuzzer: part of the Makefile. One program has all targets; its name selects the target.
FUZZ_DEPS = clang libclang-rt-dev llvm
FUZZ_CXX = clang++
FUZZ_SECONDS = 60
FUZZ_FLAGS = -std=c++20 -g1 -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
  -fno-sanitize-recover=all
FUZZ = $(filter-out %/libfuzzer.cc,$(wildcard tests/fuzz/*.cc))
FUZZED = $(sort $(LIB) $(CLIENT) $(filter-out %_test.cc,$(FUZZ)) tests/fuzz/libfuzzer.cc)
fuzz = $(call objects,fuzz,$(filter src/%,$(1))) $(patsubst %.cc,build/fuzz/%.o,$(filter-out src/%,$(1)))
.PHONY: fuzz fuzz-merge

# `make test` runs the kept inputs.
build/asan/unit-tests: $(call asan,$(FUZZ))

fuzz: fuzz-deps  ## fuzz all readers of bytes; FUZZ_SECONDS=60 for each target, ARGS='rdb meta' selects some
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run.sh $(ARGS)

fuzz-merge: fuzz-deps  ## keep the fewest inputs of `make fuzz` with the same coverage
	@tests/fuzz/run.sh --merge $(ARGS)

.PHONY: fuzz-deps
fuzz-deps:
	@$(call install,$(BUILD_DEPS) $(FUZZ_DEPS))
	@$(MAKE) $(SILENT) build/fuzz/fuzz

build/fuzz/fuzz: $(call fuzz,$(FUZZED))
	$(call say,LINK,$@)
	$(Q)$(FUZZ_CXX) $(subst fuzzer-no-link,fuzzer,$(FUZZ_FLAGS)) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

define compile_fuzz
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(FUZZ_CXX) $(FUZZ_FLAGS) $(with_pch) $(INCLUDES) -Itests -I. $(CPPFLAGS) -MMD -MP -c -o $@ $<
endef
build/fuzz/%.o: %.cc build/flags tests/fuzz/fuzz.mk
	$(call say,CXX,$< (fuzz))
	$(compile_fuzz)
build/fuzz/src/units/%.o: build/units/%.cc build/flags tests/fuzz/fuzz.mk
	$(call say,CXX,unit $* (fuzz))
	$(compile_fuzz)

ifndef CCACHE
SERVER_FUZZ = $(filter-out %/fiber.o,$(call objects,fuzz,$(SERVER)))
$(SERVER_FUZZ): CLANG_PCH = build/fuzz/server.pch
$(SERVER_FUZZ): build/fuzz/server.pch
build/fuzz/server.pch: src/precompiled.h tests/fuzz/fuzz.mk
	$(call say,PCH,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CXX) $(FUZZ_FLAGS) -Xclang -fpch-instantiate-templates $(INCLUDES) -Itests $(CPPFLAGS) \
	  -MMD -MP -MF $@.d -MT $@ -x c++-header -o $@ $<
endif

build/fuzz/src/core/base/fiber.o: FUZZ_FLAGS += -fno-sanitize=address -DHOLDFAST_ASAN

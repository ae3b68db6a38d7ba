# Fuzzing with libFuzzer: part of the Makefile. One program has all targets; its name selects the target.
FUZZ_DEPS = clang libclang-rt-dev llvm
FUZZ_CXX = clang++
FUZZ_SECONDS = 60
FUZZ_FLAGS = -std=c++20 -g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
  -fno-sanitize-recover=all
FUZZ = $(filter-out %/libfuzzer.cc,$(wildcard tests/fuzz/*.cc))
FUZZED = $(sort $(LIB) $(CLIENT) $(filter-out %_test.cc,$(FUZZ)) tests/fuzz/libfuzzer.cc)
fuzz = $(patsubst %.cc,build/fuzz/%.o,$(1))
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

build/fuzz/%.o: %.cc Makefile tests/fuzz/fuzz.mk
	$(call say,CXX,$< (fuzz))
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(FUZZ_CXX) $(FUZZ_FLAGS) $(INCLUDES) -Itests $(CPPFLAGS) -MMD -MP -c -o $@ $<

build/fuzz/src/core/base/fiber.o: FUZZ_FLAGS += -fno-sanitize=address -DHOLDFAST_ASAN

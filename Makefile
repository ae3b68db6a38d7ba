# Builds Holdfast. On a bare Debian `make run` is enough. All output is in build/: objects of the release in
# build/release, objects with sanitizers (for the tests) in build/asan.
# V=1 shows each command. OPT, LTO (-flto=auto), CXX, CPPFLAGS, CXXFLAGS and LDFLAGS can be set.
BUILD_DEPS = g++ make pkg-config libuv1-dev libboost-program-options-dev libabsl-dev libspdlog-dev \
  libfmt-dev libxxhash-dev libboost-context-dev libssl-dev liblua5.1-0-dev libisal-dev \
  libhiredis-dev nlohmann-json3-dev libncurses-dev libjs-chart.js python3
CXX = g++
OPT = -O2
PREFIX = /usr/local
FLAGS = -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror $(CXXFLAGS)
# assert() stays on in the release: NDEBUG is never defined.
# -g1: file and line of each function, without variables.
DEBUG = -g1
RELEASE = $(OPT) $(DEBUG) $(LTO)
# clang compiles objects with sanitizers in half of the time of g++.
ASAN_CXX = clang++
# lld links such programs in a fifth of the time of ld.
ASAN_LD = -fuse-ld=lld
ASAN_DEPS = clang libclang-rt-dev lld
OPT_ASAN = -O0
# Only clang counts conversions of signs to -Wconversion.
ASAN = -Wno-sign-conversion $(OPT_ASAN) -g1 -fsanitize=address,undefined -fno-sanitize-recover=all \
  -fno-omit-frame-pointer -D__SANITIZE_ADDRESS__ -D_GLIBCXX_ASSERTIONS
# The tests' own objects have no sanitizers.
QUICK_TESTS = -Wno-sign-conversion -O0 -g1
ASAN_TESTS = $(QUICK_TESTS) -D__SANITIZE_ADDRESS__ -D_GLIBCXX_ASSERTIONS
INCLUDES := -Isrc -Iinclude $(shell pkg-config --cflags spdlog lua5.1-c++ 2>/dev/null)
# The libraries that the library for programs needs, and those that the programs here need in addition.
CLIENT_LIBS := $(shell pkg-config --libs libuv absl_flat_hash_set absl_flat_hash_map absl_btree lua5.1-c++ \
  libssl libcrypto libisal 2>/dev/null) -lhiredis -lboost_context -lpthread
LIBS = $(CLIENT_LIBS) $(shell pkg-config --libs spdlog) -lboost_program_options
# Those of the command alone.
CLI_LIBS := $(shell pkg-config --libs ncursesw 2>/dev/null)
CCACHE := $(shell command -v ccache 2>/dev/null)

LIB = $(wildcard src/core/*/*.cc src/tls/*.cc src/io/*/*.cc)
# The library for programs. It contains an engine for programs without a server.
CLIENT = $(wildcard src/client/*/*.cc src/core/*/*.cc src/tls/*.cc)
include src/client/scripts.mk src/io/http/page.mk
.DEFAULT_GOAL = all
CLI = $(wildcard src/cli/*.cc)
# Those of the command that the unit tests test.
CLI_PARTS = $(addprefix src/cli/,columns.cc note.cc output.cc printable.cc servers.cc show.cc top_state.cc \
  top_table.cc)
include src/units.mk
CXX_FILES = $(shell find $(wildcard src include tests bench) -name '*.h' -o -name '*.cc')
release = $(call objects,release,$(1))
asan = $(call objects,asan,$(1))

Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) '$(2)')
SILENT = $(if $(V),,--silent)
ifeq ($(MAKELEVEL),0)  # all cores, unless -j says otherwise
MAKEFLAGS += -j$(shell nproc) --no-print-directory
endif
MAKEFLAGS += -r  # no built-in rules
.PHONY: all run lint format deps asan man install install-library install-completions uninstall clean help
.DELETE_ON_ERROR:

# The libraries for programs.
# LIBRARY=asan makes them with sanitizers, from the objects of the tests.
LIBRARY = release
LIBRARY_DIR = $(if $(filter asan,$(LIBRARY)),build/asan,build)
LIBRARIES = $(LIBRARY_DIR)/libholdfast.a $(LIBRARY_DIR)/libholdfast.so
SONAME = libholdfast.so.0
VERSION = $(shell sed -n 's/.*kHoldfastVersion = "\(.*\)".*/\1/p' src/core/base/version.h)

all: build/holdfast-server build/holdfast $(LIBRARIES)  ## build the programs and libraries (the default)

run:  ## install missing packages, build, start the server; ARGS='--port 7000' are its options
	@$(call install,$(BUILD_DEPS))
	@$(MAKE) $(SILENT) build/holdfast-server
	@exec build/holdfast-server $(ARGS)

format:  ## format the C++ files as lint requires
	$(Q)clang-format -i $(CXX_FILES)

lint:  ## clang-format, clang-tidy, cppcheck, include rules, sizes of functions and files
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS) $(LINT_DEPS))
	@$(MAKE) $(SILENT) -k -Otarget lint-includes lint-sizes lint-suites lint-mutations lint-format \
	  lint-cppcheck lint-tidy

deps:  ## install the missing Debian packages for build, tests, benchmarks, lint, packages
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS) $(LINT_DEPS) $(BENCH_DEPS) $(PACKAGE_DEPS) \
	  $(PACKAGE_TEST_DEPS) $(OLD_DEPS))

asan: build/asan/holdfast-server build/asan/holdfast  ## build both with ASan and UBSan, to build/asan

clean:  ## remove build/
	$(Q)rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1\t\2/p' $(filter %Makefile %.mk,$(MAKEFILE_LIST)) | \
	while IFS='	' read -r name what; do \
	  printf '  make %-18s %s\n' "$$name" "$$what"; done

# $(1): packages by Debian's names. Installs the missing ones; fetches apt's lists only if needed.
define install
missing=$$(printf '%s\n' $(1) | grep -vxF "$$(dpkg-query -W -f '$${db:Status-Status} $${Package}\n' $(1) \
    2>/dev/null | sed -n 's/^installed //p')"); \
if [ -z "$$missing" ]; then exit 0; fi; \
command -v apt-get >/dev/null || { echo "no apt-get; needed, by Debian's names:" $$missing; exit 0; }; \
sudo=$$([ "$$(id -u)" = 0 ] || command -v sudo) || { \
  echo "packages are missing, and this is neither root nor sudo. As root: apt-get install" $$missing >&2; \
  exit 1; }; \
apt="$$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0"; \
get="$$apt -y --no-install-recommends install"; \
echo "installing" $$missing; \
apt-get -s install $$missing >/dev/null 2>&1 || $$apt update; \
$$get $$missing || { $$apt update && $$get $$missing; }
endef

build/holdfast-server: $(call release,$(LIB) src/server.cc)
build/holdfast: $(call release,$(sort $(LIB) $(CLI) $(CLIENT)))
build/holdfast build/asan/holdfast: LIBS += $(CLI_LIBS)
build/holdfast-server build/holdfast build/sim build/quick-tests:
	$(call say,LINK,$@)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

$(LIBRARY_DIR)/libholdfast.a: $(call $(LIBRARY),$(CLIENT))
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(LIBRARY_DIR)/libholdfast.so: $(call $(LIBRARY),$(CLIENT))
	$(call say,LINK,$@)
	$(Q)$(if $(filter asan,$(LIBRARY)),$(ASAN_CXX) $(ASAN),$(CXX) $(RELEASE)) $(LDFLAGS) -shared \
	  -Wl,-soname,$(SONAME) -Wl,--as-needed -Wl,--exclude-libs,ALL -o $@ $^ $(CLIENT_LIBS)

# For the shared library. It hides the symbols of the engine, which programs do not need, and which could
# conflict with their own. All files of the server have these flags: one precompiled header serves them.
HIDDEN = $(call release,$(filter src/%,$(LIB)) $(CLI) src/server.cc)
PCH = build/release/precompiled.h.gch
$(HIDDEN): FLAGS += -fPIC -fvisibility=hidden
$(HIDDEN): INCLUDES += $(if $(CCACHE),,-Winvalid-pch -include $(PCH:.gch=))
# The list of headers that an object depends on (-MMD) lacks those of the precompiled one.
$(HIDDEN): $(if $(CCACHE),,$(PCH))
$(PCH): src/precompiled.h build/flags
	$(call say,PCH,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(FLAGS) $(RELEASE) $(filter-out -include %.h,$(INCLUDES)) $(CPPFLAGS) \
	  -MMD -MP -x c++-header -o $@ $<
$(call release,$(filter src/%,$(CLIENT))) $(call asan,$(CLIENT)): FLAGS += -fPIC

build/asan/holdfast-server: $(call asan,$(LIB) src/server.cc)
build/asan/holdfast: $(call asan,$(sort $(LIB) $(CLI) $(CLIENT)))
build/asan/holdfast-server build/asan/holdfast build/asan/unit-tests build/asan/integration-tests:
	$(call say,LINK,$@)
	$(Q)$(ASAN_CXX) $(ASAN) $(ASAN_LD) $(LDFLAGS) -Wl,--as-needed -o $@ $(call linked,$^) $(LIBS)

# The lines with flags: objects depend on them, and not on the whole Makefile.
FLAGS_NOW := $(shell grep -hE '(FLAGS|ASAN|RELEASE|OPT|DEBUG|INCLUDES|CXX)' Makefile tests/tests.mk \
  tests/asan.mk | cksum)
build/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' | cmp -s - $@ || echo '$(FLAGS_NOW)' >$@

build/release/%.o: %.cc build/flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(FLAGS) $(RELEASE) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<

build/release/src/units/%.o: build/units/%.cc build/flags
	$(call say,CXX,unit $*)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(FLAGS) -Wno-subobject-linkage $(RELEASE) $(INCLUDES) -I. $(CPPFLAGS) \
	  -MMD -MP -c -o $@ $<

# The commit, for --version. A build outside of git, as from a tarball, has none; COMMIT= sets one.
COMMIT := $(if $(wildcard .git),$(shell git describe --always --dirty --abbrev=12 --exclude '*' \
  2>/dev/null))
build/release/src/io/os/build_info.o build/asan/src/io/os/build_info.o: build/commit
build/release/src/io/os/build_info.o build/asan/src/io/os/build_info.o: \
  CPPFLAGS += -DHOLDFAST_COMMIT='"$(COMMIT)"'
.PHONY: FORCE
build/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@

build/asan/%.o: %.cc build/flags
	$(call say,CXX,$< (asan))
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(ASAN_CXX) $(FLAGS) $(ASAN) $(with_pch) $(INCLUDES) -Itests $(CPPFLAGS) -MMD -MP -c -o $@ $<

build/asan/src/units/%.o: build/units/%.cc build/flags
	$(call say,CXX,unit $* (asan))
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(ASAN_CXX) $(FLAGS) $(ASAN) $(with_pch) $(INCLUDES) -Itests -I. $(CPPFLAGS) \
	  -MMD -MP -c -o $@ $<

include packaging/install.mk packaging/packaging.mk bench/bench.mk \
  $(addsuffix .mk,tests/asan tests/fuzz/fuzz tests/tests tests/simulation/coverage tests/lint/lint \
  tests/model/model tests/chaos/chaos tests/soak/soak tests/mutation/mutation tests/folders/folders)
OTHER_BUILD = -path build/deb -prune -o
-include $(shell find build $(OTHER_BUILD) -name '*.d' -type f -print 2>/dev/null)

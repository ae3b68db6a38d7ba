# Builds Holdfast: `make run` on a bare Debian is enough. Output goes to build/ and nowhere else; objects of
# the release stand in build/release, those with sanitizers (which the tests use) in build/asan.
# V=1 shows every command; OPT, LTO (-flto=auto), CXX, CPPFLAGS, CXXFLAGS and LDFLAGS may be given.
BUILD_DEPS = g++ make pkg-config libuv1-dev libboost-program-options-dev libabsl-dev libspdlog-dev \
  libfmt-dev libxxhash-dev libboost-context-dev libssl-dev liblua5.1-0-dev lua-cjson-dev libisal-dev \
  liblzf-dev
# redis-tools has the real Redis server too (see REDIS_SERVER): the package that starts it is not needed.
# npm comes with some builds of Node.js itself, which Debian's would not go with.
TEST_DEPS = libhiredis-dev doctest-dev redis-tools python3 python3-redis python3-tooz nodejs node-redis \
  $(if $(shell command -v npm),,npm) golang-go golang-github-gomodule-redigo-dev php-cli php-redis \
  php-predis php-illuminate-cache ruby-redis libredis-perl
BENCH_DEPS = gnuplot-nox libbenchmark-dev valgrind $(if $(shell command -v java),,default-jre-headless)
LINT_DEPS = clang-format clang-tidy cppcheck universal-ctags python3

CXX = g++
OPT = -O2
PREFIX = /usr/local
FLAGS = -std=c++20 -g -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror $(CXXFLAGS)
# assert() stays on in the release: NDEBUG is never defined.
RELEASE = $(OPT) $(LTO)
ASAN = -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
  -D_GLIBCXX_ASSERTIONS
INCLUDES := -Isrc -Iinclude $(shell pkg-config --cflags spdlog lua5.1-c++ 2>/dev/null)
LIBS = $(shell pkg-config --libs libuv spdlog absl_flat_hash_set absl_flat_hash_map absl_btree lua5.1-c++ \
  libcrypto libisal) -llzf -l:liblua5.1-cjson.a -lboost_program_options -lboost_context
CCACHE := $(shell command -v ccache 2>/dev/null)
REDIS_SERVER = $(shell command -v redis-server || command -v redis-check-rdb)

LIB = $(wildcard src/core/*.cc src/io/*.cc)
CLI = $(wildcard src/cli/*.cc)
UNIT = $(wildcard tests/unit/*.cc tests/transcripts/*.cc tests/simulation/*.cc)
INTEGRATION = $(wildcard tests/integration/*.cc)
LOAD = $(wildcard bench/load/*.cc)
BENCH = build/bench/load build/bench/null-server build/bench/micro
BENCH_ENV = HOLDFAST_SERVER=build/holdfast-server REDIS_SERVER=build/redis-server
CXX_FILES = $(shell find $(wildcard src include tests bench) -name '*.h' -o -name '*.cc')
release = $(patsubst %.cc,build/release/%.o,$(1))
asan = $(patsubst %.cc,build/asan/%.o,$(1))
tidy = $(patsubst %.cc,build/lint/%.tidy,$(1))
TEST_PROGRAMS = build/asan/unit-tests $(if $(INTEGRATION),build/asan/integration-tests)

Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) '$(2)')
SILENT = $(if $(V),,--silent)
ifeq ($(MAKELEVEL),0)  # all cores, unless -j says otherwise
MAKEFLAGS += -j$(shell nproc) --no-print-directory
endif
.PHONY: all run test lint format deps asan install clean help bench bench-quick bench-scale bench-micro
.PHONY: bench-instructions bench-deps lint-includes lint-sizes lint-format lint-cppcheck lint-tidy
.DELETE_ON_ERROR:

all: build/holdfast-server build/holdfast  ## build the server and the command `holdfast` (the default)

run:  ## install what is missing, build, start the server; ARGS='--port 7000' are its options
	@$(call install,$(BUILD_DEPS))
	@$(MAKE) $(SILENT) all
	@exec build/holdfast-server $(ARGS)

# Not at once with lint, when both are asked for: tests with deadlines want a quiet machine.
test: | $(filter lint,$(MAKECMDGOALS))  ## all tests under ASan and UBSan; ARGS='-tc=LOCK*' picks some
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS))
	@$(MAKE) $(SILENT) asan $(TEST_PROGRAMS) build/redis-server
	@HOLDFAST_SERVER=build/asan/holdfast-server REDIS_SERVER=build/redis-server \
	  HOLDFAST_TRANSCRIPTS=tests/transcripts tests/run.sh $(TEST_PROGRAMS) -- $(ARGS)

format:  ## put the C++ files into the form that lint asks for
	$(Q)clang-format -i $(CXX_FILES)

lint:  ## clang-format, clang-tidy, cppcheck, include rules, sizes of functions and files
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS) $(LINT_DEPS))
	@$(MAKE) $(SILENT) -k -Otarget lint-includes lint-sizes lint-format lint-cppcheck lint-tidy

deps:  ## install the Debian packages that are missing: to build, test, measure and lint
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS) $(LINT_DEPS) $(BENCH_DEPS))

asan: build/asan/holdfast-server build/asan/holdfast  ## build both with ASan and UBSan, to build/asan

bench: bench-deps  ## Holdfast beside its rivals, about 11 minutes; ARGS='--pairs 3 GET' for some lines
	@$(BENCH_ENV) bench/run.py $(ARGS)

bench-quick: bench-deps  ## the same in two minutes: one run of each, 1 million locks
	@$(BENCH_ENV) bench/run.py --pairs 1 --millions 1 $(ARGS)

bench-scale: bench-deps  ## costs against numbers of entries, connections, waiters, holders; 2 servers
	@$(BENCH_ENV) bench/scale.py $(ARGS)

bench-micro: bench-deps  ## the core alone, in nanoseconds
	@build/bench/micro $(ARGS)

bench-instructions: bench-deps  ## the core alone, in instructions
	@bench/instructions.py

bench-deps:
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS) $(BENCH_DEPS))
	@$(MAKE) $(SILENT) all build/redis-server $(BENCH)
	@bench/rivals.sh

install: all  ## copy both to $(DESTDIR)$(PREFIX)/bin; PREFIX is /usr/local unless given
	$(Q)install -D -m 755 build/holdfast $(DESTDIR)$(PREFIX)/bin/holdfast
	$(Q)install -D -m 755 build/holdfast-server $(DESTDIR)$(PREFIX)/bin/holdfast-server

clean:  ## remove build/
	$(Q)rm -rf build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/\1\t\2/p' Makefile | while IFS='	' read -r name what; do \
	  printf '  make %-18s %s\n' "$$name" "$$what"; done

# $(1): packages by Debian's names. Installs those not there; fetches apt's lists only when it must.
define install
missing=$$(printf '%s\n' $(1) | grep -vxF "$$(dpkg-query -W -f '$${db:Status-Status} $${Package}\n' $(1) \
    2>/dev/null | sed -n 's/^installed //p')"); \
if [ -z "$$missing" ]; then exit 0; fi; \
command -v apt-get >/dev/null || { echo "no apt-get; needed, by Debian's names:" $$missing; exit 0; }; \
sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
apt="$$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0"; \
get="$$apt -y --no-install-recommends install"; \
echo "installing" $$missing; \
apt-get -s install $$missing >/dev/null 2>&1 || $$apt update; \
$$get $$missing || { $$apt update && $$get $$missing; }
endef

build/holdfast-server: $(call release,$(LIB) src/server.cc)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

build/holdfast: $(call release,$(LIB) $(CLI))
	$(call say,LINK,$@)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

build/asan/holdfast-server: $(call asan,$(LIB) src/server.cc)
build/asan/holdfast: $(call asan,$(LIB) $(CLI))
build/asan/unit-tests: $(call asan,$(LIB) $(UNIT))
build/asan/integration-tests: $(call asan,$(INTEGRATION) tests/unit/main.cc)
build/asan/integration-tests: LIBS += -lhiredis
build/asan/holdfast-server build/asan/holdfast build/asan/unit-tests build/asan/integration-tests:
	$(call say,LINK,$@)
	$(Q)$(CXX) $(ASAN) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

build/bench/load: $(call release,$(LOAD))
build/bench/null-server: $(call release,bench/null_server.cc)
build/bench/micro: $(call release,$(LIB) bench/micro.cc bench/load/request.cc bench/load/connection.cc)
build/bench/micro: LIBS += -lbenchmark
$(BENCH):
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

build/release/bench/%.o: INCLUDES += -Ibench

build/release/%.o: %.cc Makefile
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(FLAGS) $(RELEASE) $(INCLUDES) $(CPPFLAGS) -MMD -MP -c -o $@ $<

build/asan/%.o: %.cc Makefile
	$(call say,CXX,$< (asan))
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(FLAGS) $(ASAN) $(INCLUDES) -Itests $(CPPFLAGS) -MMD -MP -c -o $@ $<

# It changes stacks, which it tells AddressSanitizer; in its own code that would look for its frames on the
# other one.
build/asan/src/core/fiber.o: ASAN += -fno-sanitize=address -DHOLDFAST_ASAN

# The program looks at its own name: called redis-server it is the server, called redis-check-rdb it is not.
build/redis-server:
	@mkdir -p $(@D)
	$(Q)ln -sf $(REDIS_SERVER) $@

lint-includes:
	$(call say,LINT,include rules)
	$(Q)python3 tests/lint/include_rules.py

lint-sizes:
	$(call say,LINT,sizes)
	$(Q)python3 tests/lint/sizes.py

lint-format:
	$(call say,LINT,clang-format)
	$(Q)clang-format --dry-run -Werror $(CXX_FILES)

lint-cppcheck:
	$(call say,LINT,cppcheck)
	@mkdir -p build/lint/cppcheck
	$(Q)cppcheck --quiet --std=c++20 --language=c++ --enable=warning,performance,portability --inline-suppr \
	  --suppressions-list=tests/lint/cppcheck.txt --error-exitcode=1 --cppcheck-build-dir=build/lint/cppcheck \
	  -Isrc -Iinclude src include

# A stamp for each file, so that only what has changed is checked again.
lint-tidy: $(call tidy,$(wildcard src/*.cc src/*/*.cc)) ; @:
build/lint/%.tidy: %.cc .clang-tidy Makefile
	$(call say,TIDY,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++20 $(INCLUDES) -MM -MP -MT $@ -MF $(@:.tidy=.d) $<
	$(Q)clang-tidy --quiet $< -- -std=c++20 -Wall -Wextra $(INCLUDES) 2>$(@:.tidy=.log) || \
	  { grep -v 'generated\.$$' $(@:.tidy=.log); exit 1; }
	@touch $@

-include $(shell find build -name '*.d' -type f 2>/dev/null)

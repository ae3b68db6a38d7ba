# The tests: part of the Makefile.
# redis-tools has the real Redis server too (see REDIS_SERVER): the package that starts it is not needed.
# npm comes with some builds of Node.js itself, which Debian's would not go with.
TEST_DEPS = $(ASAN_DEPS) doctest-dev redis-tools python3 python3-redis python3-tooz python3-kombu python3-limits \
  python3-portalocker nodejs node-redis $(if $(shell command -v npm),,npm) golang-go \
  golang-github-gomodule-redigo-dev php-cli php-redis php-predis php-illuminate-cache \
  php-illuminate-redis php-symfony-cache php-symfony-lock php-symfony-rate-limiter \
  php-symfony-semaphore ruby-redis ruby-sidekiq libredis-perl openssl tmux chromium chromium-driver \
  python3-selenium python3-prometheus-client fonts-dejavu-core zsh fish mandoc man-db

REDIS_SERVER = $(shell command -v redis-server || command -v redis-check-rdb)

SIM = $(wildcard tests/simulation/redlock_*.cc tests/simulation/ticket_*.cc) tests/unit/main.cc
QUICK = $(wildcard tests/unit/*.cc tests/transcripts/*.cc)
UNIT = $(QUICK) $(wildcard tests/simulation/*.cc) tests/simulation/server/syntax_words.cc
INTEGRATION = $(wildcard tests/integration/*.cc)
quick = $(call objects,quick,$(1))
TEST_PROGRAMS = build/asan/server-simulation build/asan/unit-tests $(if $(INTEGRATION),build/asan/integration-tests)
.PHONY: test test-all test-build test-deps test-quick test-downgrade old-server pictures sim sim-tickets sim-server

# Not at once with lint, when both are asked for: tests with deadlines want a quiet machine.
test: test-build  ## what a change must pass, under ASan and UBSan; ARGS='-tc=LOCK*' or SUITES='...' picks some
	@tests/run.py $(if $(SUITES),--only $(SUITES)) $(ARGS)

test-all: test-build  ## every suite, about 75 minutes; RESUME=1 leaves out those that have passed on this tree
	@tests/run.py --all $(if $(RESUME),--resume)

test-build: test-deps
	@$(MAKE) $(SILENT) asan $(TEST_PROGRAMS) build/redis-server build/prometheus

test-deps: | $(filter lint,$(MAKECMDGOALS))
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS))

pictures: build/holdfast-server build/holdfast build/prometheus  ## make the pictures in docs/pictures anew
	@mkdir -p docs/pictures
	@HOLDFAST_SERVER=$< HOLDFAST_PICTURES=docs/pictures tests/integration/dashboard_test.py pictures
	@HOLDFAST_SERVER=$< HOLDFAST_PICTURES=docs/pictures tests/integration/three_questions_test.py page

test-quick:  ## unit tests and transcripts only, without sanitizers; ARGS='-tc=LOCK*' selects some
	@$(call install,$(BUILD_DEPS) $(ASAN_DEPS) doctest-dev)
	@$(MAKE) $(SILENT) build/quick-tests
	@HOLDFAST_TRANSCRIPTS=tests/transcripts build/quick-tests $(ARGS)

# The commit of the first release; tests/folders/README.md has a list.
OLD_COMMIT = efe9ab9
# The packages that it needs in addition.
OLD_DEPS = liblzf-dev
OLD = build/old/$(OLD_COMMIT)
test-downgrade: build/holdfast-server old-server  ## this version's folder in an earlier server; OLD_COMMIT=...
	@HOLDFAST_SERVER=$< tests/folders/downgrade_test.py

# Without optimisation: the server runs once.
old-server: $(OLD)/build/holdfast-server
	@ln -sf $(OLD_COMMIT)/build/holdfast-server build/old/holdfast-server

# With a precompiled header that its files do not know, a compilation takes an eighth of the time.
$(OLD)/build/holdfast-server: tests/folders/old_server.h tests/folders/old_compiler.sh
	@$(call install,$(OLD_DEPS))
	$(Q)rm -rf $(OLD) && mkdir -p $(OLD)
	$(Q)git archive $(OLD_COMMIT) | tar -x -C $(OLD)
	$(Q)cd $(OLD) && $(ASAN_CXX) -std=c++20 -O0 -g -w -fPIC -Isrc $(filter-out -I%,$(INCLUDES)) -Xclang \
	  -fpch-instantiate-templates -x c++-header -o old_server.pch $(CURDIR)/tests/folders/old_server.h
	$(Q)$(MAKE) -C $(OLD) build/holdfast-server OPT=-O0 CXXFLAGS=-w \
	  CXX='$(CURDIR)/tests/folders/old_compiler.sh $(CURDIR)/$(OLD)/old_server.pch $(ASAN_CXX) -fPIC'

sim: build/sim  ## random schedules of clients on several servers; SCHEDULES=1000000, SEED=n is the first
	@HOLDFAST_SEED='$(SEED)' HOLDFAST_SCHEDULES=$(or $(SCHEDULES),$(if $(SEED),1,1000000)) $< -tc='redlock*'

sim-tickets: build/sim  ## waits by ticket in named and random cuts; SCHEDULES=1000 runs, SEED=n is the first
	@HOLDFAST_SEED='$(or $(SEED),1)' HOLDFAST_SCHEDULES=$(or $(SCHEDULES),1000) HOLDFAST_CASES=all \
	  $< -tc='tickets simulation*'

sim-server: build/sim-server  ## the whole server on a simulated disk; SEED=n is the first seed, STEPS=m the steps
	@$< '$(SEED)' '$(or $(STEPS),1000000)'

# The server with a simulated libuv, clock and machine, and without HTTP.
SIM_SERVER = $(filter-out src/io/http/%.cc src/io/os/clock.cc src/io/os/cores.cc src/io/os/host_info.cc,$(LIB)) \
  $(filter-out %/server_sim.cc %_test.cc,$(wildcard tests/simulation/server/*.cc)) tests/simulation/frame.cc
SIM_LIBS = -Wl,--wrap=pthread_mutex_lock $(filter-out -luv,$(LIBS))
build/release/tests/simulation/%.o build/release/src/units/tests-%.o: INCLUDES += -Itests
build/sim-server: $(call release,$(SIM_SERVER) tests/simulation/server/server_sim.cc)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(SIM_LIBS)

build/asan/server-simulation: $(call asan,$(SIM_SERVER) tests/simulation/server/server_sim_test.cc \
  tests/unit/main.cc)
	$(call say,LINK,$@)
	$(Q)$(ASAN_CXX) $(ASAN) $(ASAN_LD) $(LDFLAGS) -Wl,--as-needed -o $@ $(call linked,$^) $(SIM_LIBS)

build/sim: $(call release,$(sort $(LIB) $(CLIENT) $(SIM)))
build/quick-tests: $(call release,$(sort $(LIB) $(CLIENT)) $(CLI_PARTS)) $(call quick,$(QUICK))
build/asan/unit-tests: $(call asan,$(sort $(LIB) $(CLIENT) $(UNIT)) $(CLI_PARTS))
build/asan/integration-tests: $(call asan,$(INTEGRATION) $(CLIENT) tests/unit/main.cc)

# The tests' own objects: without optimisation, as they run once, and from one precompiled header. $(1): the kind
# of build, $(2): flags, $(3): objects.
define test_objects
$(3): TEST_FLAGS = $(2) -include-pch build/$(1)/precompiled.h.pch
$(3): build/$(1)/precompiled.h.pch
build/$(1)/precompiled.h.pch: tests/precompiled.h build/flags
	$(call say,PCH,$$< ($(1)))
	@mkdir -p $$(@D)
	$$(Q)$$(ASAN_CXX) $$(FLAGS) $(2) -Xclang -fpch-instantiate-templates $$(INCLUDES) -Itests $$(CPPFLAGS) \
	  -MMD -MP -MF $$(@:.pch=.d) -MT $$@ -x c++-header -o $$@ $$<
endef
TEST_SOURCES = $(filter-out %/main.cc $(LARGE_DATA),$(UNIT) $(INTEGRATION) $(FUZZ) \
  $(wildcard tests/simulation/server/*.cc))
# Optimised, and without the precompiled header: they parse many MiB, or have many clients.
LARGE_DATA = $(addprefix tests/integration/,client.cc client_transport_peer_test.cc \
  client_transport_test.cc chaos_proxy.cc crowd.cc load_test.cc workload_test.cc)
$(call asan,$(LARGE_DATA)): TEST_FLAGS = $(ASAN_TESTS) -O1
build/asan/tests/%.o build/asan/src/units/tests-%.o: ASAN = $(or $(TEST_FLAGS),$(ASAN_TESTS))
$(eval $(call test_objects,asan,$(ASAN_TESTS),$(call asan,$(TEST_SOURCES))))
$(eval $(call test_objects,quick,$(QUICK_TESTS),$(call quick,$(TEST_SOURCES))))

define compile_quick
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(ASAN_CXX) $(FLAGS) $(or $(TEST_FLAGS),$(QUICK_TESTS)) $(INCLUDES) -Itests -I. $(CPPFLAGS) \
	  -MMD -MP -c -o $@ $<
endef
build/quick/%.o: %.cc build/flags
	$(call say,CXX,$< (quick))
	$(compile_quick)
build/quick/src/units/%.o: build/units/%.cc build/flags
	$(call say,CXX,unit $* (quick))
	$(compile_quick)

# The program's name selects its function: as redis-server it is the server, as redis-check-rdb it is not.
build/redis-server:
	@mkdir -p $(@D)
	$(Q)ln -sf $(REDIS_SERVER) $@


# Prometheus and promtool, without the service that the package would start. apt's lists may be missing.
build/prometheus:
	$(call say,FETCH,$@)
	@rm -rf $@.new && mkdir -p $@.new
	$(Q)cd $@.new && { apt-get -qq download prometheus 2>/dev/null || \
	  { apt-get -qq update && apt-get -qq download prometheus; }; }
	$(Q)dpkg -x $@.new/prometheus_*.deb $@.new && rm $@.new/prometheus_*.deb && mv $@.new $@

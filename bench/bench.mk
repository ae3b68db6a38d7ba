# The benchmarks: part of the Makefile.
BENCH_DEPS = gnuplot-nox libbenchmark-dev valgrind $(if $(shell command -v java),,default-jre-headless)
LOAD = $(wildcard bench/load/*.cc)
BENCH = build/bench/load build/bench/null-server build/bench/relay build/bench/micro build/bench/quorum
BENCH_ENV = HOLDFAST_SERVER=build/holdfast-server REDIS_SERVER=build/redis-server
.PHONY: bench bench-quick bench-scale bench-attacks bench-observability bench-capacity \
  bench-micro bench-instructions bench-cache-lines bench-deps

bench: bench-deps  ## compare Holdfast with its rivals, about 16 minutes; ARGS='--pairs 3 GET' for some lines
	@$(BENCH_ENV) bench/run.py $(ARGS)

bench-quick: bench-deps  ## the same in 2 minutes: one run of each line, 1 million locks
	@$(BENCH_ENV) bench/run.py --pairs 1 --millions 1 $(ARGS)

bench-scale: bench-deps  ## cost by the number of entries, connections, waiters and holders; two servers
	@$(BENCH_ENV) bench/scale.py $(ARGS)

bench-attacks: bench-deps  ## latency of other clients while one client attacks, beside Redis
	@$(BENCH_ENV) bench/under_attack.py $(ARGS)

bench-observability: bench-deps  ## cost of a scrape of a full server, and memory of the ring of events
	@$(BENCH_ENV) bench/observability.py $(ARGS)

bench-capacity: bench-deps  ## memory and disk of a lock, a holder, a waiter and a connection
	@$(BENCH_ENV) bench/capacity.py $(ARGS)

bench-micro: bench-deps  ## the core alone, in nanoseconds
	@build/bench/micro $(ARGS)

bench-instructions: bench-deps  ## the core alone, in instructions
	@bench/instructions.py

bench-cache-lines: bench-deps  ## the core alone, in cache lines of keys that no cache holds
	@bench/cache_lines.py

bench-deps:
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS) $(BENCH_DEPS))
	@$(MAKE) $(SILENT) all build/redis-server $(BENCH)
	@bench/rivals.sh

build/bench/load: $(call release,$(LOAD))
build/bench/null-server: $(call release,bench/null_server.cc)
build/bench/relay: $(call release,bench/relay.cc)
build/bench/micro: $(call release,$(LIB) bench/micro.cc bench/load/request.cc bench/load/connection.cc)
build/bench/micro: LIBS += -lbenchmark
build/bench/quorum: $(call release,$(CLIENT) bench/quorum.cc)
$(BENCH):
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

build/release/bench/%.o: INCLUDES += -Ibench

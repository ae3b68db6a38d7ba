# The chaos test: part of the Makefile. Namespaces need root; without them there are fewer kinds of faults.
CHAOS_DEPS = python3 iproute2 nftables libfaketime util-linux
CHAOS_SECONDS = 60
TEST_DEPS += $(CHAOS_DEPS)
.PHONY: chaos cuts

chaos:  ## check real servers and clients under faults; MINUTES=30, SEED=n, ARGS='--servers 5'
	@$(call install,$(BUILD_DEPS) $(CHAOS_DEPS))
	@$(MAKE) $(SILENT) build/holdfast-server build/chaos-client build/slow-fsync.so
	@HOLDFAST_SERVER=build/holdfast-server tests/chaos/chaos.py --seconds $(CHAOS_SECONDS) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

cuts:  ## measure how grants go on while clients lose packets to some servers; MINUTES=30, SEED=n, ARGS='--only each'
	@$(call install,$(BUILD_DEPS) $(CHAOS_DEPS))
	@$(MAKE) $(SILENT) build/holdfast-server build/chaos-client
	@HOLDFAST_SERVER=build/holdfast-server tests/chaos/cuts.py $(if $(MINUTES),--minutes $(MINUTES) --mixed) \
	  $(if $(SEED),--seed $(SEED)) $(ARGS)

build/slow-fsync.so build/asan/slow-fsync.so: tests/chaos/slow_fsync.cc
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(FLAGS) -O1 -fPIC -shared -o $@ $<

build/chaos-client: $(call release,tests/chaos/client.cc $(CLIENT))
	$(call say,LINK,$@)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

# `make test` has a short chaos test.
build/asan/integration-tests: | build/asan/chaos-client build/asan/slow-fsync.so
build/asan/chaos-client: $(call asan,tests/chaos/client.cc $(CLIENT))
	$(call say,LINK,$@)
	$(Q)$(ASAN_CXX) $(ASAN) $(ASAN_LD) $(LDFLAGS) -Wl,--as-needed -o $@ $(call linked,$^) $(LIBS)

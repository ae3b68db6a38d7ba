# Mutations of the source that the tests must detect: part of the Makefile.
.PHONY: mutations lint-mutations

# Not part of `make test`: each mutation is compiled, linked and run.
mutations:  ## check that the tests detect wrong code; ARGS='--named journal' picks some
	@$(call install,$(BUILD_DEPS) $(TEST_DEPS))
	+@python3 tests/mutation/mutate.py $(ARGS)

lint-mutations:
	$(call say,LINT,list of mutations)
	$(Q)python3 tests/mutation/mutate.py --check

# The tests that `make test-quick` lacks, without sanitizers.
build/quick-simulation: $(call release,$(sort $(LIB) $(CLIENT))) \
  $(call quick,$(filter-out $(SIM),$(wildcard tests/simulation/*.cc)) tests/unit/main.cc)
build/quick-integration-tests: $(call release,$(CLIENT)) $(call quick,$(INTEGRATION) tests/unit/main.cc)
build/quick-simulation build/quick-integration-tests:
	$(call say,LINK,$@)
	$(Q)$(CXX) $(RELEASE) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

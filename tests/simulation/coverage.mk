# What the simulations reach of the source: part of the Makefile. Objects with counters are in build/coverage.
COVERAGE = -O1 -g1 --coverage
coverage = $(patsubst %.cc,build/coverage/%.o,$(1))
COVERED = build/coverage/sim-server build/coverage/simulations
.PHONY: sim-coverage

sim-coverage:  ## lines of src/core and src/io that the simulations run; STEPS=m and SEED=n of the whole server
	@$(call install,$(BUILD_DEPS) doctest-dev python3)
	@$(MAKE) $(SILENT) $(COVERED)
	@tests/simulation/coverage.py --seed '$(or $(SEED),1)' --steps '$(or $(STEPS),200000)' $(ARGS)

build/coverage/sim-server: $(call coverage,$(SIM_SERVER) tests/simulation/server/server_sim.cc)
build/coverage/sim-server: LIBS := $(SIM_LIBS)
build/coverage/simulations: $(call coverage,$(sort $(LIB) $(CLIENT) $(SIM) $(wildcard tests/simulation/*.cc)))
$(COVERED):
	$(call say,LINK,$@)
	$(Q)$(CXX) $(COVERAGE) $(LDFLAGS) -Wl,--as-needed -Wl,-u,__gcov_dump -o $@ $^ $(LIBS)

build/coverage/%.o: %.cc Makefile tests/simulation/coverage.mk
	$(call say,CXX,$< (coverage))
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CXX) $(FLAGS) $(COVERAGE) $(INCLUDES) -Itests $(CPPFLAGS) -MMD -MP -c -o $@ $<

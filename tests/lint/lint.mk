# The checks of `make lint`: part of the Makefile.
LINT_DEPS = clang-format clang-tidy cppcheck universal-ctags python3
LINT_BUILD = build/lint$(if $(ANALYZER),-deep)
tidy = $(patsubst %,$(LINT_BUILD)/%.tidy,$(sort $(foreach file,$(1),$(or $(unit_of.$(file):%=units/%),$(file:.cc=)))))
.PHONY: lint-all lint-deep lint-tidy lint-tidy-all lint-tidy-files lint-includes lint-commands lint-sizes lint-suites \
  lint-format lint-cppcheck each-file-alone

lint-includes:
	$(call say,LINT,include rules)
	$(Q)python3 tests/lint/include_rules.py

lint-commands:
	$(call say,LINT,rows of commands)
	$(Q)python3 tests/lint/command_rows.py

lint-sizes:
	$(call say,LINT,sizes)
	$(Q)python3 tests/lint/sizes.py

lint-suites:
	$(call say,LINT,table of suites)
	$(Q)python3 -B tests/runner/table.py

lint-format:
	$(call say,LINT,clang-format)
	$(Q)clang-format --dry-run -Werror $(CXX_FILES)

# The changed files, as by clang-tidy.
lint-cppcheck:
	$(call say,LINT,cppcheck)
	@mkdir -p build/lint/cppcheck
	$(Q)files='$(TIDY_FILES)'; [ -z "$$files" ] || cppcheck --quiet --std=c++20 --language=c++ \
	  --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -Isrc -Iinclude \
	  --suppressions-list=tests/lint/cppcheck.txt --cppcheck-build-dir=build/lint/cppcheck $$files

lint-all:  ## lint with clang-tidy and cppcheck on all files, about 15 minutes on 2 cores
	@$(MAKE) $(SILENT) lint TIDY_FILES='$(TIDY_ALL)'

lint-deep:  ## the same with clang-tidy's analyzer, which takes 1.5 times as long
	@$(MAKE) $(SILENT) -k -Otarget lint-tidy-files ANALYZER=1 TIDY_FILES='$(TIDY_ALL)'

lint-tidy-all:
	@$(MAKE) $(SILENT) -k -Otarget lint-tidy-files lint-cppcheck TIDY_FILES='$(call portion,$(TIDY_ALL),10)'

# $(1): files, $(2): a number. All files; with PORTION=n so many of them, others for the next n.
portion = $(if $(PORTION),$(shell printf '%s\n' $(1) | awk -v part=$(PORTION) -v size=$(2) '{ file[NR] = $$0 } \
  END { for (n = 0; n < size; n++) print file[(part * size + n) % NR + 1] }'),$(1))

# The changed files, see changed.py. clang-tidy reads those of one unit (src/units.mk) as one, in a seventh of the
# time. Each has a stamp, so that only files changed since then are checked again.
TIDY_ALL = $(wildcard src/*.cc src/*/*.cc src/*/*/*.cc)
TIDY_FILES = $(shell python3 tests/lint/changed.py)
lint-tidy:
	@$(MAKE) $(SILENT) -k -Otarget lint-tidy-files TIDY_FILES='$(TIDY_FILES)'
ifeq ($(origin TIDY_FILES),command line)
lint-tidy-files: $(call tidy,$(TIDY_FILES)) ; @:
endif
define run_tidy
	$(call say,TIDY,$(1))
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++20 $(INCLUDES) -I. -MM -MP -MT $@ -MF $(@:.tidy=.d) $<
	$(Q)clang-tidy --quiet --checks=$(2)$(if $(ANALYZER),,-clang-analyzer-*) $< -- -std=c++20 -Wall -Wextra \
	  $(INCLUDES) -I. 2>$(@:.tidy=.log) || \
	  { grep -v 'generated\.$$' $(@:.tidy=.log); exit 1; }
	@touch $@
endef
$(LINT_BUILD)/units/%.tidy: $(LINT_BUILD)/units/%.cc .clang-tidy
	$(call run_tidy,unit $*,-bugprone-suspicious-include$(comma))
$(LINT_BUILD)/%.tidy: %.cc .clang-tidy
	$(call run_tidy,$<,)
$(UNIT_NAMES:%=$(LINT_BUILD)/units/%.cc): $(LINT_BUILD)/units/%.cc: FORCE
	$(call write_unit,$(filter $(TIDY_FILES),$(files_of.$*)))

# The build joins files to units (src/units.mk). So this checks that each file includes what it needs.
ALONE = $(TIDY_ALL) $(filter %.cc,$(UNIT) $(INTEGRATION) $(FUZZ) $(wildcard tests/simulation/server/*.cc))
each-file-alone:
	$(call say,ALONE,$(words $(call portion,$(ALONE),25)) files)
	$(Q)python3 tests/lint/alone.py --jobs $(or $(JOBS),1) --compiler \
	  '$(ASAN_CXX) $(FLAGS) -Wno-sign-conversion $(INCLUDES) -Itests $(CPPFLAGS)' $(call portion,$(ALONE),25)

# Units: files of a folder that the compiler reads as one, so that it reads their headers once: part of the
# Makefile. A complete build takes half of the time that way. Each file still compiles alone, which each-file-alone
# checks in `make test-all`. A file that differs from the last commit leaves its unit, so that after its next change
# only this file is compiled.
UNITS = yes
LOOSE := $(if $(wildcard .git),$(shell { git diff --name-only HEAD; git ls-files --others --exclude-standard; } \
  2>/dev/null | grep -E '^(src|tests)/.*\.cc$$'))
# These have flags of their own, or a program has another file in their place, or curses.h defines common words as
# macros.
LOOSE += src/core/base/fiber.cc $(addprefix src/io/os/,build_info.cc clock.cc cores.cc host_info.cc) \
  src/cli/holdfast.cc src/cli/top.cc src/cli/top_screen.cc src/proxy/program.cc

# $(1): the name of the unit, $(2): its files.
unit = $(eval UNIT_NAMES += $(1))$(eval files_of.$(1) := $(filter-out $(LOOSE) $(taken),$(2)))$(eval \
  taken += $(2))$(foreach file,$(files_of.$(1)),$(eval unit_of.$(file) := $(1)))
ifeq ($(UNITS),yes)
# Those of large folders are chosen so that a unit compiles in about 10 s.
$(call unit,core-handlers-1,$(wildcard src/core/handlers/cmd_[a-g]*.cc))
$(call unit,core-handlers-2,$(wildcard src/core/handlers/cmd_[h-l]*.cc))
$(call unit,core-handlers-3,$(wildcard src/core/handlers/cmd_[m-r]*.cc))
$(call unit,core-handlers-4,$(wildcard src/core/handlers/*.cc))
$(call unit,core-script-1,$(wildcard src/core/script/[a-k]*.cc))
$(call unit,cli-parts,$(CLI_PARTS))
# These include the server's files, whose Result is another than that of the library for programs.
$(call unit,cli-files,$(addprefix src/cli/,backup_file.cc check.cc check_snapshot.cc restore.cc))
$(call unit,cli-1,$(wildcard src/cli/[a-g]*.cc))
$(foreach folder,$(patsubst src/%/,%,$(sort $(dir $(wildcard src/*/*.cc src/*/*/*.cc)))),\
  $(call unit,$(subst /,-,$(folder)),$(wildcard src/$(folder)/*.cc)))
include tests/units.mk
endif

# $(1): the kind of build, $(2): sources. The objects of the sources; a source in a unit has that of its unit.
objects = $(sort $(foreach file,$(2),build/$(1)/$(if $(unit_of.$(file)),src/units/$(unit_of.$(file)),$(file:.cc=)).o))

define write_unit
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(1) | cmp -s - $@ || printf '#include "%s"\n' $(1) >$@
endef
$(UNIT_NAMES:%=build/units/%.cc): build/units/%.cc: FORCE
	$(call write_unit,$(files_of.$*))

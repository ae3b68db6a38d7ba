# The scripts of redis-scripts/ inside of programs: part of the Makefile.
SCRIPTS = $(wildcard redis-scripts/*.lua)
SCRIPTS_CC = build/generated/redis_scripts.cc
CLIENT += $(SCRIPTS_CC)

$(SCRIPTS_CC): $(SCRIPTS) src/client/scripts.mk
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ echo '#include "client/transport/redis_script.h"'; echo 'namespace holdfast::client {'; \
	  echo 'std::string_view script_file(std::string_view name) {'; \
	  for file in $(SCRIPTS); do \
	    printf '  if (name == "%s") return R"lua(' "$$(basename $$file .lua)"; cat $$file; echo ')lua";'; \
	  done; echo '  return {};'; echo '}'; echo '}'; } >$@

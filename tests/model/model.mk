# The models of tokens, renewals and waits by ticket, checked by spin: part of the Makefile.
MODEL_DEPS = spin gcc libc6-dev
.PHONY: model model-deps

model:  ## check the protocol of quorums and tokens for every order of events; the check must find known flaws
	@$(MAKE) $(SILENT) model-deps
	@tests/model/check.sh

model-deps:
	@$(call install,$(MODEL_DEPS))

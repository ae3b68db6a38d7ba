# The models of tokens and renewals, checked by spin: part of the Makefile.
MODEL_DEPS = spin gcc libc6-dev
.PHONY: model

model:  ## check the protocol of quorums and tokens for every order of events; the check must find known flaws
	@$(call install,$(MODEL_DEPS))
	@tests/model/check.sh

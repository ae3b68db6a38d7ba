# The model of the tokens, checked by spin: part of the Makefile.
MODEL_DEPS = spin gcc libc6-dev
.PHONY: model

model:  ## check the protocol of quorums and tokens for every order of events, and that flaws are found
	@$(call install,$(MODEL_DEPS))
	@tests/model/check.sh

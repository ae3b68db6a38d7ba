# A long run: part of the Makefile.
.PHONY: soak

soak: build/holdfast-server  ## mixed work for an hour, after which nothing has grown; ARGS='--seconds 60 --valgrind memcheck'
	@HOLDFAST_SERVER=$< tests/soak/soak.py $(ARGS)

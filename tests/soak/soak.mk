# The soak test, a long run: part of the Makefile.
.PHONY: soak

# Shorter, or under valgrind: ARGS='--seconds 300 --valgrind memcheck'
soak: build/holdfast-server  ## mixed work for an hour; memory, descriptors and entries must not grow
	@HOLDFAST_SERVER=$< tests/soak/soak.py $(ARGS)

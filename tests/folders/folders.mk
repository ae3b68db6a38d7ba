# The command of an earlier version, with its library: part of the Makefile. tests.mk builds the server.
.PHONY: old-client
old-client: $(OLD)/build/holdfast
	@ln -sf $(OLD_COMMIT)/build/holdfast build/old/holdfast

$(OLD)/build/holdfast: $(OLD)/build/holdfast-server
	$(Q)$(MAKE) -C $(OLD) build/holdfast OPT=-O0 CXXFLAGS=-w \
	  CXX='$(CURDIR)/tests/folders/old_compiler.sh $(CURDIR)/$(OLD)/old_server.pch $(ASAN_CXX) -fPIC'

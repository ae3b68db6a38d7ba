# `make install` and `make uninstall`: part of the Makefile.
SHARE = $(DESTDIR)$(PREFIX)/share
SYSCONFDIR = $(if $(filter /usr /usr/local,$(PREFIX)),,$(PREFIX))/etc
CONFIG = $(DESTDIR)$(SYSCONFDIR)/holdfast/holdfast.conf
UNITS = holdfast-server.service holdfast-server@.service holdfast-server.socket holdfast-proxy.service
UNIT_DIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
ZSH_FUNCTIONS = site-functions
install: all man install-library install-completions build/holdfast.conf  ## copy all to DESTDIR/PREFIX
	$(Q)install -D -m 755 -s --strip-program=$(STRIP) -t $(DESTDIR)$(PREFIX)/bin build/holdfast \
	  build/holdfast-server
	$(Q)for page in build/man/*; do install -D -m 644 -t $(SHARE)/man/man$${page##*.} $$page || exit; done
	$(Q)install -D -m 644 -t $(UNIT_DIR) $(addprefix packaging/systemd/,$(UNITS))
	$(Q)sed -i 's|/usr/bin/|$(PREFIX)/bin/|; s|/etc/holdfast/|$(SYSCONFDIR)/holdfast/|' \
	  $(addprefix $(UNIT_DIR)/,$(UNITS))
	$(Q)test -e $(CONFIG) || install -D -m 640 build/holdfast.conf $(CONFIG)

# The one script of a shell completes both programs. The shells find it by the name of the program.
install-completions:
	$(Q)for name in holdfast holdfast-server; do \
	  install -D -m 644 src/cli/completions/holdfast.bash $(SHARE)/bash-completion/completions/$$name && \
	  install -D -m 644 src/cli/completions/_holdfast $(SHARE)/zsh/$(ZSH_FUNCTIONS)/_$$name && \
	  install -D -m 644 src/cli/completions/holdfast.fish $(SHARE)/fish/vendor_completions.d/$$name.fish || \
	  exit; done

build/holdfast.conf: build/holdfast-server
	$(Q)$< --print-config --dir /var/lib/holdfast --log-format journald >$@

man: build/man/holdfast.1  ## make the man pages from the texts of the programs, to build/man

build/man/holdfast.1: packaging/man_pages.py CHANGELOG.md build/holdfast-server build/holdfast
	$(call say,MAN,build/man)
	$(Q)rm -rf build/man
	$(Q)python3 $< build/holdfast-server build/holdfast build/man

install-library: $(LIBRARIES)
	$(Q)install -D -m 644 -t $(DESTDIR)$(PREFIX)/include/holdfast include/holdfast/*.h
	$(Q)install -d -m 755 $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(Q)$(STRIP) --strip-debug -o $(DESTDIR)$(PREFIX)/lib/libholdfast.a $(LIBRARY_DIR)/libholdfast.a
	$(Q)$(STRIP) --strip-unneeded -o $(DESTDIR)$(PREFIX)/lib/$(SONAME) $(LIBRARY_DIR)/libholdfast.so
	$(Q)chmod 644 $(DESTDIR)$(PREFIX)/lib/libholdfast.a $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	$(Q)ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libholdfast.so
	$(Q)sed 's|@prefix@|$(PREFIX)|; s|@version@|$(VERSION)|; s|@rpath@|$(RPATH)|; s|@libs@|$(CLIENT_LIBS)|' \
	  src/client/holdfast.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/holdfast.pc
	$(Q)chmod 644 $(DESTDIR)$(PREFIX)/lib/pkgconfig/holdfast.pc
	$(if $(DESTDIR),,@$(update_linker))

uninstall:  ## remove the installed files; a changed configuration stays
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/include/holdfast
	$(Q)rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/holdfast bin/holdfast-server lib/libholdfast.a \
	  lib/libholdfast.so lib/$(SONAME) lib/pkgconfig/holdfast.pc)
	$(Q)rm -f $(addprefix $(UNIT_DIR)/,$(UNITS)) $(foreach name,holdfast holdfast-server,\
	  $(addprefix $(SHARE)/,bash-completion/completions/$(name) zsh/$(ZSH_FUNCTIONS)/_$(name) \
	  fish/vendor_completions.d/$(name).fish)) $(addprefix $(SHARE)/man/,man1/holdfast.1 \
	  man1/holdfast-*.1 man5/holdfast.conf.5 man7/holdfast-protocol.7 man8/holdfast-server.8)
	$(Q)if cmp -s build/holdfast.conf $(CONFIG); then \
	  rm $(CONFIG); rmdir --ignore-fail-on-non-empty $(dir $(CONFIG)); \
	elif [ -e $(CONFIG) ]; then echo "$(CONFIG) stays: it was changed"; fi
	$(if $(DESTDIR),,@$(update_linker))

# The linker finds a new library in /usr/lib and /usr/local/lib by its cache. Elsewhere, programs that are
# linked by pkg-config find it by its path in them.
STRIP = strip
LDCONFIG = ldconfig
RPATH = $(if $(filter-out /usr /usr/local,$(PREFIX)),-Wl$(comma)-rpath$(comma)$${libdir})
comma = ,
define update_linker
if [ "$$(id -u)" = 0 ]; then PATH="$$PATH:/sbin:/usr/sbin" $(LDCONFIG); \
else echo "not root: run ldconfig as root where $(PREFIX)/lib is on the linker's path"; fi
endef

# The Debian packages: part of the Makefile. dpkg-buildpackage wants the folder debian/ at the top of the
# sources, so the build has its own copy of them. DEB_FLAGS are options of dpkg-buildpackage. With
# DEB_BUILD_OPTIONS=noopt the build takes half of the time, and the programs are slow.
PACKAGE_DEPS = dpkg-dev debhelper fakeroot
PACKAGE_TEST_DEPS = lintian debootstrap systemd systemd-container iproute2
DEB_DIR = build/deb
DEB_TREE = $(DEB_DIR)/holdfast
.PHONY: deb deb-tree deb-reproducible test-packages

deb: deb-tree  ## build the Debian packages, to build/deb
	@$(call install,$(BUILD_DEPS) $(PACKAGE_DEPS))
	$(Q)cd $(DEB_TREE) && MAKEFLAGS= MAKELEVEL=0 COMMIT=$(COMMIT) dpkg-buildpackage --build=binary --no-sign \
	  $(DEB_FLAGS)

# dpkg-buildpackage takes SOURCE_DATE_EPOCH from debian/changelog.
deb-tree:
	$(Q)rm -rf $(DEB_TREE) $(DEB_DIR)/*.deb $(DEB_DIR)/*.changes $(DEB_DIR)/*.buildinfo
	$(Q)mkdir -p $(DEB_TREE)
	$(Q)cp -a Makefile LICENSE README.md CHANGELOG.md bench docs include packaging redis-scripts src tests \
	  $(DEB_TREE)
	$(Q)cp -a packaging/debian $(DEB_TREE)/debian
	$(Q)cp $(addprefix packaging/systemd/holdfast-server.,service socket) $(DEB_TREE)/debian
	$(Q)python3 packaging/debian_changelog.py $(VERSION) \
	  "$$(sed -n 's/^Maintainer: //p' packaging/debian/control)" >$(DEB_TREE)/debian/changelog

# The second build has another folder, time, time zone, language and umask, and no ccache.
DEB_AGAIN = build/deb/again/elsewhere
deb-reproducible: deb  ## build the Debian packages a second time, elsewhere: both have the same bytes
	$(Q)umask 027 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 CCACHE_DISABLE=1 $(MAKE) deb DEB_DIR=$(DEB_AGAIN)
	$(Q)cd $(DEB_DIR) && sha256sum *.deb >again/SHA256SUMS && cd $(CURDIR)/$(DEB_AGAIN) && \
	  sha256sum --check ../SHA256SUMS

# Not at once with the build, when both are asked for.
test-packages: | $(filter deb deb-reproducible,$(MAKECMDGOALS))  ## units, packages in a bare Debian (as root)
	@$(call install,$(PACKAGE_DEPS) $(PACKAGE_TEST_DEPS))
	@for script in tests/packaging/*_test.py; do "$$script" || exit; done

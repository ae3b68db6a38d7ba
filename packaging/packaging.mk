# The Debian packages, the image and the Kubernetes manifests: part of the Makefile. dpkg-buildpackage wants
# the folder debian/ at the top of the sources, so the build has its own copy of them. DEB_FLAGS are options
# of dpkg-buildpackage. With DEB_BUILD_OPTIONS=noopt the build takes half of the time, and the programs are
# slow.
PACKAGE_DEPS = build-essential dpkg-dev debhelper fakeroot
DEB_DIR = build/deb
DEB_TREE = $(DEB_DIR)/holdfast
# The time of the last commit: two builds of the same sources give the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
.PHONY: deb deb-tree deb-reproducible image packages-for-tests package-test-deps test-packages

deb: deb-tree  ## build the Debian packages, to build/deb
	$(Q)cd $(DEB_TREE) && MAKEFLAGS= MAKELEVEL=0 COMMIT=$(COMMIT) dpkg-buildpackage --build=binary --no-sign \
	  $(DEB_FLAGS)

# dpkg-buildpackage takes SOURCE_DATE_EPOCH from debian/changelog.
deb-tree:
	@$(call install,$(BUILD_DEPS) $(PACKAGE_DEPS))
	$(Q)rm -rf $(DEB_TREE) $(DEB_DIR)/tree $(DEB_DIR)/*.deb $(DEB_DIR)/*.changes $(DEB_DIR)/*.buildinfo
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

# The image, by podman, buildah or docker. IMAGE_FLAGS are options of the build. The format of docker has the
# HEALTHCHECK, which OCI's has not.
IMAGE = holdfast:$(VERSION)
IMAGE_BUILD = $(or $(if $(shell command -v podman),podman build --format docker),\
  $(if $(shell command -v buildah),buildah build --format docker),docker build)
image:  ## build the image holdfast:VERSION from the sources, with podman, buildah or docker
	$(Q)$(IMAGE_BUILD) -t $(IMAGE) --build-arg COMMIT=$(COMMIT) \
	  --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(IMAGE_FLAGS) -f packaging/Containerfile .

# kubectl and npm come with some machines already, which Debian's packages would not go with.
PACKAGE_TEST_DEPS = lintian debootstrap systemd systemd-container buildah iproute2 nftables curl nodejs \
  python3-yaml $(if $(shell command -v kubectl),,kubernetes-client) $(if $(shell command -v npm),,npm)
# The packages of this tree without optimisation. The file `tree` has the hash of the tree that they are from.
packages-for-tests: package-test-deps
	@tree=$$(python3 -B tests/runner/tree.py); [ "$$(cat $(DEB_DIR)/tree 2>/dev/null)" = "$$tree" ] || \
	  { DEB_BUILD_OPTIONS=noopt $(MAKE) deb && echo "$$tree" >$(DEB_DIR)/tree; }

package-test-deps:
	@$(call install,$(BUILD_DEPS) $(PACKAGE_DEPS) $(PACKAGE_TEST_DEPS))

# Not at once with the build, when both are asked for.
test-packages: | $(filter deb deb-reproducible,$(MAKECMDGOALS))  ## units, packages, image, manifests (as root)
	@$(call install,$(BUILD_DEPS) $(PACKAGE_DEPS) $(PACKAGE_TEST_DEPS))
	@$(MAKE) $(SILENT) build/holdfast-server build/holdfast
	@for script in tests/packaging/*_test.py; do "$$script" || exit; done

# The alert rules have one source, packaging/prometheus/alerts.yml.
packaging/kubernetes/monitoring/prometheus-rule.yaml: packaging/prometheus/alerts.yml packaging/packaging.mk
	$(call say,YAML,$@)
	$(Q){ printf '%s\n' '# Made by make from packaging/prometheus/alerts.yml.' \
	  'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: holdfast' '  labels:' \
	  '    app.kubernetes.io/name: holdfast' 'spec:'; sed -e '/^#/d' -e 's/^./  &/' $<; } >$@

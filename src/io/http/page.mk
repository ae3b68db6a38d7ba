# The files of the dashboard inside of the server: part of the Makefile.
# /page/chart.js is Chart.js (MIT licence) from Debian's package.
CHART_JS = /usr/share/javascript/chart.js/chart.min.js
PAGE = $(wildcard src/io/http/page/*)
PAGE_CC = build/generated/page_files.cc
LIB += $(PAGE_CC)

# $(1): the file, $(2): its path in a request. The end of the raw strings is in no file.
page_row = printf '  {"$(2)", "$(page_type)", R"page~(' && cat $(1) && printf ')page~"},\n'
page_type = $(or $(page_type$(suffix $(1))),$(error $(1): no content type))
page_type.html = text/html; charset=utf-8
page_type.css = text/css; charset=utf-8
page_type.js = text/javascript; charset=utf-8
page_type.svg = image/svg+xml
page_path = $(patsubst /page/index.html,/,/page/$(notdir $(1)))

$(PAGE_CC): $(PAGE) $(CHART_JS) src/io/http/page.mk
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q){ echo '#include "io/http/page_files.h"'; echo 'namespace holdfast {'; \
	  echo 'static constexpr PageFile kFiles[] = {'; \
	  $(foreach file,$(PAGE),$(call page_row,$(file),$(call page_path,$(file))) &&) \
	  $(call page_row,$(CHART_JS),/page/chart.js) && \
	  echo '};' && echo 'std::span<const PageFile> page_files() { return kFiles; }' && echo '}'; } >$@
# A pedantic compiler takes no string of more than 64 KiB; all compilers here do.
build/release/$(PAGE_CC:.cc=.o) build/asan/$(PAGE_CC:.cc=.o): FLAGS += -Wno-overlength-strings

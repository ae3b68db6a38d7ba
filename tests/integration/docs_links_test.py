#!/usr/bin/env python3
"""Checks the form of the pages, without a server. Each link leads to an existing file and heading. Each
page of docs/ has a title and a first paragraph, and links lead to it from README.md. The last line is
"N passed, N failed"."""
import contextlib
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import run_tests, test
from pages import ROOT, Page, all_pages, manual, without_code

README_LINES = 200
OPENING_LINES = 5  # the first paragraph of a page begins in these lines
REQUIRED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "src/README.md", "tests/README.md",
            "tests/compat/README.md", "bench/README.md", "redis-scripts/README.md",
            *(f"docs/{name}.md" for name in
              ("protocol", "redis-compatibility", "cli", "cpp", "clients", "safety", "persistence",
               "security", "configuration", "operations", "architecture")),
            *(f"docs/tutorials/{name}.md" for name in
              ("cron-on-three-machines", "python-fencing-token", "quorum-of-three", "run-as-a-service",
               "who-holds-my-lock")))
URL = re.compile(r"https?://[\w-]+(\.[\w-]+)*(:\d+)?([/?#][^\s<>\"]*)?")
# Paths of the machine of an author, and paths outside the project.
FOREIGN = re.compile(r"(?<![\w.*-])/(?:work|root|Users)/[\w.-]*|/home/[a-z][\w.-]*/[\w.-]*"
                     r"|(?:\.\./)+shared\b")


def no_faults(faults):
    faults = list(faults)
    if faults:
        raise AssertionError("\n  ".join([f"faults: {len(faults)}", *faults]))


def docs():
    return [page for page in manual() if page.name != "README.md"]


def link_fault(page, link, anchors):
    """The fault of a link, or None. `anchors` has the anchors of each page by its path."""
    if re.match(r"[a-z]+:", link.target):
        return None if URL.fullmatch(link.target) else "is not a well-formed http or https address"
    if not link.target or re.search(r"\s", link.target):
        return "is not a link: it is empty or has a space"
    path, anchor = page.target(link)
    if link.target.startswith("/") or not path.is_relative_to(ROOT):
        return "leads out of the project"
    if not path.exists():
        return "leads to a file that does not exist"
    if "#" in link.target and path not in anchors:
        return "has an anchor, but leads to a file that is not a page"
    if "#" in link.target and anchor not in anchors[path]:
        return "leads to a heading that does not exist"
    return None


@test
def each_link_leads_to_a_file_and_a_heading(_):
    pages = all_pages()
    anchors = {page.path: page.anchors for page in pages}
    no_faults(f"{page.name}:{link.line}: ({link.target}) {fault}" for page in pages for link in page.links
              if (fault := link_fault(page, link, anchors)))


@test
def each_link_by_reference_has_its_definition(_):
    def faults(page):
        defined = {name.lower() for name in re.findall(r"^ {0,3}\[([^]]+)\]:", page.prose, re.MULTILINE)}
        for number, line in enumerate(re.sub(r"`[^`\n]*`", "", page.prose).splitlines(), 1):
            for text, name in re.findall(r"\[([^][]+)\]\[([^][]*)\]", line):
                if (name or text).lower() not in defined:
                    yield f"{page.name}:{number}: [{text}][{name}] has no definition"
    no_faults(fault for page in all_pages() for fault in faults(page))


@test
def each_page_of_docs_is_reached_from_the_readme(_):
    pages = {page.path: page for page in all_pages()}
    reached = set()
    left = [ROOT / "README.md"]
    while left:
        path = left.pop()
        if path in pages and path not in reached:
            reached.add(path)
            left += [pages[path].target(link)[0] for link in pages[path].links if ":" not in link.target]
    no_faults(f"{page.name}: no link leads there from README.md" for page in docs()
              if page.path not in reached)


@test
def every_required_page_exists(_):
    no_faults(f"{name} does not exist" for name in REQUIRED if not (ROOT / name).is_file())


@test
def the_readme_is_short(_):
    lines = len(Page(ROOT / "README.md").lines)
    no_faults([f"README.md has {lines} lines; {README_LINES} are allowed"] if lines > README_LINES else [])


def is_paragraph(line):
    """Whether a line begins a paragraph: not a heading, list, table, quotation, code or comment."""
    return re.match(r"\s|#|[-*+|>]|\d+[.)] |```|~~~|<!--|!\[|$", line) is None or line.startswith("**")


def form_faults(page):
    if not page.lines or not re.fullmatch(r"# \S.*", page.lines[0]):
        yield f"{page.name}:1: the page does not begin with `# Title`"
    if not any(is_paragraph(line) for line in page.lines[1:OPENING_LINES]):
        yield f"{page.name}: no paragraph begins in the first {OPENING_LINES} lines"
    for heading in page.headings:
        if heading.level == 1 and heading.line > 1:
            yield f"{page.name}:{heading.line}: a second title: {heading.text}"
    ends = [(heading.line, heading.level) for heading in page.headings[1:]] + [(len(page.lines) + 1, 0)]
    for heading, (end, level) in zip(page.headings, ends):
        empty = not "".join(page.lines[heading.line:end - 1]).strip()
        if empty and level <= heading.level:
            yield f"{page.name}:{heading.line}: the section is empty: {heading.text}"


@test
def each_page_of_docs_begins_with_a_title_and_text_and_has_no_empty_section(_):
    no_faults(fault for page in docs() for fault in form_faults(page))


@test
def no_page_names_a_path_of_the_machine_it_was_written_on(_):
    no_faults(f"{page.name}:{number}: {match[0]}" for page in all_pages()
              for number, line in enumerate(page.lines, 1) for match in FOREIGN.finditer(line))


@test
def anchors_are_the_same_as_on_github(_):
    page = Page(ROOT / "README.md", """# A `B|C` & [d](e.md): *f*?
## From C++
```sh
# no heading
```
    # no heading
## From C++ ##
### `SET <key>`
#no heading
## from-c-1
""")
    wanted = ["a-bc--d-f", "from-c", "from-c-1", "set-key", "from-c-1-1"]
    no_faults([str(page.headings)] if [heading.anchor for heading in page.headings] != wanted else [])
    code = without_code("a\n\n    [x](y)\n- b\n\n    [x](z)\n~~~\n[x](y)\n```\n~~~\n<!--\n[x](y) -->")
    no_faults([code] if code != "a\n\n\n- b\n\n    [x](z)\n\n\n\n\n\n\n" else [])


if __name__ == "__main__":
    run_tests(contextlib.nullcontext)

"""Shared by the tests of the pages: README.md, the pages of docs/ and the other Markdown files, with their
headings, links and marked code blocks.

In a page, `<!-- run: KIND -->` or `<!-- run: KIND NAME -->` before a code block says how to run it, and
`<!-- prints -->` marks the output of the block before it."""
import functools
import os
import pathlib
import re
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = {"build", ".git"}  # folders without pages of the project

BLOCK = re.compile(r"^<!-- (?:run: (?P<kind>[a-z-]+)(?: (?P<name>[a-z0-9-]+))?|prints) -->\n"
                   r"```[a-z]*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
MARKER = re.compile(r"^[ \t]*<!--\s*(run:|prints)", re.MULTILINE)
FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)"  # [text](target)
                  r"|^ {0,3}\[[^]^][^]]*\]:[ \t]*(.*)$"         # [reference]: target
                  r"|<([a-z]+:[^\s<>]*)>"                       # <https://...>
                  r"|\b(?:href|src)=\"([^\"]*)\"", re.MULTILINE)
TITLE = re.compile(r"""[ \t]+(?:"[^"]*"|'[^']*')$""")

# Debian's folders for packages of Node and Go. Go's cache has its own folder, as HOME may be unset.
ENVIRONMENT = {
    "NODE_PATH": "/usr/share/nodejs",
    "GO111MODULE": "off",
    "GOPATH": "/usr/share/gocode",
    "GOCACHE": str(ROOT / "build/go-cache"),
    "CGO_ENABLED": "0",
    "REDISCLI_RCFILE": "/dev/null",
}


class Block(typing.NamedTuple):
    """A marked code block. `name` is the terminal of a session, or "". `prints` is the output of the block,
    or None if the page does not show it. `line` is the line of the marker."""
    kind: str
    name: str
    text: str
    prints: str | None
    line: int


class Heading(typing.NamedTuple):
    """`anchor` is the part after `#` in a link to the heading."""
    level: int
    text: str
    anchor: str
    line: int


class Link(typing.NamedTuple):
    """`target` as it is written, without its title."""
    target: str
    line: int


def blocks(text):
    """The marked blocks of a page, each with its output."""
    found = []
    end = 0  # the end of the previous marked block
    for match in BLOCK.finditer(text):
        if match["kind"]:
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(match["kind"], match["name"] or "", match["text"], None, line))
        elif found and found[-1].prints is None and not MARKER.search(text, end, match.start()):
            found[-1] = found[-1]._replace(prints=match["text"])
        end = match.end()
    return found


class Tokens:
    """The token of the run for each token of the page."""
    PATTERN = re.compile(r"\b\d{16}\b")

    def __init__(self):
        self.of_run = {}

    def translated(self, text):
        return self.PATTERN.sub(lambda m: self.of_run.get(m.group(), m.group()), text)

    def check(self, shown, printed):
        """Both texts must be equal except for tokens. Equal tokens in one must be equal in the other."""
        message = f"the page shows:\n{shown}\nbut this was printed:\n{printed}"
        assert self.PATTERN.sub("TOKEN", shown) == self.PATTERN.sub("TOKEN", printed), message
        for mine, theirs in zip(self.PATTERN.findall(shown), self.PATTERN.findall(printed)):
            assert self.of_run.setdefault(mine, theirs) == theirs, message
        assert len(set(self.of_run.values())) == len(self.of_run), message


def newlines_of(match):
    return "\n" * match[0].count("\n")


def without_code(text):
    """The text with its code blocks and comments as empty lines, so that the lines keep their numbers."""
    kept = []
    fence = ""  # the fence that closes the code block
    in_list = blank = indented = False
    for line in text.splitlines():
        match = FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip(" \t" + fence[0]):
                fence = ""
            line = ""
        elif match:
            fence, line = match[1], ""
        indented = line.startswith("    ") and not in_list and (blank or indented)
        if line and not line.startswith("    "):
            in_list = re.match(r"\s|[-*+] |\d+[.)] ", line) is not None
        blank = not line.strip()
        kept.append("" if indented else line)
    return re.sub(r"<!--.*?-->", newlines_of, "\n".join(kept) + "\n", flags=re.DOTALL)


def slug(heading):
    """The anchor that GitHub gives to a heading, before it adds numbers to repeated ones."""
    shown = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading)
    shown = re.sub(r"`([^`]*)`|<[^>]*>", lambda match: match[1] or "", shown)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


class Page:
    """A Markdown file of the project. `name` is its path from the project's folder."""

    def __init__(self, path, text=None):
        self.path = path
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text(encoding="utf-8") if text is None else text
        self.lines = self.text.splitlines()

    @functools.cached_property
    def prose(self):
        return without_code(self.text)

    @functools.cached_property
    def blocks(self):
        return blocks(self.text)

    @functools.cached_property
    def headings(self):
        found = []
        times = {}  # how often a slug occurred
        for number, line in enumerate(self.prose.splitlines(), 1):
            if match := HEADING.fullmatch(line):
                first = anchor = slug(match[2])
                while anchor in times:
                    times[first] += 1
                    anchor = f"{first}-{times[first]}"
                times[anchor] = 0
                found.append(Heading(len(match[1]), match[2], anchor, number))
        return found

    @functools.cached_property
    def anchors(self):
        own = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", self.prose)
        return {heading.anchor for heading in self.headings} | set(own)

    @functools.cached_property
    def links(self):
        """All links, in the order of their lines. Code has none."""
        text = CODE_SPAN.sub(newlines_of, self.prose)
        return [Link(TITLE.sub("", next(filter(None, match.groups()), "").strip()),
                     text.count("\n", 0, match.start()) + 1) for match in LINK.finditer(text)]

    def target(self, link):
        """The path and the anchor that a relative link leads to."""
        path, _, anchor = link.target.partition("#")
        return pathlib.Path(os.path.normpath(self.path.parent / path)) if path else self.path, anchor


def all_pages():
    """Every Markdown file of the project."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in SKIPPED]
    found = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))]
    return [Page(path) for path in sorted(found)]


def manual():
    """The pages for users: README.md and docs/."""
    return [page for page in all_pages() if page.name == "README.md" or page.name.startswith("docs/")]

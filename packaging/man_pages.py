#!/usr/bin/env python3
"""Writes the man pages: man_pages.py SERVER COMMAND FOLDER. SERVER and COMMAND are the built programs. All
texts come from what they print: --help, --print-config, --print-commands. So each option, verb and command
has its place, and no page can differ from the program. The date of the pages is SOURCE_DATE_EPOCH, or that
of the newest release in CHANGELOG.md: the same source gives the same bytes."""
import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def output_of(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout


def date():
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return str(datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).date())
    found = re.search(r"^## \[[\d.]+\] - ([\d-]+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    return found.group(1) if found else "1970-01-01"


def roff(text):
    """The text as roff shows it: no character of it is a request or an escape."""
    for char, escape in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"),
                         ("~", "\\(ti"), ('"', "\\(dq")):
        text = text.replace(char, escape)
    return "\\&" + text if text.startswith(".") else text


def bold(text):
    return f"\\fB{roff(text)}\\fR"


class Page:
    """One page; its text grows line by line."""

    def __init__(self, name, section, version, summary):
        self.file = f"{name}.{section}"
        self.lines = [f'.TH "{roff(name.upper())}" {section} "{date()}" "Holdfast {version}" "Holdfast"',
                      ".nh", ".SH NAME", f"{roff(name)} \\- {roff(summary)}"]

    def section(self, name):
        self.lines.append(f'.SH "{roff(name)}"')

    def subsection(self, name):
        self.lines.append(f'.SS "{roff(name)}"')

    def paragraph(self, text):
        if not self.lines[-1].startswith((".SH", ".SS")):
            self.lines.append(".PP")
        self.lines.append(roff(text))

    def item(self, head, text):
        self.lines += [".TP", bold(head), roff(text)]

    def block(self, text):
        """A text whose lines stay as they are."""
        self.lines += ([".PP"] if not self.lines[-1].startswith((".SH", ".SS")) else [])
        self.lines += [".nf", ".RS 4", *map(roff, text.splitlines()), ".RE", ".fi"]

    def see_also(self, *names):
        self.section("SEE ALSO")
        refs = [f".BR {roff(name)} ({section})" for name, section in names]
        self.lines += [ref + " ," for ref in refs[:-1]] + refs[-1:]

    def write(self, folder):
        (folder / self.file).write_text("\n".join(self.lines).replace(") ,", "),") + "\n", "utf-8")


def joined(lines):
    return " ".join(line.strip() for line in lines)


def options_in(lines, column):
    """Lists of options: pairs of head and text. The texts begin at the column."""
    options = []
    for line in lines:
        if re.match(r"  -", line):
            options.append([line[:column].strip(), line[column:].strip()])
        elif options:
            options[-1][1] += " " + line.strip()
    return options


def add_examples(page, lines):
    """Sentences that end with a colon, each with the indented commands below it."""
    text = []
    for line in lines:
        if line.startswith("    "):
            if text:
                page.paragraph(joined(text))
                text = []
            page.block(line.strip())
        else:
            text.append(line)


def add_list(page, lines):
    """A paragraph with a list of "  - item" lines, and the text around it."""
    parts = [[]]
    for line in lines:
        if line.startswith("  - ") or (not line.startswith("  ") and parts[-1][:1] and
                                       parts[-1][0].startswith("  - ")):
            parts.append([])
        parts[-1].append(line)
    for part in parts:
        if part[0].startswith("  - "):
            page.lines += [".IP \\(bu 2", roff(joined(part)[2:])]
        else:
            page.paragraph(joined(part))


def verb_page(command, verb, version, summary):
    """The page of a verb, from its --help: a usage, then paragraphs, options, statuses and examples."""
    page = Page(f"holdfast-{verb}", 1, version, summary)
    usage, *passages = output_of(command, verb, "--help").rstrip("\n").split("\n\n")
    page.section("SYNOPSIS")
    page.lines.append(bold(usage.removeprefix("Usage: ")))
    parts = {"DESCRIPTION": [], "OPTIONS": [], "EXIT STATUS": [], "EXAMPLES": []}
    for passage in passages:
        lines = passage.splitlines()
        if lines[0].startswith("  -"):
            parts["OPTIONS"].append(lines)
        elif lines[0].startswith("Exit status: "):
            parts["EXIT STATUS"].append([passage.removeprefix("Exit status: ").replace("\n", " ")])
        else:
            parts["EXAMPLES" if lines[0].startswith("  ") else "DESCRIPTION"].append(lines)
    for name, passages_of in parts.items():
        page.section(name)
        for lines in passages_of:
            if name == "OPTIONS":
                for head, text in options_in(lines, 22):
                    page.item(head, text)
            elif name == "EXAMPLES":
                add_examples(page, lines)
            else:
                add_list(page, lines)
    return page


def verbs_of(command):
    return re.findall(r"^  ([a-z]+) .*  (.*)$", output_of(command, "--help"), re.MULTILINE)


def command_page(command, version):
    page = Page("holdfast", 1, version, "acquire, release and show locks of Holdfast and Redis servers")
    page.section("SYNOPSIS")
    page.lines += [bold("holdfast VERB [options]"), ".br", bold("holdfast --help"), ".br", bold("holdfast --version")]
    page.section("DESCRIPTION")
    page.paragraph("Each verb has a page of its own, which has the text of holdfast VERB --help.")
    for line in re.findall(r"^  ([a-z]+ .*?)  +(.*)$", output_of(command, "--help"), re.MULTILINE):
        page.item(*line)
    page.section("ENVIRONMENT")
    for name, text in (("HOLDFAST_SERVERS", "the servers, unless --servers names them"),
                       ("HOLDFAST_USER", "the user to log in as"), ("HOLDFAST_PASSWORD", "the password"),
                       ("NO_COLOR", "if it is set and not empty, headings on a terminal are not bold")):
        page.item(name, text)
    page.see_also(*((f"holdfast-{verb}", 1) for verb, _ in verbs_of(command)), ("holdfast-server", 8))
    return page


def server_page(server, version):
    page = Page("holdfast-server", 8, version, "a lock server that speaks the Redis protocol")
    head, *groups = output_of(server, "--help").rstrip("\n").split("\n\n")
    usage, *lines = head.splitlines()
    page.section("SYNOPSIS")
    page.lines.append(bold(usage.removeprefix("Usage: ")))
    page.section("DESCRIPTION")
    for line in lines:
        if not line.startswith("Exit status: "):
            page.paragraph(line)
    page.section("OPTIONS")
    for group in groups:
        name, *options = group.splitlines()
        page.subsection(name.removesuffix(":"))
        column = 2 + max(len(match[0]) for line in options if (match := re.match(r"  -.*?  +", line))) - 2
        for head, text in options_in(options, column):
            page.item(re.sub(r"^(-\w) \[ (.*) \]", r"\1, \2", head), text)
    page.section("EXIT STATUS")
    page.paragraph(next(line for line in lines if line.startswith("Exit status: "))
                   .removeprefix("Exit status: "))
    page.section("SIGNALS")
    page.item("SIGTERM, SIGINT", "the server stops: it keeps all data, and closes all connections")
    page.item("SIGHUP", "the server opens the log file again")
    page.see_also(("holdfast", 1), ("holdfast.conf", 5), ("holdfast-protocol", 7))
    return page


def config_page(server, version):
    page = Page("holdfast.conf", 5, version, "configuration of holdfast-server")
    head, *groups = re.split(r"^## ", output_of(server, "--print-config"), flags=re.MULTILINE)
    page.section("DESCRIPTION")
    for passage in head.split("#\n")[1:]:
        page.paragraph(joined(line.removeprefix("#") for line in passage.splitlines()))
    page.section("OPTIONS")
    for group in groups:
        name, _, rest = group.partition("\n")
        page.subsection(name)
        for block in rest.strip().split("\n\n"):
            *text, option = block.splitlines()
            defaults = next(i for i, line in enumerate(text) if line.startswith("# Default: "))
            page.item(option[1:], joined(line.removeprefix("#") for line in text[:defaults]) + ".")
            page.lines += [".br", roff(joined(line.removeprefix("#") for line in text[defaults:]))]
    page.see_also(("holdfast-server", 8),)
    return page


def protocol_page(server, version):
    page = Page("holdfast-protocol", 7, version, "commands of the protocol of holdfast-server")
    rows = [line.split("\t") for line in output_of(server, "--print-commands").splitlines()]
    page.section("DESCRIPTION")
    page.paragraph("The server speaks the protocol of Redis, RESP2 and RESP3. Each client library for Redis can "
                   "send these commands. COMMAND DOCS returns them, too.")
    for group in sorted({row[2] for row in rows}, key=lambda name: (name != "lock", name)):
        page.section(group.upper())
        for name, syntax, _, complexity, summary in (row for row in rows if row[2] == group):
            page.item(f"{name} {syntax}".strip(), summary)
            page.lines += [".br", roff(f"Complexity: {complexity.removesuffix('.')}.")]
    page.see_also(("holdfast-server", 8), ("holdfast", 1))
    return page


def main():
    server, command, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    version = output_of(command, "--version").split()[1]
    folder.mkdir(parents=True, exist_ok=True)
    pages = [server_page(server, version), config_page(server, version), command_page(command, version),
             protocol_page(server, version)]
    for verb, summary in verbs_of(command):
        page = verb_page(command, verb, version, summary)
        page.see_also(("holdfast", 1), ("holdfast-server", 8))
        pages.append(page)
    for page in pages:
        page.write(folder)


if __name__ == "__main__":
    main()

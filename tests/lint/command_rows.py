#!/usr/bin/env python3
"""Checks that what the server knows of a command stands in its row (src/core/command/table_*.cc).

Prints `file:line: ...`, and fails, for each handler (cmd_get) that code outside the rows names, unless a
handler calls another one, and for each text outside the rows that lists commands. Such a comparison or list
is a further place that the next command needs.
"""
import pathlib
import re
import sys

ROWS = re.compile(r"src/core/command/table_\w+\.cc")
DECLARATIONS = "src/core/command/handlers.h"
HANDLERS = "src/core/handlers/"
HANDLER = re.compile(r"\bcmd_\w+\b(?!\.)")  # not the name of a file
CALL = re.compile(r"\s*\(")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
ROW = re.compile(r'\{\s*"([^"]+)",\s*(?:cmd_\w+|nullptr),')


def code_of(line):
    """The line without its comment. (A text with two slashes is cut too, which does no harm here.)"""
    return line.split("//")[0]


def sources(root):
    """The files of src/ that are not rows: (name, lines)."""
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in (".h", ".cc") and not ROWS.fullmatch(name):
            yield name, path.read_text(encoding="utf-8").splitlines()


def names_of_commands(root):
    """The names of all rows."""
    return {name for path in (root / "src").rglob("table_*.cc")
            if ROWS.fullmatch(path.relative_to(root).as_posix())
            for name in ROW.findall(path.read_text(encoding="utf-8"))}


def fault(name, code, commands):
    """What is wrong with a line of a file, or None."""
    for match in HANDLER.finditer(code):
        called = name.startswith(HANDLERS) and CALL.match(code, match.end())
        if name != DECLARATIONS and not called:
            return f"names {match.group()}: what it wants to know belongs in the rows of the commands"
    for text in TEXT.findall(code):
        words = text.split()
        if len(words) > 1 and commands.issuperset(words):
            return f'"{text}" lists commands: what they have in common belongs in their rows'
    return None


def faults_in(root):
    """The faults of all files below a folder that has src/: (file, line, why)."""
    commands = names_of_commands(root)
    for name, lines in sources(root):
        for number, line in enumerate(lines, 1):
            why = fault(name, code_of(line), commands)
            if why:
                yield name, number, why


def main():
    failed = False
    for name, number, why in faults_in(pathlib.Path(".")):
        print(f"{name}:{number}: {why}")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

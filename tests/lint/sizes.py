#!/usr/bin/env python3
"""Checks sizes: lines of a function, lines of a file, columns of a line.

Prints `file:line: ...` for each size above its limit, and fails if there is one. Universal Ctags gives the
begin and the end of each function.
"""
import json
import pathlib
import subprocess
import sys

FUNCTION_LINES = 70
FILE_LINES = {"src": 500, "include": 500, "bench": 500, "tests": 600,
              "redis-scripts": 300, "Makefile": 200}
COLUMNS = 108
SUFFIXES = (".h", ".cc", ".py", ".sh", ".lua", ".js", ".css", ".html")


def sources():
    for root in FILE_LINES:
        yield from sorted(p for p in pathlib.Path(root).rglob("*") if p.suffix in SUFFIXES)
    yield pathlib.Path("Makefile")


def file_faults(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    limit = FILE_LINES[path.parts[0]]
    if len(lines) >= limit:
        yield f"{path}:{len(lines)}: the file has {len(lines)} lines; fewer than {limit} are allowed"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{path}:{number}: the line has {len(line)} columns; {COLUMNS} are allowed"


def function_faults(paths):
    command = ["ctags", "--output-format=json", "--languages=C++", "--langmap=C++:.h.cc", "--kinds-C++=f",
               "--fields=+ne", "-f", "-", *map(str, paths)]
    tags = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for tag in map(json.loads, tags.splitlines()):
        lines = tag.get("end", tag["line"]) - tag["line"] + 1
        if lines > FUNCTION_LINES:
            name = tag["name"]
            yield f"{tag['path']}:{tag['line']}: {name} has {lines} lines; {FUNCTION_LINES} are allowed"


def main():
    paths = list(sources())
    faults = [fault for path in paths for fault in file_faults(path)]
    faults += function_faults([p for p in paths if p.suffix in (".h", ".cc")])
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

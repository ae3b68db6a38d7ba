#!/usr/bin/env python3
"""Prints the C++ files of src/ that clang-tidy must check after a change, one a line.

A file counts as changed if it differs from the base: tests/runner/tree.py says which commit that is. The
environment variable BASE names another one. clang-tidy checks a header with a
file that includes it. For a changed header that is the file of its name, else the first file that includes
it. Prints all files if git cannot give the changes, or if .clang-tidy changed.
"""
import pathlib
import sys

sys.dont_write_bytecode = True  # build/ is the only place for generated files
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "runner"))
import tree  # noqa: E402, it needs the path above


def checked_with(header, sources):
    """The file that clang-tidy checks for a header, or None if no file includes it."""
    own = header.with_suffix(".cc")
    if own in sources:
        return own
    line = f'#include "{header.relative_to("src")}"'
    return next((source for source in sources if line in source.read_text(encoding="utf-8")), None)


def main():
    sources = sorted(pathlib.Path("src").rglob("*.cc"))
    try:
        names = tree.changed_files()
    except tree.NoHistory:
        names = {".clang-tidy"}
    chosen = set(sources if ".clang-tidy" in names else [])
    for path in map(pathlib.Path, names):
        if path in sources:
            chosen.add(path)
        elif path.suffix == ".h" and path.parts[0] == "src" and path.exists():
            chosen.add(checked_with(path, sources))
    print("\n".join(sorted(map(str, chosen - {None}))))


if __name__ == "__main__":
    main()

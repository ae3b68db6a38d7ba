#!/usr/bin/env python3
"""Prints the C++ files of src/ that clang-tidy must check after a change, one a line.

A file counts as changed if it differs from HEAD, or if a commit of the last DAYS days before HEAD changed
it. So a fresh clone checks the same files, and each change is checked several times. With the environment
variable LINT_SINCE=COMMIT the changes since that commit count instead. clang-tidy checks a header with a
file that includes it. For a changed header that is the file of its name, else the first file that includes
it. Prints all files if git cannot give the changes, or if .clang-tidy changed.
"""
import os
import pathlib
import subprocess

DAYS = 1


def git(*arguments):
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")


def changed_names():
    """The names of all changed files; some of them may no longer exist."""
    since = os.environ.get("LINT_SINCE")
    if since:
        names = git("diff", "--name-only", since)
    else:
        if git("rev-parse", "--is-shallow-repository")[0] == "true":
            raise OSError("a shallow clone does not have the changes")
        newest = int(git("log", "-1", "--format=%ct")[0])
        names = git("log", f"--since=@{newest - DAYS * 86400}", "--name-only", "--format=")
        names += git("diff", "--name-only", "HEAD")
    return set(names + git("ls-files", "--others", "--exclude-standard"))


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
        names = changed_names()
    except (OSError, subprocess.CalledProcessError):
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

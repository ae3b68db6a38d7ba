#!/usr/bin/env python3
"""Checks that each file compiles alone, although the build joins files to units (src/units.mk).

  alone.py [--jobs N] --compiler 'COMMAND' FILE...

COMMAND is clang with its flags. So that the large headers are not parsed for each file, a file is compiled
with a precompiled header: the largest of the project's headers that the file includes, itself or by another
header. So no precompiled header has what the file does not include. Prints the errors of the compiler, and
fails if there are any.
"""
import argparse
import collections
import concurrent.futures
import functools
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "src", ROOT / "include", ROOT / "tests", ROOT]
FEWEST_USERS = 4  # a precompiled header costs as much as a few files
# Headers of libraries that take long to parse, in the number of headers of the project that take as long.
WEIGHTS = {"doctest/doctest.h": 40, "absl/container/flat_hash_map.h": 40,
           "absl/container/flat_hash_set.h": 40, "absl/container/btree_map.h": 20,
           "absl/container/btree_set.h": 20, "nlohmann/json.hpp": 60, "spdlog/spdlog.h": 60,
           "fmt/format.h": 20, "functional": 10, "algorithm": 10, "regex": 40}


@functools.lru_cache(maxsize=None)
def includes(path):
    """The names that the file includes, as (name, file of the project or None)."""
    found = []
    for name in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', path.read_text(encoding="utf-8"), re.M):
        files = [folder / name for folder in [path.parent, *FOLDERS] if (folder / name).is_file()]
        found.append((name, files[0] if files else None))
    return found


@functools.lru_cache(maxsize=None)
def closure(path):
    """All names and files that the file includes, itself or by other files of the project."""
    seen, rest = {}, [path]
    while rest:
        for name, file in includes(rest.pop()):
            key = str(file or name)
            if key not in seen:
                seen[key] = file
                if file is not None:
                    rest.append(file)
    return seen


@functools.lru_cache(maxsize=None)
def weight(header):
    return sum(WEIGHTS.get(name, 1) for name in closure(header))


def headers_of(file):
    return {header for header in closure(file).values() if header is not None and header.suffix == ".h"}


def common(chosen):
    """Those that at least FEWEST_USERS files have chosen."""
    return {what for what, count in collections.Counter(chosen.values()).items() if count >= FEWEST_USERS}


def choose_header(files):
    """For each file the header of the project to precompile, or None."""
    candidates = set().union(*map(headers_of, files))
    while True:
        chosen = {file: max(headers_of(file) & candidates, key=lambda h: (weight(h), str(h)), default=None)
                  for file in files}
        rare = set(chosen.values()) - common(chosen) - {None}
        if not rare:
            return chosen
        # Its users may give another one enough.
        candidates.remove(min(rare, key=lambda h: (weight(h), str(h))))


def choose_parts(files):
    """For each file the headers to precompile: one of the project, and libraries that it lacks."""
    parts = {}
    for file, header in choose_header(files).items():
        there = closure(header) if header else {}
        libraries = sorted(name for name in closure(file) if name in WEIGHTS and name not in there)
        parts[file] = (str(header.relative_to(ROOT)) if header else "", *libraries)
    enough = common(parts)
    return {file: its if its in enough else its[:1] for file, its in parts.items()}


def run(command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    return done.returncode, done.stdout


def precompile(compiler, parts, path):
    """Returns the precompiled header, or None with the output of the compiler."""
    text = "".join(f'#include "{ROOT / part}"\n' if part.endswith(".h") and (ROOT / part).is_file()
                   else f"#include <{part}>\n" for part in parts if part)
    header = pathlib.Path(f"{path}.h")
    header.write_text(text, encoding="utf-8")
    made = header.with_suffix(".pch")
    status, output = run([*compiler, "-Xclang", "-fpch-instantiate-templates", "-x", "c++-header",
                          "-o", made, header])
    return (made, "") if status == 0 else (None, output)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many compilers at once (1)")
    parser.add_argument("--compiler", required=True, metavar="COMMAND", help="clang with its flags")
    parser.add_argument("file", nargs="+", type=lambda name: (ROOT / name).resolve(), help="a .cc file")
    arguments = parser.parse_args()
    compiler = arguments.compiler.split()
    parts_of = choose_parts(arguments.file)
    faults = 0
    with (tempfile.TemporaryDirectory() as folder,
          concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool):
        wanted = sorted({parts for parts in parts_of.values() if any(parts)})
        made = dict(zip(wanted, pool.map(lambda at: precompile(compiler, wanted[at], f"{folder}/{at}"),
                                         range(len(wanted)))))
        made[("",)] = (None, "")

        def check(file):
            header, _ = made[parts_of[file]]
            return run([*compiler, *(["-include-pch", header] if header else []), "-fsyntax-only", file])

        results = [(parts[0], bool(output), output) for parts, (_, output) in made.items()]
        results += ((str(file.relative_to(ROOT)), status != 0, output)
                    for file, (status, output) in zip(arguments.file, pool.map(check, arguments.file)))
        for name, failed, output in results:
            faults += failed
            if failed:
                print(f"{name} does not compile alone:\n{output}", flush=True)
    print(f"{len(arguments.file)} files, {len(wanted)} precompiled headers, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

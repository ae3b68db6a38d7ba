#!/usr/bin/env python3
"""Tests the checks of `make lint` that are scripts of this project: they must report a wrong include."""
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lint"))
import include_rules  # noqa: E402

# A file, an include in it, and a part of the message, or None if the include is allowed.
CASES = [
    ("src/core/base/a.h", '"core/base/b.h"', None),
    ("src/core/base/a.h", '"core/keyspace/b.h"', "src/core/base includes only itself"),
    ("src/core/state/a.cc", '"core/lock/b.h"', "src/core/state includes only itself"),
    ("src/core/state/a.cc", '"core/command/b.h"', None),
    ("src/core/handlers/a.cc", '"core/engine/b.h"', None),
    ("src/core/a.cc", '"core/base/b.h"', "move the file into one of them"),
    ("src/core/lock/a.cc", '"io/os/b.h"', "the core includes only itself"),
    ("src/core/lock/a.cc", "<chrono>", "no clock"),
    ("src/core/lock/a.cc", "<lua.hpp>", "Lua belongs to"),
    ("src/io/disk/a.cc", '"io/os/b.h"', None),
    ("src/io/os/a.cc", '"io/net/b.h"', "src/io/os includes only itself"),
    ("src/client/base/a.cc", '"client/api/b.h"', "src/client/base includes only itself"),
    ("src/client/api/a.cc", '"client/transport/b.h"', None),
    ("src/client/transport/a.cc", '"core/base/b.h"', None),
    ("src/cli/a.cc", '"io/os/b.h"', "the command includes itself"),
    ("include/holdfast/a.h", '"core/base/b.h"', "the public API includes only"),
]


def test_include_rules():
    """a wrong include is reported with its file, line and reason, and a right include is not reported"""
    for name, header, words in CASES:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True)
            path.write_text(f"#pragma once\n#include {header}\n", encoding="utf-8")
            found = list(include_rules.faults_in(pathlib.Path(folder)))
        if words is None:
            assert not found, f"{name} may include {header}, but: {found}"
        else:
            assert len(found) == 1 and found[0][:3] == (name, 2, header), f"{name} with {header}: {found}"
            assert words in found[0][3], f"{name} with {header}: {found[0][3]}"


def test_project_is_clean():
    """no file of the project has a wrong include"""
    found = list(include_rules.faults_in(ROOT))
    assert not found, found


def main():
    failed = 0
    tests = [test_include_rules, test_project_is_clean]
    for test in tests:
        try:
            test()
        except AssertionError as error:
            failed += 1
            print(f"FAILED: lint: {test.__doc__}: {error}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

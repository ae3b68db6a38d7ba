#!/usr/bin/env python3
"""Tests the checks of `make lint` that are scripts of this project: they must report a wrong include,
a handler outside the rows of the commands, and a mutation that does not fit."""
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/lint"), str(ROOT / "tests/mutation")]
import command_rows  # noqa: E402
import include_rules  # noqa: E402
import mutations  # noqa: E402

# A file, an include in it, and a part of the message, or None if the include is allowed.
CASES = [
    ("src/core/base/a.h", '"core/base/b.h"', None),
    ("src/core/base/a.h", '"core/keyspace/b.h"', "src/core/base includes only itself"),
    ("src/core/state/a.cc", '"core/lock/b.h"', "src/core/state includes only itself"),
    ("src/core/state/a.cc", '"core/command/b.h"', None),
    ("src/core/lock/a.cc", '"core/values/b.h"', "src/core/lock includes only itself"),
    ("src/core/values/a.cc", '"core/lock/b.h"', None),
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


# A file, a line of it, and a part of the message, or None if the line is allowed.
ROW_CASES = [
    ("src/core/engine/a.cc", "if (command.handler == cmd_exec) return;", "names cmd_exec"),
    ("src/core/engine/a.cc", "for (const Handler h : {cmd_ping, cmd_quit}) {", "names cmd_ping"),
    ("src/core/engine/a.cc", "cmd_ping(r);", "names cmd_ping"),
    ("src/core/handlers/a.cc", "if (r.command.handler != cmd_exec) return;", "names cmd_exec"),
    ("src/core/handlers/a.cc", "void cmd_ping(Request& r) { cmd_exec(r); }", None),
    ("src/core/engine/a.cc", "// cmd_ping is in cmd_connection.cc", None),
    ("src/core/command/handlers.h", "void cmd_ping(Request&), cmd_exec(Request&);", None),
    ("src/core/command/a.cc", 'constexpr char kReads[] = " ping exec ";', "lists commands"),
    ("src/core/command/a.cc", 'reply.error("ping failed");', None),
]


def test_command_rows():
    """a handler or a list of commands outside the rows is reported with its file and line"""
    for name, line, words in ROW_CASES:
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder, "src/core/command/table_all.cc")
            path = pathlib.Path(folder, name)
            for parent in (rows.parent, path.parent):
                parent.mkdir(parents=True, exist_ok=True)
            rows.write_text('    {"ping", cmd_ping, -1,\n    {"exec", cmd_exec, 1,\n', encoding="utf-8")
            path.write_text(f"#pragma once\n{line}\n", encoding="utf-8")
            found = list(command_rows.faults_in(pathlib.Path(folder)))
        if words is None:
            assert not found, f"{name} may have '{line}', but: {found}"
        else:
            assert len(found) == 1 and found[0][:2] == (name, 2), f"{name} with '{line}': {found}"
            assert words in found[0][2], f"{name} with '{line}': {found[0][2]}"


def test_project_is_clean():
    """no file of the project has a wrong include, or names a command that its rows should describe"""
    found = list(include_rules.faults_in(ROOT)) + list(command_rows.faults_in(ROOT))
    assert not found, found
    assert len(command_rows.names_of_commands(ROOT)) > 300  # else it has found nothing to compare with


def test_mutations_fit():
    """each mutation of tests/mutation fits the source, the tests and the pages"""
    found = list(mutations.faults(mutations.load()))
    assert not found, "\n".join(found)


def test_unfit_mutations():
    """a mutation is reported if its old text is not in the file exactly once, or its test does not exist"""
    good = mutations.load()[0]
    elsewhere = mutations.Promise("no such promise", good.promise.page)
    cases = [(good._replace(old="no such text"), "occurs 0 times"),
             (good._replace(old="\n"), "instead of once"),
             (good._replace(new=good.old), "the new text is the old text"),
             (good._replace(test="unit: no such test"), "the test does not exist"),
             (good._replace(test="guess: a test"), "unknown kind of test"),
             (good._replace(file="src/core/no_such_file.cc"), "that exists"),
             (good._replace(promise=elsewhere), "is not in docs/")]
    for mutation, words in cases:
        found = list(mutations.faults([mutation]))
        assert any(words in fault for fault in found), f"wanted '{words}': {found}"


def main():
    failed = 0
    tests = [test_include_rules, test_command_rows, test_project_is_clean, test_mutations_fit,
             test_unfit_mutations]
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

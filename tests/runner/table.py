#!/usr/bin/env python3
"""The table of suites, tests/suites.toml, and its check: table.py --check, a part of `make lint`."""
import dataclasses
import os
import pathlib
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/suites.toml"
TIERS = ("change", "path", "all")
WEIGHTS = ("cpu", "wait")
SUMS = ("doctest", "script", "status")
GROUPS = 12          # of the slices: each suite is in one, and each change runs one
GROUP_SECONDS = 180  # the most that the suites of a group may take together, without their builds
LIMIT_S = 1800
# Where the executable tests are. A test there must have a row.
SCRIPTS = ("integration/*.py", "integration/*.sh", "compat/*.py", "conformance/*.py", "chaos/*_test.py",
           "packaging/*_test.py", "folders/*_test.py", "model/*.sh", "fuzz/*.sh")


@dataclasses.dataclass(frozen=True)
class Suite:
    """A row of the table; the head of suites.toml describes the fields."""
    name: str
    protects: str
    tier: str
    weight: str
    seconds: int
    script: str = ""
    program: str = ""
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    paths: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    shards: int = 1
    slice: int | None = None
    portion: dict = dataclasses.field(default_factory=dict)
    sum: str = "script"
    seeded: bool = False
    root: bool = False
    limit_s: int = LIMIT_S

    @property
    def words(self) -> list[str]:
        """The command with its arguments. `{...}` in it stands for a value of the run: see filled()."""
        first = self.command or ((self.script,) if self.script else (self.program,))
        return [*first, *self.arguments]


def suite_of(row: dict) -> Suite:
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    if "program" in fields:
        fields.setdefault("sum", "doctest")
    return Suite(**fields)


def load(path: pathlib.Path = TABLE) -> list[Suite]:
    with path.open("rb") as file:
        return [suite_of(row) for row in tomllib.load(file)["suite"]]


def portion_of(suite: Suite) -> Suite:
    """The suite as a slice runs it: the fields in `portion` replace its own."""
    fields = {key: tuple(value) if isinstance(value, list) else value
              for key, value in suite.portion.items()}
    return dataclasses.replace(suite, **fields, portion={})


def faults_of(suite: Suite) -> list[str]:
    """What is wrong with a row."""
    found = []
    if suite.tier not in TIERS or suite.weight not in WEIGHTS or suite.sum not in SUMS:
        found.append(f"unknown tier, weight or sum: {suite.tier}, {suite.weight}, {suite.sum}")
    if sum(map(bool, (suite.script, suite.program, suite.command))) != 1:
        found.append("it needs one of script, program and command")
    if suite.script and not os.access(ROOT / suite.script, os.X_OK):
        found.append(f"{suite.script} does not exist, or is not executable")
    if (suite.tier == "path") != bool(suite.paths):
        found.append("paths belong to the tier 'path', and each suite of that tier has some")
    if (suite.tier == "change") != (suite.slice is None):
        found.append("slice belongs to the tiers 'path' and 'all', and each suite of these has one")
    if suite.slice is not None and suite.slice not in range(GROUPS):
        found.append(f"slice must be 0 to {GROUPS - 1}")
    if not suite.protects.endswith("."):
        found.append("`protects` must be a sentence")
    return [f"{suite.name}: {fault}" for fault in found]


def faults(suites: list[Suite]) -> list[str]:
    """What is wrong with the table, one line each."""
    found = [fault for suite in suites for fault in faults_of(suite)]
    names = [suite.name for suite in suites]
    found += [f"two suites have the name {name}" for name in sorted(set(names)) if names.count(name) > 1]
    listed = {suite.script for suite in suites}
    for pattern in SCRIPTS:
        for path in sorted((ROOT / "tests").glob(pattern)):
            name = str(path.relative_to(ROOT))
            if os.access(path, os.X_OK) and name not in listed:
                found.append(f"{name} is executable, but has no row")
    for group in range(GROUPS):
        seconds = sum(portion_of(suite).seconds for suite in suites if suite.slice == group)
        if not 0 < seconds <= GROUP_SECONDS:
            found.append(f"the suites of slice {group} take {seconds} s; 1 to {GROUP_SECONDS} are allowed")
    return found


def main() -> int:
    found = faults(load())
    for fault in found:
        print(f"tests/suites.toml: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Which suites a run has: by tier, by the touched paths, or by the slice of the heavy tiers."""
import fnmatch
import os

from table import GROUPS, Suite, portion_of


def is_touched(suite: Suite, touched: set[str] | None) -> bool:
    """Whether a touched file matches one of the suite's patterns. None: the touched files are not known."""
    if touched is None:
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for name in touched for pattern in suite.paths)


def can_run(suite: Suite) -> bool:
    return not suite.root or os.geteuid() == 0


def for_change(suites: list[Suite], touched: set[str] | None) -> list[Suite]:
    """The suites of `make test`: tier `change`, and those of tier `path` whose files are touched."""
    return [suite for suite in suites
            if suite.tier == "change" or (suite.tier == "path" and is_touched(suite, touched))]


def for_slice(suites: list[Suite], touched: set[str] | None, commits: int) -> list[Suite]:
    """The slice of the heavy tiers. The number of commits selects one of the groups. Suites that the
    change runs in any case are left out."""
    ran = {suite.name for suite in for_change(suites, touched)}
    return [portion_of(suite) for suite in suites
            if suite.slice == commits % GROUPS and suite.name not in ran]


def named(suites: list[Suite], names: list[str]) -> list[Suite]:
    """The suites with these names. Raises SystemExit if one does not exist."""
    known = {suite.name: suite for suite in suites}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"tests/suites.toml has no suite with this name: {', '.join(unknown)}")
    return [known[name] for name in names]


def needs(suites: list[Suite]) -> list[str]:
    """The make targets that the suites need, without repetitions."""
    return list(dict.fromkeys(target for suite in suites for target in suite.needs))

"""The table of all suites in tests/README.md. `make test-all` writes it; its age has a limit."""
import datetime
import pathlib
import re

import tree
from report import Totals
from table import ROOT, Suite

PAGE = ROOT / "tests/README.md"
BEGIN, END = "<!-- suites: begin -->", "<!-- suites: end -->"
MOST_COMMITS = 150
COMMIT = re.compile(r"^(?:`make test-all` wrote this table at|No run of `make test-all` since) commit "
                    r"([0-9a-f]+)", re.MULTILINE)


def seconds_of(suite: Suite, totals: Totals | None) -> int:
    """The measured seconds of a suite with all its shards, or the expected ones if it did not run."""
    walls = [result.wall_s for result in totals.results if result.job.suite_name == suite.name] \
        if totals else []
    return round(max(walls)) if walls else suite.seconds


def table(suites: list[Suite], totals: Totals | None) -> str:
    rows = [f"| `{suite.name}` | {suite.tier} | {seconds_of(suite, totals)} | {suite.protects} |"
            for suite in suites]
    return "\n".join(["| suite | tier | seconds | protects |", "|---|---|---|---|", *rows])


def text(suites: list[Suite], totals: Totals | None) -> str:
    """What stands between the markers. Without totals the seconds are the expected ones."""
    at = f"commit {tree.git('rev-parse', '--short=12', 'HEAD')}, {datetime.date.today()}."
    head = (f"`make test-all` wrote this table at {at} Its last line was: {totals.closing_line}." if totals
            else f"No run of `make test-all` since {at} The seconds are expected ones.")
    repeated = totals.repeated if totals else []
    again = f" These suites ran again on the same tree: {', '.join(repeated)}." if repeated else ""
    return f"{head}{again}\n\n{table(suites, totals)}\n"


def write(suites: list[Suite], totals: Totals | None, page: pathlib.Path = PAGE) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text(suites, totals)}{END}{after}", encoding="utf-8")


def fault_of_age(page: pathlib.Path = PAGE) -> str:
    """Why the table is too old, or an empty text. Without history the table counts as new."""
    found = COMMIT.search(page.read_text(encoding="utf-8"))
    if not found:
        return "tests/README.md does not name the commit of the last `make test-all`; run it"
    try:
        behind = int(tree.git("rev-list", "--count", f"{found[1]}..HEAD"))
    except tree.NoHistory as reason:
        print(f"the age of the table in tests/README.md is not known: {reason}")
        return ""
    if behind <= MOST_COMMITS:
        return ""
    return (f"the last `make test-all` is {behind} commits old, more than {MOST_COMMITS}: "
            "run it, and commit tests/README.md")

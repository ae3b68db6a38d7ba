#!/usr/bin/env python3
"""Runs the suites of tests/suites.toml beside each other: `make test` and `make test-all` call it.

    run.py [OPTION OF DOCTEST ...]     what a change must pass; with options only the doctest programs
    run.py --all                       every suite; if all pass, writes the table in tests/README.md
    run.py --all --resume              the same without the suites that have passed on this very tree
    run.py --slice                     the part of the heavy tiers that this commit has to run
    run.py --only SUITE...             these suites
    run.py --needs, --list, --age      see --help

Prints the output of each suite when the suite ends. Repeats at the end what failed or was skipped, lists
the slowest suites, and closes with "N passed, N failed" summed over all suites, and ", N skipped" if tests
could not run on this machine. LANES is the number of suites at once. HOLDFAST_SEED is the first seed of
random tests.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import uuid

sys.dont_write_bytecode = True  # build/ is the only place for generated files
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/runner"))
import choice  # noqa: E402, these need the path above
import kept  # noqa: E402
import page  # noqa: E402
import rerun  # noqa: E402
import table  # noqa: E402
import tree  # noqa: E402
from job import Job, environment_without_make  # noqa: E402
from lanes import IdleMeter, Lanes  # noqa: E402
from report import Totals  # noqa: E402
from table import GROUPS, Suite  # noqa: E402

LOGS = pathlib.Path("build/tests")
KEPT = LOGS / "passed.json"
LANES = 6
STOP_GRACE_S = 10
HEAVY_SEEDS = 1_000_000  # the heavy tier begins so many seeds behind those of each change
SERVER = "build/asan/holdfast-server"
PROGRAMS = {"HOLDFAST_SERVER": SERVER, "REDIS_SERVER": "build/redis-server",
            "HOLDFAST_TRANSCRIPTS": "tests/transcripts"}
CASES = re.compile(r"current filters: (\d+)")


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """The options, and those that are left for doctest."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="run every suite")
    parser.add_argument("--resume", action="store_true",
                        help="with --all: only the suites that have not passed on this very tree")
    parser.add_argument("--slice", action="store_true", help="run the slice of the heavy tiers")
    parser.add_argument("--only", nargs="+", metavar="SUITE", help="run these suites")
    parser.add_argument("--needs", action="store_true", help="print the make targets that the suites need")
    parser.add_argument("--list", action="store_true", help="print the suites that would run")
    parser.add_argument("--age", action="store_true",
                        help="fail if the table in tests/README.md is too old")
    options, rest = parser.parse_known_args()
    if options.resume and not options.all:
        parser.error("--resume needs --all")
    return options, rest


def touched_files() -> set[str] | None:
    """The files that differ from the base; None, with a line that says why, if git cannot tell."""
    try:
        return tree.changed_files()
    except tree.NoHistory as reason:
        print(f"the touched files are not known, so all suites by touched path run: {reason}",
              file=sys.stderr)
        return None


def chosen_suites(options: argparse.Namespace, for_doctest: list[str]) -> list[Suite]:
    suites = table.load()
    if options.only:
        return choice.named(suites, options.only)
    if for_doctest:
        return doctest_suites(suites, for_doctest)
    if options.all:
        return suites
    if options.slice:
        return choice.for_slice(suites, touched_files(), tree.commits())
    return choice.for_change(suites, touched_files())


def doctest_suites(suites: list[Suite], for_doctest: list[str]) -> list[Suite]:
    """Each doctest program once, with these options only."""
    programs = {suite.program: suite for suite in suites if suite.program and suite.tier == "change"}
    return [dataclasses.replace(suite, name=pathlib.Path(program).name, arguments=tuple(for_doctest),
                                shards=1, seeded=False)
            for program, suite in programs.items()]


def cases_of(suite: Suite) -> int:
    """The number of test cases of a doctest program; 0 if it does not say."""
    try:
        done = subprocess.run([*suite.words, "--count"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    found = CASES.search(done.stdout)
    return int(found[1]) if found else 0


def ranges(cases: int, shards: int) -> list[tuple[int, int]]:
    """The first and the last case of each shard, counted from 1. Their sizes differ by at most 1."""
    edges = [cases * shard // shards for shard in range(shards + 1)]
    return [(first + 1, last) for first, last in zip(edges, edges[1:]) if last > first]


def filled(text: str, seed: int) -> str:
    """A word of the table with the values of this run in place of `{...}`."""
    values = {"{seed}": seed, "{next_seed}": seed + HEAVY_SEEDS, "{cores}": os.cpu_count(),
              "{part}": tree.commits() // GROUPS if "{part}" in text else ""}
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text


def jobs_of(suite: Suite, seed: int) -> list[Job]:
    """The jobs of a suite: one, or one for each shard."""
    job = Job(suite.name, suite.name, [filled(word, seed) for word in suite.words], suite.weight,
              suite.seconds, suite.sum, suite.limit_s,
              {name: filled(value, seed) for name, value in suite.environment.items()},
              (suite.program or SERVER) if suite.seeded else "")
    cases = cases_of(suite) if suite.shards > 1 else 0
    if not cases:
        return [job]
    return [dataclasses.replace(job, name=f"{suite.name}-{number}", cases=last - first + 1,
                                words=[*job.words, f"--first={first}", f"--last={last}"])
            for number, (first, last) in enumerate(ranges(cases, suite.shards), 1)]


def set_environment(seed: int, heavy: bool) -> None:
    """What all suites inherit. The check for uses after a return costs a third of the time, so only
    `make test-all` has it."""
    for name, value in PROGRAMS.items():
        os.environ.setdefault(name, value)
    os.environ["HOLDFAST_SEED"] = str(seed)
    os.environ.setdefault("HOLDFAST_RUN", uuid.uuid4().hex)
    if heavy:
        os.environ["HOLDFAST_THOROUGH"] = "1"
    os.environ["ASAN_OPTIONS"] = ":".join([f"detect_stack_use_after_return={int(heavy)}",
                                           "strict_string_checks=1", os.environ.get("ASAN_OPTIONS", "")])
    os.environ["UBSAN_OPTIONS"] = "print_stacktrace=1:" + os.environ.get("UBSAN_OPTIONS", "")


def makes(targets: list[str]) -> bool:
    done = subprocess.run(["make", "--silent", "-k", *targets], env=environment_without_make(),
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def unbuilt(targets: list[str]) -> set[str]:
    """Builds what the suites need. Returns the targets that cannot be built."""
    if not targets or makes(targets):
        return set()
    return {target for target in targets if not makes([target])}


def stop_on_signal(lanes: Lanes) -> None:
    """SIGINT and SIGTERM end the jobs. A signal that comes while a job starts is handled after that."""
    def stop(number, _frame):
        if lanes.starting:
            lanes.signals.append(number)
            return
        lanes.stop(signal.SIGTERM, STOP_GRACE_S)
        os._exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def rerun_seeded(totals: Totals, seed: int, lanes: Lanes) -> None:
    """Runs the seeded suites that failed on the base. Those that fail there too do not count."""
    for result in totals.results:
        if result.failed and result.job.target and rerun.is_found_in_base(result, seed, lanes):
            result.failed = 0


def results_to_keep(resumes: bool) -> kept.Kept | None:
    """Those of earlier runs of all suites on this tree count only if the run resumes them. None: git does
    not know the tree, so nothing can be resumed."""
    if not resumes:
        KEPT.unlink(missing_ok=True)
    try:
        return kept.Kept(KEPT, tree.tree_hash())
    except tree.NoHistory:
        return None


def run_jobs(jobs: list[Job], lanes: Lanes, totals: Totals, results: kept.Kept | None) -> None:
    """Runs the jobs that have not passed before."""
    left = []
    for job in jobs:
        if found := results and results.passed(job, LOGS):
            totals.results.append(found)
        else:
            left.append(job)
    if totals.results:
        print(f"{len(totals.results)} suites and shards have passed on this tree before", flush=True)

    def report(result):
        totals.add(result)
        if results:
            results.add(result)
    lanes.run(left, report)
    totals.repeated = results.repeated() if results else []


def run(suites: list[Suite], options: argparse.Namespace) -> Totals:
    chosen = [suite for suite in suites if choice.can_run(suite)]
    broken = unbuilt(choice.needs(chosen))
    seed = tree.seed()
    origin = "from HOLDFAST_SEED" if "HOLDFAST_SEED" in os.environ else "from the tree's hash"
    print(f"seed {seed} ({origin})", flush=True)
    set_environment(seed, options.all)
    totals = Totals()
    totals.left_out = [f"{suite.name}: it needs root" for suite in suites if not choice.can_run(suite)]
    totals.unbuilt = [f"{suite.name}: make cannot build {target}; see above" for suite in chosen
                      for target in suite.needs if target in broken]
    jobs = [job for suite in chosen if not broken.intersection(suite.needs) for job in jobs_of(suite, seed)]
    meter = None if "LANES" in os.environ else IdleMeter()
    lanes = Lanes(int(os.environ.get("LANES", LANES)), os.cpu_count() or 1, LOGS, meter)
    stop_on_signal(lanes)
    run_jobs(jobs, lanes, totals, results_to_keep(options.resume) if options.all else None)
    rerun_seeded(totals, seed, lanes)
    return totals


def print_list(suites: list[Suite]) -> None:
    for suite in sorted(suites, key=lambda suite: -suite.seconds):
        print(f"{suite.seconds:5} s  {suite.tier:6} {suite.weight:4}  {suite.name}: {suite.protects}")
    print(f"{sum(suite.seconds for suite in suites):5} s in all")


def main() -> int:
    os.chdir(ROOT)
    options, for_doctest = arguments()
    if options.age:
        fault = page.fault_of_age()
        print(fault, end="\n" * bool(fault))
        return 1 if fault else 0
    suites = chosen_suites(options, for_doctest)
    needed = choice.needs([suite for suite in suites if choice.can_run(suite)])
    if options.needs or options.list:
        print(" ".join(needed)) if options.needs else print_list(suites)
        return 0
    totals = run(suites, options)
    status = totals.close()
    if options.all and status == 0:
        page.write(suites, totals)
    return status


if __name__ == "__main__":
    sys.exit(main())

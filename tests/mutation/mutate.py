#!/usr/bin/env python3
"""Shows that the tests detect wrong code: changes the source by one mutation of the list after the other,
and runs the tests, which must fail.

mutate.py [--jobs N] [WORD ...]   runs all mutations, or those with one of the words in their name or file
mutate.py --named [WORD ...]      runs only the test that the list names for each mutation
mutate.py --simulations [WORD ...]
                                  runs only the simulations: prints for each mutation the first seed that
                                  fails, and the number of steps until then
mutate.py --first N --seconds S   begins with mutation N of those chosen, and ends after S seconds
mutate.py --asan                  uses the programs with sanitizers, and the objects of build/asan
mutate.py --check                 checks the list only: every old text must be in its file exactly once
mutate.py --table                 prints the rows of the table in docs/safety.md

A mutation is applied in a copy of the project, build/mutations/tree. The test that the list names runs
first. If it does not fail, all other tests run until one fails: then the list should name that test. The
script fails if a test other than the named one detects a mutation, or if no test does (a survivor).
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import typing

sys.dont_write_bytecode = True  # build/ is the only place for generated files
import mutations

ROOT = mutations.ROOT
sys.path.insert(0, str(ROOT / "tests/runner"))
import built_copy  # noqa: E402, it needs the path above

BUILD = ROOT / "build/mutations"
TREE = BUILD / "tree"
NOTE = BUILD / "mutated-object"  # exists while an object of a mutation is in the copy
BUILD_LIMIT_S = 3600
NOT_COPIED = ("docs/", "bench/results/")


class Suite(typing.NamedTuple):
    """The tests of a kind. `target`: what to build. `covers`: the folders of src/ that they execute."""
    target: str
    command: list
    limit_s: int
    covers: tuple
    settings: dict = {}


QUICK = "build/quick-tests"
SERVER_STEPS = 300_000  # of the simulation of the server
EVERYTHING = ("src/",)
SUITES = {
    "unit": Suite(QUICK, [QUICK, "-tce=transcripts*"], 300, EVERYTHING),
    "transcript": Suite(QUICK, [QUICK, "-tc=transcripts*"], 60, ("src/core/",)),
    "simulation": Suite("build/quick-simulation", ["build/quick-simulation"], 300, ("src/core/",)),
    "sim": Suite("build/sim", ["build/sim", "-tc=*clients on several*"], 300,
                 ("src/core/lock/", "src/client/"), {"HOLDFAST_SCHEDULES": "5000"}),
    "sim-server": Suite("build/sim-server", ["build/sim-server", "1", str(SERVER_STEPS), "1000", "1"], 600,
                        ("src/core/", "src/io/disk/", "src/io/net/", "src/io/os/")),
    "integration": Suite("build/quick-integration-tests build/holdfast-server",
                         ["build/quick-integration-tests", "-tce=chaos*,1?655*"], 600, EVERYTHING),
}
# The simulations, and what the output of each says about its first fault: the seed and the step.
SIMULATIONS = {"simulation": (r"seed (\d+) fails", r"fails, step (\d+)"),
               "sim": (r"seed (\d+): ", None),
               "sim-server": (r"seed (\d+) fails", r"(\d+) steps,")}
# With --asan: the programs with sanitizers, in place of those above.
ASAN_PROGRAMS = {QUICK: "build/asan/unit-tests", "build/quick-simulation": "build/asan/unit-tests",
                 "build/sim": "build/asan/unit-tests", "build/sim-server": "build/asan/server-simulation",
                 "build/quick-integration-tests": "build/asan/integration-tests",
                 "build/holdfast-server": "build/asan/holdfast-server",
                 "build/holdfast": "build/asan/holdfast"}
ASAN_SIM_STEPS = "20000"
asan = False  # --asan
SCRIPTS = ("tests/integration/folder_test.py", "tests/integration/crash_test.py",
           "tests/integration/clock_test.py", "tests/integration/snapshot_test.py",
           "tests/integration/waiting_test.py", "tests/integration/healing_test.py")
SCRIPT_TARGET = "build/holdfast-server build/holdfast build/redis-server"
SCRIPT_LIMIT_S = 300


class Outcome(typing.NamedTuple):
    """`failed`: the tests failed, or exceeded their time. `by` is the first test that failed."""
    failed: bool
    by: str
    output: str


def environment(settings):
    # The list fits the first seeds, and the part of the long tests that a change runs with them.
    left_out = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "HOLDFAST_SEED", "HOLDFAST_THOROUGH")
    inherited = {k: v for k, v in os.environ.items() if k not in left_out}
    return {**inherited, "HOLDFAST_TRANSCRIPTS": "tests/transcripts", "REDIS_SERVER": "build/redis-server",
            "HOLDFAST_SERVER": programs("build/holdfast-server"), "HOLDFAST_SIM_SHORTEN": "0", **settings}


def programs(words):
    """The words of a command or of a list of targets, with the programs of this run in them."""
    if not asan:
        return words
    return " ".join(ASAN_PROGRAMS.get(word, word) for word in words.split(" "))


def command_of(suite, options):
    """The command that runs a suite with these options of doctest; without some, with its own ones."""
    if asan and suite.command[0] == "build/sim-server":
        options = ["-tc=server simulation: no stop*"]
    words = suite.command[:1] + options if options else suite.command
    return [programs(words[0]), *words[1:]]


def run(command, limit_s, settings=None, folder=TREE):
    """Runs a command in the copy, or in another folder. Returns its exit status, or None if it did not end
    in time, and its output."""
    with subprocess.Popen(command, cwd=folder, env=environment(settings or {}), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=limit_s)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]


def project_files():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith(NOT_COPIED)]
    return [name for name in names if (ROOT / name).is_file()]


def make_copy():
    """Makes the copy equal to the project. Its objects stay, except one that a mutation has left."""
    if NOTE.exists():
        (TREE / NOTE.read_text(encoding="utf-8")).unlink(missing_ok=True)
        NOTE.unlink()
    names = project_files()
    for name in names:
        source, copy = ROOT / name, TREE / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        shutil.copymode(source, copy)
    remove_unknown(names)


def make_copy_with_objects(jobs):
    """Makes the copy anew, with the objects of build/asan and the times of all files, so that make compiles
    nothing again. First build/asan must be up to date, as its precompiled header names its folder."""
    build(" ".join(ASAN_PROGRAMS), jobs, False, ROOT)
    built_copy.make(ROOT, TREE, project_files())


def remove_unknown(names):
    """Removes the files of the copy that the project no longer has."""
    known = {TREE / name for name in names}
    for folder in ("src", "include", "tests"):
        for path in (TREE / folder).rglob("*"):
            if path.is_file() and path not in known and "__pycache__" not in path.parts:
                path.unlink()


def build(targets, jobs, mutated, folder=TREE):
    """Builds in the copy, or in another folder. An object of a mutation is compiled without optimisation:
    it runs only once."""
    command = ["make", "--silent", "--no-print-directory", f"-j{jobs}", *programs(targets).split()]
    if asan and folder == TREE:  # no repository, and another commit would link all programs again
        command.append(f"COMMIT={(ROOT / 'build/commit').read_text(encoding='utf-8').strip()}")
        command += built_copy.MAKE_ARGUMENTS
    status, output = run(command + ["RELEASE=-O0"] * mutated, BUILD_LIMIT_S, folder=folder)
    if status != 0:
        raise RuntimeError(f"make {targets} failed:\n{output[-3000:]}")


def is_there(suite):
    """Whether the project has the program of the suite."""
    program = SUITES[suite].target.split()[0]
    return any(f"{program}:" in path.read_text(encoding="utf-8") for path in TREE.glob("tests/**/*.mk"))


def failures(output):
    """The names of the doctest cases that failed, of the first other test that failed, or the last line."""
    cases = re.findall(r"^TEST CASE:  (.*(?:\n  \S.*)*)", output, re.MULTILINE)
    if cases:
        return "; ".join(dict.fromkeys(" ".join(case.split()) for case in cases))
    for pattern in (r"^FAILED (\S+)", r"^(seed \d+ fails: .*)$",
                    r"^(redlock simulation.*: seed \d+: .*)$", r"(Assertion .* failed)"):
        if match := re.search(pattern, output, re.MULTILINE):
            return " ".join(match[1].split())
    return (output.strip().splitlines() or ["no output"])[-1]


def outcome(what, command, limit_s, settings=None):
    status, output = run(command, limit_s, settings)
    if status is None:
        return Outcome(True, f"{what}: it did not end within {limit_s} s", output)
    return Outcome(status != 0, f"{what}: {failures(output)}", output)


def filter_of(name):
    """A filter of doctest for this name: in a filter a comma separates names."""
    return name.replace(",", "?")


def target_of(mutation):
    return SCRIPT_TARGET if mutation.kind == "script" else SUITES[mutation.kind].target


def run_named(mutation):
    """Runs the test that the list names."""
    kind, name = mutation.kind, mutation.test_name
    if kind == "script":
        return outcome(kind, ["python3", *name.split()], SCRIPT_LIMIT_S)
    suite = SUITES[kind]
    options = []
    if kind == "transcript":
        options = ["-tc=transcripts*", f"-sc={filter_of(name)}"]
    elif name:
        options = [f"-tc={filter_of(name)}"]
    settings = {**suite.settings, "HOLDFAST_SIM_SERVER_STEPS": ASAN_SIM_STEPS} if asan else suite.settings
    return outcome(kind, command_of(suite, options), suite.limit_s, settings)


def run_others(mutation, jobs):
    """Runs all other tests of the mutated file until one fails. Returns the last outcome."""
    last = Outcome(False, "", "")
    for kind, suite in SUITES.items():
        if last.failed or not mutation.file.startswith(suite.covers) or not is_there(kind):
            continue
        build(suite.target, jobs, True)
        last = outcome(kind, suite.command, suite.limit_s, suite.settings)
    for script in SCRIPTS:
        if last.failed:
            break
        build(SCRIPT_TARGET, jobs, True)
        last = outcome(script, ["python3", script], SCRIPT_LIMIT_S)
    return last


def object_of(file):
    """The object of a source in the copy. Most sources are part of a unit (src/units.mk)."""
    objects = TREE / ("build/asan" if asan else "build/release")
    for unit in (TREE / "build/units").glob("*.cc"):
        if f'#include "{file}"\n' in unit.read_text(encoding="utf-8"):
            return objects / "src/units" / f"{unit.stem}.o"
    return objects / pathlib.Path(file).with_suffix(".o")


class Applied:
    """The mutation in the copy, while the object lives. Afterwards its file and the object of that file are
    the ones from before, with their times, so that nothing is compiled again."""

    def __init__(self, mutation):
        self.mutation = mutation
        self.source = TREE / mutation.file
        self.object = object_of(mutation.file)
        self.kept = BUILD / "kept.o"

    def __enter__(self):
        self.text = self.source.read_text(encoding="utf-8")
        self.times = self.source.stat()
        NOTE.write_text(str(self.object.relative_to(TREE)), encoding="utf-8")
        shutil.copy2(self.object, self.kept)
        self.source.write_text(mutations.changed(self.mutation, self.text), encoding="utf-8")

    def __exit__(self, *_):
        self.source.write_text(self.text, encoding="utf-8")
        os.utime(self.source, ns=(self.times.st_atime_ns, self.times.st_mtime_ns))
        shutil.copy2(self.kept, self.object)
        NOTE.unlink()


def verdict_of(mutation, jobs, alone):
    """The verdict on one mutation, and what detected it."""
    try:
        with Applied(mutation):
            build(target_of(mutation), jobs, True)
            named = run_named(mutation)
            if named.failed:
                return "detected", named.by
            if alone:
                return "not detected", mutation.test
            other = run_others(mutation, jobs)
            return ("other test", other.by) if other.failed else ("SURVIVOR", "no test failed")
    except RuntimeError as error:
        return "no program", str(error)


def simulations_of(mutation):
    """The simulations that execute the mutated file, the one of the server first."""
    return [kind for kind in reversed(SIMULATIONS) if mutation.file.startswith(SUITES[kind].covers)]


def found_by(kind, output):
    """The seed and the step of the first fault, as far as the simulation printed them."""
    seed, step = (pattern and re.search(pattern, output) for pattern in SIMULATIONS[kind])
    return f"{kind}" + (f": seed {seed[1]}" if seed else "") + (f", {int(step[1]):,} steps" if step else "")


def simulate(mutation, jobs):
    """Runs the simulations of a mutation. Returns the verdict, and what each of them found."""
    found, detected = [], False
    try:
        with Applied(mutation):
            for kind in simulations_of(mutation):
                suite = SUITES[kind]
                build(suite.target, jobs, True)
                result = outcome(kind, suite.command, suite.limit_s, suite.settings)
                detected |= result.failed
                by = f"{found_by(kind, result.output)} ({result.by})"
                found.append(by if result.failed else f"not {kind}")
    except RuntimeError as error:
        return "no program", str(error)
    return "detected" if detected else "not detected", "; ".join(found)


def check_clean(chosen, jobs):
    """Runs the named tests without a mutation. Returns those that fail: they detect nothing."""
    build(" ".join(dict.fromkeys(map(target_of, chosen))), jobs, False)
    failed = []
    for mutation in {mutation.test: mutation for mutation in chosen}.values():
        clean = run_named(mutation)
        if clean.failed:
            failed.append(f"{mutation.test} fails without a mutation: {clean.by}\n{clean.output[-2000:]}")
    return failed


def report(chosen, run_one, seconds=None):
    """Runs the mutations, as many as begin within the seconds, and prints a line for each. Returns the
    number of those not detected by the named test."""
    wrong, done, start = [], 0, time.monotonic()
    for mutation in chosen:
        began = time.monotonic()
        if seconds is not None and began - start > seconds:
            break
        done += 1
        verdict, by = run_one(mutation)
        print(f"{verdict:12} | {mutation.name} | {by} | {time.monotonic() - began:.0f} s", flush=True)
        if verdict != "detected":
            wrong.append((verdict, mutation))
    print(f"{done - len(wrong)} of {done} mutations are detected by their tests")
    for verdict, mutation in wrong:
        print(f"FAILED ({verdict}): {mutation.name}, in {mutation.file}; its test is '{mutation.test}'")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="check the list only")
    parser.add_argument("--table", action="store_true", help="print the rows of the table of the page")
    parser.add_argument("--named", action="store_true", help="run the named tests only, not all others")
    parser.add_argument("--simulations", action="store_true", help="run the simulations only")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with mutation N")
    parser.add_argument("--seconds", type=float, help="begin no mutation after so many seconds")
    parser.add_argument("--asan", action="store_true",
                        help="use the programs with sanitizers; with --named only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at once")
    parser.add_argument("words", nargs="*", metavar="WORD", help="a part of a name or of a file")
    options = parser.parse_args()
    every = mutations.load()
    if options.table:
        print("\n".join(mutations.table(every)))
        return 0
    if faults := list(mutations.faults(every)):
        print("\n".join(f"tests/mutation: {fault}" for fault in faults))
        return 1
    if options.check:
        return 0
    chosen = [m for m in every
              if not options.words or any(word in m.name or word in m.file for word in options.words)]
    if chosen:
        first = options.first % len(chosen)
        chosen = chosen[first:] + chosen[:first]
    global asan
    asan = options.asan
    if asan and not options.named:
        parser.error("--asan needs --named")
    make_copy_with_objects(options.jobs) if asan else make_copy()
    if options.simulations:
        chosen = [m for m in chosen if simulations_of(m)]
        build(" ".join(SUITES[kind].target for kind in SIMULATIONS), options.jobs, False)
        report(chosen, lambda mutation: simulate(mutation, options.jobs))
        return 0
    if options.seconds is None and (failed := check_clean(chosen, options.jobs)):
        print("\n".join(failed))
        return 1
    if options.seconds is not None:  # the suites run their tests without a mutation
        build(" ".join(dict.fromkeys(map(target_of, chosen))), options.jobs, False)
    wrong = report(chosen, lambda mutation: verdict_of(mutation, options.jobs, options.named),
                   options.seconds)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

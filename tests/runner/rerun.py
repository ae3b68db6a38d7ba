"""A seeded suite that failed runs again on the base, with the same seed.

The base is a copy of this tree in build/base, with the base's version of each file that differs. The
objects are copied too, so that make compiles only what depends on these files. If the base fails with the
same seeds, the change did not cause the fault: the fault goes into tests/open_seeds.txt.
"""
import dataclasses
import datetime
import functools
import pathlib
import re
import subprocess

import built_copy
import tree
from job import Job, Result
from lanes import Lanes

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = ROOT / "build/base"
OPEN_SEEDS = ROOT / "tests/open_seeds.txt"
# The failed seed in the output of a simulation or of the differential test, and the fault.
FAULT = re.compile(r"^(?:redlock simulation: seed (\d+):|(?:  logged: )?seed (\d+) fails[,:]"
                   r"|FAILED difference.*--session (\d+),) *(.*)$", re.MULTILINE)
BUILD_LIMIT_S = 1800


def faults_in(text: str) -> dict[str, str]:
    """The fault of each failed seed, or session, in the output of a suite."""
    found: dict[str, str] = {}
    for *numbers, fault in FAULT.findall(text):
        found.setdefault("".join(numbers), fault)
    return found


@functools.cache
def copy_tree(base: str, folder: pathlib.Path) -> None:
    """Makes the folder: the files of the base, with the times and the objects of this tree."""
    built_copy.make(ROOT, folder, (name for name in tree.lines("ls-files") if (ROOT / name).is_file()))
    for name in tree.lines("diff", "--name-only", "--no-renames", base):
        (folder / name).unlink(missing_ok=True)
    # -R: from this tree to the base, so that a file that only the base has is an added one.
    if changed := tree.lines("diff", "-R", "--name-only", "--no-renames", "--diff-filter=d", base):
        archive = subprocess.run(["git", "archive", base, *changed], cwd=ROOT, check=True,
                                 capture_output=True)
        subprocess.run(["tar", "-xm", "-C", folder], input=archive.stdout, check=True)


def run_on_base(job: Job, lanes: Lanes) -> str:
    """Builds the program of the base that the job needs, and runs the job there. Returns its output; empty
    if the base cannot be built. Prints the CPU time, so that the limit of .ci/stages.py leaves it out."""
    base = tree.base()
    print(f"== {job.name}: failed; runs on the base {base[:12]} with the same seed", flush=True)
    copy_tree(base, BASE)
    made = Job(f"{job.name}-base-build", "", ["make", "--silent", *built_copy.MAKE_ARGUMENTS, job.target],
               "cpu", 0, "status", BUILD_LIMIT_S, folder=BASE)
    again = dataclasses.replace(job, name=f"{job.name}-base", folder=BASE)
    results: list[Result] = []
    for step in (made, again):
        if not any(result.failed for result in results):
            lanes.run([step], results.append)
    print(f"== on the base: {sum(result.cpu_s for result in results) / 60:.1f} minutes of CPU", flush=True)
    if len(results) == 1:
        print(f"the base cannot be built: {results[0].why}\n{results[0].text}")
        return ""
    return results[1].text


def is_found_in_base(result: Result, seed: int, lanes: Lanes) -> bool:
    """Whether the base has all faults of this result. Then prints and keeps them."""
    ours = faults_in(result.text)
    if not ours or result.why:
        return False
    try:
        theirs = faults_in(run_on_base(result.job, lanes))
    except (tree.NoHistory, OSError, subprocess.SubprocessError) as failure:
        print(f"{result.job.name}: the base cannot be copied: {failure}")
        return False
    if not ours.keys() <= theirs.keys():
        return False
    with OPEN_SEEDS.open("a", encoding="utf-8") as kept:
        for number, fault in ours.items():
            print(f"FOUND in the base too: seed {number} of {result.job.suite_name}: {fault}")
            kept.write(f"{datetime.date.today()}, {result.job.suite_name}, {seed}: {number}, {fault}\n")
    return True

#!/usr/bin/env python3
"""Tests the runner of the suites (tests/run.py, tests/runner) with small suites of its own: suites that
fail, crash, hang and are skipped; the choice by tier, path and slice; seeds. The last line is "N passed,
N failed"."""
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest.mock

sys.dont_write_bytecode = True  # build/ is the only place for generated files
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/runner")]
import choice  # noqa: E402, these need the path above
import kept  # noqa: E402
import page  # noqa: E402
import rerun  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402
import tree  # noqa: E402
from harness import LIMIT_S, equal, has, run_tests, test, until  # noqa: E402
from job import Job  # noqa: E402
from lanes import Lanes  # noqa: E402
from report import Totals  # noqa: E402


def shell(name, script, **fields):
    """A job that runs this script of a shell."""
    values = {"weight": "wait", "seconds": 1, "sum": "script", "limit_s": 30, **fields}
    return Job(name, name, ["sh", "-c", script], **values)


def played(folder, *jobs, lanes=6, cores=2):
    """Runs the jobs. Returns their results by name, the exit status, and the output."""
    totals, out = Totals(), io.StringIO()
    with contextlib.redirect_stdout(out):
        Lanes(lanes, cores, folder / "logs").run(list(jobs), totals.add)
        status = totals.close()
    return {result.job.name: result for result in totals.results}, status, out.getvalue()


def counts(result):
    return result.passed, result.failed, result.skipped


@test
def a_suite_that_passes_is_counted_and_only_the_sum_of_all_stands_alone(folder):
    results, status, out = played(folder, shell("one", "echo hello; echo '3 passed, 0 failed'"),
                                  shell("two", "echo '4 passed, 0 failed'"))
    equal((counts(results["one"]), status), ((3, 0, 0), 0))
    has(out.encode(), b"hello")
    alone = [line for line in out.splitlines() if line.endswith("failed") and line[0].isdigit()]
    equal((alone, out.splitlines()[-1]), (["7 passed, 0 failed"], "7 passed, 0 failed"))


@test
def a_suite_that_fails_is_repeated_at_the_end(folder):
    script = "echo 'FAILED x: wrong'; echo '1 passed, 2 failed'; exit 1"
    results, status, out = played(folder, shell("bad", script))
    equal((counts(results["bad"]), status), ((1, 2, 0), 1))
    has(out.encode(), b"== failed in bad\nFAILED x: wrong")
    equal(out.splitlines()[-1], "1 passed, 2 failed")


@test
def a_suite_that_crashes_or_fails_in_spite_of_its_sum_counts_as_failed(folder):
    results, status, _ = played(folder, shell("crash", "kill -SEGV $$"),
                                shell("status", "echo '5 passed, 0 failed'; exit 3"),
                                shell("silent", "true"))
    found = [counts(results[name]) for name in ("crash", "status", "silent")]
    equal(found, [(0, 1, 0), (5, 1, 0), (0, 1, 0)])
    equal((results["crash"].why, status), ("it ended with status -11 and did not print its sum", 1))


@test
def a_suite_that_hangs_ends_at_its_limit_with_all_its_processes(folder):
    began = time.monotonic()
    hangs = shell("hang", f"sleep 77 & echo $! >{folder}/pid; sleep 77", limit_s=0.3)
    results, status, _ = played(folder, hangs)
    equal((counts(results["hang"]), status, time.monotonic() - began < 60), ((0, 1, 0), 1, True))
    has(results["hang"].why.encode(), b"limit of 0.3 s")
    equal(is_running(int((folder / "pid").read_text())), False)


def is_running(pid):
    path = pathlib.Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().split()[2] != "Z"


@test
def skipped_tests_are_repeated_and_counted(folder):
    script = "echo 'SKIPPED y: no root'; echo '1 passed, 0 failed, 1 skipped'"
    _, status, out = played(folder, shell("some", script))
    has(out.encode(), b"== skipped in some\nSKIPPED y: no root")
    equal((status, out.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"))


@test
def a_suite_without_a_sum_counts_by_its_status(folder):
    results, _, _ = played(folder, shell("good", "true", sum="status"), shell("bad", "false", sum="status"))
    equal((counts(results["good"]), counts(results["bad"])), ((1, 0, 0), (0, 1, 0)))


@test
def lanes_limit_the_suites_that_keep_a_core_busy(folder):
    script = f"echo b >>{folder}/events; echo e >>{folder}/events; echo '1 passed, 0 failed'"
    played(folder, *(shell(f"cpu{n}", script, weight="cpu") for n in range(3)), cores=1)
    equal((folder / "events").read_text().split(), ["b", "e"] * 3)
    together = (f"echo b >>{folder}/begun; until [ $(wc -l <{folder}/begun) = 3 ]; do sleep 0.02; done;"
                "echo '1 passed, 0 failed'")
    _, status, _ = played(folder, *(shell(f"wait{n}", together) for n in range(3)), cores=1)
    equal(status, 0)


@test
def the_longest_suite_starts_first(folder):
    jobs = [shell(f"s{n}", "echo '1 passed, 0 failed'", seconds=n) for n in (1, 3, 2)]
    _, _, out = played(folder, *jobs, lanes=1)
    equal([line for line in out.splitlines() if line.endswith(": started")],
          [f"== s{n}: started" for n in (3, 2, 1)])


@test
def cpu_seconds_include_those_of_children(folder):
    loop = "python3 -c 'import time\nwhile time.process_time() < 0.3: pass'"
    results, _, _ = played(folder, shell("busy", f"{loop}; {loop}; echo '1 passed, 0 failed'"))
    equal(results["busy"].cpu_s >= 0.6, True)


@test
def a_signal_ends_the_runner_with_all_suites(folder):
    code = ("import sys, pathlib; sys.path[:0] = ['tests', 'tests/runner']; import run\n"
            "from lanes import Lanes; from job import Job\n"
            f"lanes = Lanes(2, 2, pathlib.Path('{folder}/logs')); run.stop_on_signal(lanes)\n"
            f"script = 'echo $$ >{folder}/pid; sleep 77; true'\n"
            "lanes.run([Job('a', 'a', ['sh', '-c', script], 'wait', 1, 'script', 30)], print)")
    runner = subprocess.Popen([sys.executable, "-B", "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL)
    pid = folder / "pid"
    while not (pid.exists() and pid.read_text().strip()):
        time.sleep(0.02)
    runner.send_signal(signal.SIGTERM)
    equal(runner.wait(LIMIT_S), 128 + signal.SIGTERM)
    until(lambda: not is_running(int(pid.read_text())))


@test
def shards_have_each_case_once(_):
    for cases, shards in ((843, 4), (4, 4), (3, 4), (1, 4), (10, 3)):
        found = run.ranges(cases, shards)
        covered = [case for first, last in found for case in range(first, last + 1)]
        equal(covered, list(range(1, cases + 1)))


@test
def a_shard_counts_its_own_cases_and_not_those_that_doctest_reports(folder):
    line = "[doctest] test cases: 843 | 842 passed | 1 failed | 0 skipped"
    results, _, _ = played(folder, shell("unit-1", f"echo '{line}'; exit 1", sum="doctest", cases=211))
    equal(counts(results["unit-1"]), (210, 1, 0))


@test
def the_table_has_no_fault_and_names_each_test(_):
    equal(table.faults(table.load()), [])
    suites = [suite for suite in table.load() if suite.name != "folder_test"]
    equal(table.faults(suites), ["tests/integration/folder_test.py is executable, but has no row"])


@test
def a_row_with_a_missing_file_or_field_is_a_fault(_):
    row = {"name": "x", "protects": "It.", "tier": "change", "weight": "wait", "seconds": 1}
    cases = (({"script": "tests/no_test.py"}, "does not exist"), ({}, "one of script"),
             ({"command": ["true"], "tier": "path"}, "paths belong"),
             ({"command": ["true"], "tier": "all"}, "slice"),
             ({"command": ["true"], "protects": "this"}, "sentence"),
             ({"command": ["true"], "weight": "x"}, "weight"))
    for fields, words in cases:
        found = table.faults_of(table.suite_of({**row, **fields}))
        equal((fields, any(words in fault for fault in found)), (fields, True))


@test
def touched_paths_choose_suites(_):
    suites = table.load()
    every = {suite.name for suite in suites if suite.tier == "path"}
    chosen = {suite.name for suite in choice.for_change(suites, {"docs/cli.md"})}
    equal((chosen & every, "folder_test" in chosen), (set(), True))
    cases = (("src/io/config/options.cc", "deb_test"), ("src/cli/show.cc", "deb_test"),
             ("Makefile", "deb_test"), ("include/holdfast/locks.h", "deb_test"),
             ("packaging/systemd/holdfast-server.service", "systemd_test"),
             ("packaging/kubernetes/service.yaml", "kubernetes_test"),
             ("packaging/Containerfile", "image_test"), ("src/io/http/page.cc", "dashboard_test"),
             ("src/core/lock/queue.cc", "libraries_npm"))
    for path, name in cases:
        equal((path, name in {suite.name for suite in choice.for_change(suites, {path})}), (path, True))
    equal(every <= {suite.name for suite in choice.for_change(suites, None)}, True)


@test
def the_slices_of_twelve_commits_have_every_suite_of_the_heavy_tiers(_):
    suites = table.load()
    heavy = {suite.name for suite in suites if suite.tier != "change"}
    for first in (0, 7, 1234):
        found = {suite.name for commit in range(first, first + 12)
                 for suite in choice.for_slice(suites, set(), commit)}
        equal(found, heavy)


@test
def a_suite_that_the_change_runs_is_not_in_its_slice(_):
    suites = table.load()
    equal([s.name for s in choice.for_slice(suites, None, 0) if s.tier == "path"], [])


@contextlib.contextmanager
def repository(folder):
    """A repository with two commits, the first one four hours older than the second."""
    before, here = dict(os.environ), os.getcwd()
    os.environ.update({f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER")
                       for what in ("NAME", "EMAIL")} | {"GIT_CONFIG_GLOBAL": "/dev/null"})
    for name in ("BASE", "HOLDFAST_SEED"):
        os.environ.pop(name, None)
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    try:
        tree.git("init", "-q", "-b", "main")
        for hours, name in ((0, "old"), (4, "new")):
            pathlib.Path(name).write_text(name)
            tree.git("add", name)
            os.environ["GIT_COMMITTER_DATE"] = f"@{1_700_000_000 + hours * 3600} +0000"
            tree.git("commit", "-q", "-m", name)
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


@test
def the_base_is_named_or_the_merge_base_or_three_hours_older(folder):
    with repository(folder):
        first, last = tree.git("rev-parse", "HEAD~1"), tree.git("rev-parse", "HEAD")
        equal((tree.base(), tree.changed_files()), (first, {"new"}))
        tree.git("update-ref", "refs/remotes/origin/main", last)
        equal(tree.base(), first)
        pathlib.Path("next").write_text("next")
        equal(tree.changed_files(), {"new", "next"})
        tree.git("add", "next")
        tree.git("commit", "-q", "-m", "next")
        equal((tree.base(), tree.changed_files()), (last, {"next"}))
        os.environ["BASE"] = first
        equal(tree.base(), first)


@test
def a_repository_without_an_older_commit_does_not_know_its_base(folder):
    with repository(folder):
        tree.git("checkout", "-q", "--orphan", "alone")
        tree.git("commit", "-q", "-m", "alone")
        try:
            tree.base()
        except tree.NoHistory as reason:
            return has(str(reason).encode(), b"3 hours older")
        raise AssertionError("it found a base")


@test
def the_seed_depends_on_the_content_of_the_tree_only(folder):
    with repository(folder):
        seed = tree.seed()
        tree.git("commit", "-q", "--amend", "-m", "another message")
        equal(tree.seed(), seed)
        pathlib.Path("new").write_text("changed")
        equal(tree.seed() == seed, False)
        pathlib.Path("new").write_text("new")
        equal(tree.seed(), seed)
        os.environ["HOLDFAST_SEED"] = "7"
        equal(tree.seed(), 7)


@test
def seeds_that_fail_are_read_from_the_output(_):
    out = ("noise\nredlock simulation: seed 12: two hold a lock\nseed 3 fails, step 4: wrong bytes\n"
           "  logged: seed 9 fails: lost\na_test.cc:9: MESSAGE: seed 5: a flaw on purpose\n"
           "FAILED difference 1, --seed 8 --session 77, 2 commands\n")
    equal(rerun.faults_in(out), {"12": "two hold a lock", "3": "step 4: wrong bytes", "9": "lost",
                                 "77": "2 commands"})


def program_that_fails_with(*seeds):
    lines = "".join(f"echo 'seed {seed} fails: lost'; " for seed in seeds)
    return f"{lines}echo '[doctest] test cases: 1 | {int(not seeds)} passed | {int(bool(seeds))} failed |'"


def found_in_base(folder, before, now):
    """Whether a program that fails with the seeds `now` has only faults of the base, where it fails with
    the seeds `before`. Also the output."""
    with repository(folder), contextlib.redirect_stdout(io.StringIO()) as out, \
            unittest.mock.patch.multiple(rerun, ROOT=folder, BASE=folder / "build/base",
                                         OPEN_SEEDS=folder / "open_seeds"):
        pathlib.Path("Makefile").write_text("build/program: source\n\tmkdir -p build && cp $< $@\n")
        pathlib.Path("source").write_text(program_that_fails_with(*before))
        tree.git("add", "Makefile", "source")
        tree.git("commit", "-q", "-m", "base")
        os.environ["BASE"] = tree.git("rev-parse", "HEAD")
        pathlib.Path("source").write_text(program_that_fails_with(*now))
        pathlib.Path("build").mkdir()
        pathlib.Path("build/program").write_text(program_that_fails_with(*now))
        job = Job("s", "s", ["sh", "build/program"], "cpu", 1, "doctest", 30, target="build/program")
        totals = Totals()
        lanes = Lanes(1, 1, folder / "build/tests")
        lanes.run([job], totals.add)
        return rerun.is_found_in_base(totals.results[0], 1, lanes), out.getvalue()


@test
def a_seed_that_fails_on_the_base_too_is_kept_and_does_not_count(folder):
    found, out = found_in_base(folder, before=(3, 5), now=(5,))
    equal(found, True)
    has(out.encode(), b"FOUND in the base too: seed 5 of s: lost\n")
    has(out.encode(), b"== on the base: 0.0 minutes of CPU\n")
    has((folder / "open_seeds").read_bytes(), b", s, 1: 5, lost\n")


@test
def a_seed_that_fails_only_with_the_change_counts(folder):
    for number, before in enumerate(((), (3,))):
        found, out = found_in_base(folder.with_name(f"case{number}"), before, now=(3, 5))
        equal((found, "FOUND" in out), (False, False))


def staged(*scripts, wall_minutes=60, cpu_minutes=40):
    """Runs .ci/stages.py with these scripts as stages. Returns its status and the lines of its output."""
    code = ("import sys; sys.path.insert(0, '.ci'); import stages\n"
            f"stages.MOST_WALL_MINUTES, stages.MOST_CPU_MINUTES = {wall_minutes}, {cpu_minutes}\n"
            "stages.RUNNER = ['true']\n"
            f"stages.stages = lambda: [stages.Stage(f's{{n}}', ['sh', '-c', script], n == 0)"
            f" for n, script in enumerate({scripts!r})]\nsys.exit(stages.main())")
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=ROOT, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


def resumed(folder, tree_hash, *jobs):
    """Runs those of the jobs that have not passed on this tree. Returns the totals and what was started."""
    totals, out = Totals(), io.StringIO()
    with contextlib.redirect_stdout(out), unittest.mock.patch.object(run, "LOGS", folder / "logs"):
        results = kept.Kept(folder / "passed.json", tree_hash)
        run.run_jobs(list(jobs), Lanes(6, 2, folder / "logs"), totals, results)
    return totals, {line.split()[1] for line in out.getvalue().splitlines() if line.endswith(": started")}


@test
def a_run_that_is_resumed_leaves_out_what_has_passed_on_the_same_tree(folder):
    good = shell("good", "echo '3 passed, 0 failed, 1 skipped'")
    bad = shell("bad", f"test -e {folder}/mended || exit 1; echo '1 passed, 0 failed'")
    totals, started = resumed(folder, "tree", good, bad)
    equal((started, totals.failed, totals.repeated), ({"good:", "bad:"}, 1, []))
    (folder / "mended").touch()
    totals, started = resumed(folder, "tree", good, bad)
    equal((started, totals.closing_line), ({"bad:"}, "4 passed, 0 failed, 1 skipped"))
    equal(totals.repeated, ["bad"])
    _, started = resumed(folder, "another tree", good, bad)
    equal(started, {"good:", "bad:"})
    (folder / "logs/good.log").unlink()
    _, started = resumed(folder, "another tree", good, bad)
    equal(started, {"good:"})


@test
def the_stages_close_with_the_sum_of_their_tests(_):
    status, lines = staged("echo lint", "echo '2 passed, 0 failed'",
                           "echo '3 passed, 1 failed, 1 skipped'; exit 1")
    equal((status, lines[-1]), (1, "5 passed, 1 failed, 1 skipped"))
    equal([line for line in lines if line == "2 passed, 0 failed"], [])
    equal(sum(line.startswith("stage s1: ") and "minutes of CPU" in line for line in lines), 1)
    equal(staged("true", "echo '2 passed, 0 failed'")[0], 0)


@test
def a_suite_that_cannot_be_built_fails_and_the_others_run(folder):
    folder.mkdir()
    with contextlib.chdir(folder):
        pathlib.Path("Makefile").write_text("good: ; @true\nbad: ; @false\n")
        equal((run.unbuilt(["good"]), run.unbuilt(["good", "bad"])), (set(), {"bad"}))
    totals = Totals(unbuilt=["one: make cannot build bad; see above"])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        equal(totals.close(), 1)
    has(out.getvalue().encode(), b"FAILED one: make cannot build bad", b"0 passed, 1 failed\n")


@test
def the_run_on_the_base_does_not_count_for_the_limit_of_cpu(_):
    equal(staged("true", "echo '== on the base: 1.5 minutes of CPU'", cpu_minutes=0)[0], 0)


@test
def a_stage_that_fails_or_exceeds_the_limits_fails_with_a_line(_):
    cases = ((staged("exit 3", "echo '9 passed, 0 failed'"), "FAILED: stage s0 ended with status 3"),
             (staged("true", "sleep 77", wall_minutes=0.01), "FAILED: the run took 0.01 minutes, its "),
             (staged("true", "echo", cpu_minutes=0), "FAILED: the run used 0.0 minutes of CPU, more "))
    for (status, lines), words in cases:
        equal((words, status, lines[-1]), (words, 1, "0 passed, 1 failed"))
        equal((words, any(line.startswith(words) for line in lines)), (words, True))


@test
def the_age_of_the_table_has_a_limit(folder):
    text = folder.with_name("page.md")
    with repository(folder):
        text.write_text("nothing\n")
        has(page.fault_of_age(text).encode(), b"does not name the commit")
        text.write_text(f"before\n{page.BEGIN}\n{page.END}\nafter\n")
        page.write(table.load(), None, text)
        equal((page.fault_of_age(text), text.read_text().endswith(f"{page.END}\nafter\n")), ("", True))
        has(text.read_text().encode(), b"| `folder_test` | change |")
        for behind, words in ((150, b""), (151, b"151 commits old, more than 150")):
            with unittest.mock.patch.object(tree, "git", lambda *_, count=behind: str(count)):
                equal((behind, words in page.fault_of_age(text).encode()), (behind, True))
                equal(page.fault_of_age(text) == "", words == b"")


if __name__ == "__main__":
    run_tests()

#!/usr/bin/python3
"""Runs each command, program and file of docs/tutorials as a reader types it, and compares the output with
the page: tutorial_rig.py says how. The last line is "N passed, N failed".

HOLDFAST_SERVER names the server; the command is in the same folder. Needs python3-redis and redis-tools;
systemd-analyze is used where it is installed."""
import signal
import sys
import traceback

from tutorial_rig import ROOT, Tutorial

PAGES = ["cron-on-three-machines", "python-fencing-token", "quorum-of-three", "run-as-a-service",
         "who-holds-my-lock"]
PAGE_LIMIT_S = 300  # timeout of one page


def test_page(name):
    path = ROOT / f"docs/tutorials/{name}.md"
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert 60 <= lines <= 150, f"the page has {lines} lines; 60 to 150 are allowed"
    for page in ("cli", "protocol", "safety", "operations", "clients"):
        assert f"(../{page}.md" in text, f"the page has no link to ../{page}.md"
    assert "\n## What happens when" in text
    with Tutorial(name, text) as tutorial:
        tutorial.play()
        print(f"{name}: {tutorial.commands} commands run, {len(tutorial.not_run)} blocks not run"
              + "".join(f"\n  not run: {reason}" for reason in tutorial.not_run))


def fails(text, wanted):
    try:
        with Tutorial("", text) as tutorial:
            tutorial.play()
    except AssertionError as failure:
        assert wanted in str(failure), f"{wanted!r} is not in {failure}"
        return
    raise AssertionError(f"this page must fail, but passes:\n{text}")


def test_differences(_):
    """A page fails if it shows more, less or other text than the output, or has a block without a
    marker."""
    def page(shown):
        return f"<!-- run: shell a -->\n```\n$ echo one; echo 1795236859406446\n{shown}```\n"
    with Tutorial("", page("one\n1795236859406447\n")) as tutorial:
        tutorial.play()
    for shown in ("two\n1795236859406446\n", "one\n", "one\n1795236859406446\nthree\n", "one\n179523\n"):
        fails(page(shown), "but this was printed")
    fails("```\n$ echo one\n```\n", "no marker")
    again = page("one\n1795236859406447\n")
    fails(again + again.replace("1795236859406447\n`", "1795236859406448\n`"), "but this was printed")


def over_time(*_):
    raise TimeoutError(f"the page took more than {PAGE_LIMIT_S} s")


def main():
    signal.signal(signal.SIGALRM, over_time)
    tests = [(test_differences, "differences"), *((test_page, name) for name in PAGES)]
    tests = [t for t in tests if len(sys.argv) < 2 or sys.argv[1] in t[1]]
    failed = 0
    for function, name in tests:
        signal.alarm(PAGE_LIMIT_S)
        try:
            function(name)
        except Exception:  # the other pages run even if one fails
            failed += 1
            print(f"FAILED: tutorials: {name}")
            traceback.print_exc(file=sys.stdout)
        signal.alarm(0)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The man pages, made from the built programs. The last line is "N passed, N failed". HOLDFAST_SERVER names
the server; the command is in the same folder."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import HOLDFAST, LIMIT_S, Skipped, equal, has, run_tests, test
from job import COMMAND, call

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERBS = re.findall(r"^  ([a-z]+) .*  ", call(0, "--help")[0], re.MULTILINE)


def output_of(*words, **more):
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT_S, **more)
    equal((done.returncode, "" if done.returncode == 0 else done.stdout), (0, ""))
    return done.stdout


def make_pages(folder):
    output_of(sys.executable, ROOT / "packaging/man_pages.py", HOLDFAST, COMMAND, folder)


@contextlib.contextmanager
def pages():
    with tempfile.TemporaryDirectory() as folder:
        make_pages(folder)
        yield pathlib.Path(folder)


def words_in(page):
    """The text of a page as man shows it, with one blank between words."""
    shown = output_of("mandoc", "-Tascii", "-Owidth=1000", page)
    return " ".join(re.sub(".\x08", "", shown).split())


def need(program):
    if not shutil.which(program):
        raise Skipped(f"no {program}")


@test
def each_verb_and_each_file_has_a_page(folder):
    equal(sorted(path.name for path in folder.iterdir()),
          sorted([*(f"holdfast-{verb}.1" for verb in VERBS), "holdfast.1", "holdfast.conf.5",
                  "holdfast-protocol.7", "holdfast-server.8"]))


@test
def mandoc_and_groff_have_no_warnings(folder):
    need("mandoc")
    need("man")
    for page in sorted(folder.iterdir()):
        equal(output_of("mandoc", "-Tlint", "-Wwarning", page), "")
        warnings = subprocess.run(["man", "--warnings", "-l", "-Tutf8", "-Z", page], check=True, text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT_S,
                                  env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        equal(warnings.stderr, "")


@test
def the_pages_of_verbs_have_all_words_of_help(folder):
    need("mandoc")
    for verb in VERBS:
        text = words_in(folder / f"holdfast-{verb}.1")
        help_text = call(0, verb, "--help")[0].replace("Usage: ", "").replace("Exit status: ", "")
        help_text = re.sub(r"^ +- ", " ", help_text, flags=re.MULTILINE)
        missing = [word for word in help_text.split() if word not in text]
        equal(missing, [])
        for option in re.findall(r"^  (?:-\w, )?--[a-z-]+", call(0, verb, "--help")[0], re.MULTILINE):
            has(text, option.strip())


@test
def the_pages_of_the_server_have_all_options_and_commands(folder):
    need("mandoc")
    options = re.findall(r"^  (?:-\w \[ )?--([a-z-]+)", output_of(HOLDFAST, "--help"), re.MULTILINE)
    server, config = words_in(folder / "holdfast-server.8"), words_in(folder / "holdfast.conf.5")
    equal(len(options) > 50, True)
    for option in options:
        has(server, f" --{option} ")
    for option, default in re.findall(r"^#([a-z-]+) = ?(.*)$", output_of(HOLDFAST, "--print-config"),
                                      re.MULTILINE):
        has(config, f" {option} = {default}".rstrip())
    protocol = words_in(folder / "holdfast-protocol.7")
    for line in output_of(HOLDFAST, "--print-commands").splitlines():
        name, syntax, _, complexity, summary = line.split("\t")
        has(protocol, " ".join(f"{name} {syntax}".split()), summary, complexity.removesuffix("."))


@test
def the_same_programs_make_the_same_bytes(folder):
    with tempfile.TemporaryDirectory() as other:
        make_pages(other)
        for page in folder.iterdir():
            equal(pathlib.Path(other, page.name).read_bytes(), page.read_bytes())


run_tests(pages)

#!/usr/bin/env python3
"""The completion of `holdfast` and `holdfast-server` in bash, zsh and fish. Each test runs in each
shell. The last line is "N passed, N failed". HOLDFAST_SERVER names the server; the command is in the
same folder."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess

from harness import HOLDFAST, LIMIT_S, Server, Skipped, data_folder, equal, run_tests, test
from job import COMMAND, call

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "src/cli/completions"
BIN = str(pathlib.Path(COMMAND).resolve().parent)
VERBS = re.findall(r"^  ([a-z]+) .*  ", call(0, "--help")[0], re.MULTILINE)

# Each prints the words that the shell would offer for the last word of "$1", or the kind of other words.
BASH = r"""source "$0/holdfast.bash"
compopt() { :; }; compgen() { echo "(files)"; }; _command_offset() { COMPREPLY=("(command $1)"); }
COMP_LINE=$1 COMP_POINT=${#1}; read -ra COMP_WORDS <<<"$1"
[[ $1 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _holdfast; printf '%s\n' "${COMPREPLY[@]}" """
ZSH = r"""compdef() { :; }; source "$0/_holdfast"
_describe() { for line in "${(@P)2}"; do print -r -- "${${line/%(#b)([^\\]):*/$match[1]}//\\:/:}"; done }
_files() { print "(files)" }; _normal() { print "(command ${words[1]})" }
setopt extendedglob
words=("${(@s. .)1}"); CURRENT=$#words; _holdfast"""
FISH = r"""source $argv[1]/holdfast.fish; complete -C $argv[2] | string replace -r '\t.*' ''"""


def output_of(shell, line):
    script = {"bash": ["bash", "-c", BASH], "zsh": ["zsh", "-f", "-c", ZSH],
              "fish": ["fish", "--no-config", "-c", FISH]}[shell]
    if not shutil.which(shell):
        raise Skipped(f"no {shell}")
    done = subprocess.run([*script, str(FOLDER), line], check=False, text=True, timeout=LIMIT_S,
                          capture_output=True, cwd="/",
                          env={**os.environ, "PATH": BIN + ":" + os.environ["PATH"]})
    equal(done.stderr, "")
    return {word for word in done.stdout.splitlines() if word}


def help_of_the_server():
    return subprocess.run([HOLDFAST, "--help"], check=True, text=True, capture_output=True).stdout


def in_each_shell(check):
    """Makes a test of check(offered, server) for each shell. offered(line) is what the shell offers."""
    for shell in "bash", "zsh", "fish":
        def run(server, shell=shell):
            check(lambda line: output_of(shell, line), server)
        run.__name__ = f"{shell}: {check.__name__}"
        test(run)


@in_each_shell
def all_verbs_are_offered(offered, _):
    equal(offered("holdfast ") - {"--help", "--version"}, set(VERBS))
    equal(offered("holdfast --"), {"--help", "--version"})
    equal(offered("holdfast li"), {"list"})
    equal(offered("holdfast nosuch "), set())


@in_each_shell
def all_options_of_each_verb_are_offered(offered, _):
    for verb in VERBS:
        documented = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", call(0, verb, "--help")[0], re.MULTILINE)
        equal(len(documented) > 2, True)
        equal(offered(f"holdfast {verb} --") - {"--"}, set(documented))


@in_each_shell
def values_files_and_commands_are_offered(offered, _):
    equal(offered("holdfast lock --ttl 5"), {"500ms", "5m"})
    equal(offered("holdfast list --servers quo"), {"quorum://"})
    equal(offered("holdfast lock --limit "), set())
    for line in "holdfast check /us", "holdfast list --cacert /us":
        files = offered(line)
        equal(files == {"(files)"} or "/usr/" in files, True)  # the others are fish's own
    command = offered("holdfast run -w 5s a -- l")
    equal(command in ({"(command 6)"}, {"(command l)"}) or "ls" in command, True)


@in_each_shell
def names_of_locks_come_from_the_server(offered, server):
    for name in "job:1", "job:2", "other":
        server.lock(name)
    equal(offered("holdfast unlock ot"), {"other"})
    equal(offered("holdfast run -w 5s ot"), {"other"})
    equal({name.rpartition(":")[2] for name in offered("holdfast break job:")}, {"1", "2"})
    equal(offered("holdfast watch --match oth"), {"other"})
    equal(offered("holdfast unlock other "), set())


@in_each_shell
def options_of_the_server_and_their_values_are_offered(offered, _):
    documented = re.findall(r"^  (?:-\w \[ )?(--[a-z-]+)", help_of_the_server(), re.MULTILINE)
    equal(len(documented) > 50, True)
    for line in "holdfast-server ", "holdfast-server --", "holdfast-server --port 1 --":
        equal(offered(line), set(documented))
    equal(offered("holdfast-server --log-f"), {"--log-format"})
    equal(offered("holdfast-server --log-format "), {"text", "json", "journald"})
    equal(offered("holdfast-server --port 1 --appendfsync e"), {"everysec"})
    equal(offered("holdfast-server --tls-port a"), {"auto"})
    equal(offered("holdfast-server --maxclients "), {"10000"})
    equal(offered("holdfast-server --requirepass "), set())
    for option in "--config", "--check-config", "--dir", "--aclfile":
        files = offered(f"holdfast-server {option} /us")
        equal(files == {"(files)"} or "/usr/" in files, True)


@in_each_shell
def a_server_that_cannot_be_reached_offers_nothing(offered, _):
    equal(offered("holdfast info --servers 127.0.0.1:1 "), set())
    equal(offered("holdfast info --servers :::: "), set())
    equal(offered("holdfast info --password-file - "), set())


@test
def the_program_names_files_and_the_place_of_the_command(_):
    for words, wanted in ((["check", ""], ":files\n"), (["list", "--cacert", ""], ":files\n"),
                          (["run", "-w", "5s", "a", "--", ""], ":command 6\n"),
                          (["elect", "a", "--", "ls", ""], ":command 4\n")):
        equal(call(0, "__complete", *words)[0], wanted)


@test
def nothing_is_offered_behind_a_word_that_is_no_verb(_):
    for words in (["bogus", ""], ["--servers", "x"], ["a", "b", "c"], ["", ""]):
        equal(call(0, "__complete", *words)[0], "")


@test
def characters_of_patterns_stand_for_themselves(server):
    for name in "a*b", "ab", "a[1]", "x\\y", "two\nlines", "two words":
        server.lock(name)
    for begin, wanted in (("a*", "a*b\tlock\n"), ("a[", "a[1]\tlock\n"), ("x\\", "x\\y\tlock\n"),
                          ("two", "two words\tlock\n")):
        equal(call(0, "__complete", "info", begin)[0], wanted)


@contextlib.contextmanager
def one_server():
    with data_folder() as folder, Server(folder, "--port", "auto") as server:
        port = re.search(r"on 127\.0\.0\.1:(\d+)", server.log).group(1)
        os.environ["HOLDFAST_SERVERS"] = "127.0.0.1:" + port
        yield server


run_tests(one_server)

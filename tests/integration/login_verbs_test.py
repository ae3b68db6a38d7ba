#!/usr/bin/env python3
"""The command `holdfast` with a login from the address, the environment or a file. No output shows the
password. Also its messages about unreachable servers, and its number of attempts. The last line is "N
passed, N failed". The command is in the folder of HOLDFAST_SERVER; REDIS_SERVER is Redis."""
import contextlib
import os
import pathlib
import subprocess

from harness import LIMIT_S, REDIS, Server, data_folder, equal, free_port, has, refusal, run_tests, test
from job import COMMAND, call, call_json, ended, port_of, start

PASSWORD = "s3cret"
RULES = ("~* &__lock__:* +lock +renew +unlock +fence +lease +subscribe +unsubscribe "
         "+locks +ping +info +time").split()  # as in docs/security.md
ALL_VERBS = {"lock": ["k"], "unlock": ["k", "alice"], "renew": ["k", "alice"], "info": ["k"], "list": [],
             "break": ["k"], "revoke": ["k"], "ping": [], "watch": ["k"], "run": ["k", "--", "true"],
             "elect": ["k", "--", "true"]}


@contextlib.contextmanager
def guarded():
    """A server with a password and the user `app`. `bare` is its address, and `place` has the login,
    too."""
    with data_folder() as folder, Server(folder, "--port", "auto", "--requirepass", "admin") as server:
        equal(server.ask("AUTH", "admin"), "OK")
        equal(server.ask("ACL", "SETUSER", "app", "on", f">{PASSWORD}", *RULES), "OK")
        server.host = f"127.0.0.1:{port_of(server)}"
        server.bare = f"holdfast://{server.host}"
        server.place = f"holdfast://app:{PASSWORD}@{server.host}"
        server.file = pathlib.Path(folder, "password")
        server.file.write_text(f"{PASSWORD}\nnot this line\n", "utf-8")
        with environment(HOLDFAST_SERVERS=server.bare):
            yield server


@contextlib.contextmanager
def environment(**variables):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def works(server, *options):
    """Checks that all verbs work with these options."""
    owner = call(0, "lock", *options, "--ttl", "1m", "k")[0].split()[0]
    equal(call_json("info", *options, "k")[0]["holders"][0]["owner"], owner)
    call(0, "renew", *options, "k", owner)
    equal([row["key"] for row in call_json("list", *options)], ["k"])
    call(0, "revoke", *options, "k")
    call(0, "unlock", *options, "k", owner)
    call(0, "lock", *options, "k")
    call(0, "break", *options, "k")
    has(call(0, "ping", *options)[0], "enough for a lock")
    for verb in ("run", "elect"):
        equal(call(0, verb, *options, "k", "--", "echo", "done")[0], "done\n")
    watch = start("watch", *options, "k")
    has(watch.stdout.readline(), "watching")
    watch.terminate()
    ended(watch, -15)
    equal(server.ask("DBSIZE"), 0)


@test
def every_verb_logs_in_by_the_address(server):
    works(server, "--servers", server.place)
    works(server, "--servers", f"{server.bare}?user=app&password={PASSWORD}")


@test
def every_verb_logs_in_by_the_environment(server):
    with environment(HOLDFAST_USER="app", HOLDFAST_PASSWORD=PASSWORD):
        works(server)
    with environment(HOLDFAST_PASSWORD="admin"):
        call(0, "list")


@test
def every_verb_logs_in_by_a_file(server):
    works(server, "--user", "app", "--password-file", server.file)
    with environment(HOLDFAST_USER="app"):
        call(0, "list", "--password-file", server.file)
    with environment(HOLDFAST_PASSWORD=PASSWORD):
        call(0, "list", "--user", "app")


@test
def a_password_can_come_from_standard_input(server):
    words = [COMMAND, "run", "--user", "app", "--password-file", "-", "k", "--", "cat"]
    done = subprocess.run(words, text=True, input=f"{PASSWORD}\nthe rest\n", capture_output=True,
                          timeout=LIMIT_S, check=True)
    equal(done.stdout, "the rest\n")


@test
def a_file_without_a_password_is_rejected_with_its_name(server):
    empty = server.file.with_name("empty")
    empty.write_text("\n", "utf-8")
    for file, why in ((server.file.with_name("none"), "No such file"), (empty, "is empty"),
                      (server.file.parent, "Is a directory")):
        for verb, words in (("list", []), ("run", ["k", "--", "true"])):
            err = call(64, verb, "--password-file", file, *words)[1]
            has(err, why, str(file))
    has(call(64, "list", "--user", "app")[1], "--password-file", "HOLDFAST_PASSWORD")
    with environment(HOLDFAST_USER="app"):
        has(call(64, "list")[1], "HOLDFAST_PASSWORD")


def arguments_of(process):
    return pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()


@test
def the_arguments_of_the_process_do_not_show_a_login(server):
    for words in (["--servers", server.place], [f"--servers={server.place}"],
                  ["--servers", f"{server.bare}?user=app&password={PASSWORD}"]):
        running = start("run", *words, "k", "--", "sh", "-c", f"echo up {server.place}; sleep 60")
        has(running.stdout.readline(), "up")
        shown = arguments_of(running).split(b"\0--\0")[0]
        equal(PASSWORD.encode() in shown, False)
        has(shown, server.host.encode())
        running.terminate()
        running.communicate(timeout=LIMIT_S)


@test
def the_arguments_of_the_server_do_not_show_a_password(server):
    equal(b"admin" in arguments_of(server.process), False)
    has(arguments_of(server.process), b"--requirepass\0*****\0")


@test
def a_child_command_gets_the_login_of_the_environment_and_of_the_address_but_no_files(server):
    show = ["--", "sh", "-c", f'env; "{COMMAND}" info k']
    out = call(0, "run", "--servers", server.place, "k", *show)[0]
    has(out, f"HOLDFAST_SERVERS={server.place}", "held by")
    with environment(HOLDFAST_PASSWORD=PASSWORD):
        has(call(0, "run", "--user", "app", "k", *show)[0], "HOLDFAST_USER=app", "held by")
    out = call(69, "run", "--user", "app", "--password-file", server.file, "k", "--", "sh", "-c",
               f'env; unset HOLDFAST_USER; "{COMMAND}" info k')[0]
    has(out, f"HOLDFAST_SERVERS={server.bare}\n", "HOLDFAST_USER=app", "NOAUTH", "--password-file")
    equal(PASSWORD in out, False)


@test
def wrong_usage_shows_no_password(server):
    for words in (["--servers", f"holdfast://:{PASSWORD}"], ["--servers", f"holdfast://:{PASSWORD}@h:x"],
                  ["--servers", f"holdfast://a:{PASSWORD}@h,i"],
                  ["--servers", f"holdfast://a:b,{PASSWORD}@h"],
                  ["--servers", f"{server.bare}?pasword={PASSWORD}"], [f"--password={PASSWORD}"],
                  ["--password", PASSWORD], [f"--pasword={PASSWORD}"], [f"-p{PASSWORD}"], ["-a", PASSWORD],
                  ["--servers", server.place, "--password-file", server.file],
                  ["--servers", f"ftp://:{PASSWORD}@h"]):
        for verb, more in (("list", []), ("run", ["k", "--", "true"]), ("elect", ["k", "--", "true"])):
            out, err = call(64, verb, *words, *more)
            equal((out, PASSWORD in err, err.count("\n")), ("", False, 1))
    has(call(64, "list", f"--password={PASSWORD}")[1], "visible in ps", "--password-file")
    has(refusal(str(server.file.parent), f"--requirepas={PASSWORD}"), "--requirepas'")


@test
def every_verb_reports_a_rejected_login_at_once_and_does_not_retry(server):
    for verb, words in ALL_VERBS.items():
        out, err = call(69, verb, "--servers", server.bare, *words)
        has(out + err, "NOAUTH", "HOLDFAST_PASSWORD")
        out, err = call(69, verb, "--servers", f"holdfast://app:wrong-one@{server.host}", *words)
        has(out + err, "WRONGPASS", "check the user and the password")
        equal("wrong-one" in out + err, False)


@test
def each_verb_on_redis_reports_that_a_password_is_missing_and_does_not_retry(_):
    """Redis rejects a long request before the login as a breach of the protocol."""
    with data_folder() as folder:
        folder.mkdir()
        port = free_port()
        with Server(folder, "--port", str(port), "--requirepass", PASSWORD, command=REDIS):
            where = f"redis://127.0.0.1:{port}"
            for verb, words in (("run", ["k", "--", "true"]), ("elect", ["k", "--", "true"]),
                                ("lock", ["k"])):
                out, err = call(69, verb, "--servers", where, *words)
                has(out + err, "NOAUTH", "HOLDFAST_PASSWORD")


@test
def every_verb_reports_a_missing_permission_at_once_and_does_not_retry(server):
    server.ask("ACL", "SETUSER", "small", "on", f">{PASSWORD}", "+ping")
    for verb, words in ALL_VERBS.items():
        out, err = call(69, verb, "--servers", f"holdfast://small:{PASSWORD}@{server.host}", *words)
        has(out + err, "NOPERM", "docs/security.md")


# --- unreachable servers ---

def unused_address():
    return f"holdfast://127.0.0.1:{free_port()}"


@test
def run_and_lock_report_an_unreachable_server_at_once_with_the_reason(_):
    for verb, words in (("run", ["k", "--", "true"]), ("lock", ["k"])):
        where = unused_address()
        waiting = start(verb, "--servers", where, *words)
        has(waiting.stderr.readline(), f"k: cannot reach {where[11:]}: connection refused; retrying")
        waiting.terminate()
        ended(waiting, 128 + 15)


@test
def elect_reports_an_unreachable_server_at_once_with_the_reason(_):
    where = unused_address()
    waiting = start("elect", "--servers", where, "k", "--", "true")
    has(waiting.stderr.readline(), "standing")
    has(waiting.stderr.readline(), f"unreachable: cannot reach {where[11:]}: connection refused; retrying")
    waiting.terminate()
    ended(waiting, 128 + 15)


@test
def watch_reports_a_disconnect_and_resumes_after_the_restart(_):
    with data_folder() as folder:
        with Server(folder, "--port", str(free_port())) as server:
            port = port_of(server)
            watch = start("watch", "--servers", f"holdfast://127.0.0.1:{port}", "k")
            has(watch.stdout.readline(), "watching")
        has(watch.stderr.readline(), f"cannot watch 127.0.0.1:{port}: ", "; retrying")
        with Server(folder, "--port", port):
            has(watch.stdout.readline(), "watching")
            watch.terminate()
            ended(watch, -15)


@test
def each_unreachable_server_of_a_quorum_is_named(server):
    unreachable = [unused_address()[11:] for _ in range(2)]
    where = f"quorum://app:{PASSWORD}@{server.host},{unreachable[0]},{unreachable[1]}"
    waiting = start("run", "--servers", where, "k", "--", "true")
    has(waiting.stderr.readline(), *(f"cannot reach {host}: connection refused" for host in unreachable))
    waiting.terminate()
    ended(waiting, 128 + 15)


@test
def a_limited_wait_fails_with_the_server_and_the_reason(_):
    where = unused_address()
    for words in (["-w", "300ms"], ["-n"], ["--attempts", "3"],
                  ["--attempts", "2", "--backoff", "5ms,2,20ms"]):
        err = call(69, "run", "--servers", where, *words, "k", "--", "true")[1]
        has(err.splitlines()[-1], f"k: unreachable: cannot reach {where[11:]}: connection refused")
        err = call(69, "run", "--quiet", "--servers", where, *words, "k", "--", "true")[1]
        equal(err.count("\n"), 1)


@test
def on_redis_attempts_that_find_the_lock_held_are_counted(_):
    port = free_port()
    with data_folder() as folder:
        folder.mkdir()
        with Server(folder, "--port", str(port), command=REDIS):
            counted_on(f"redis://127.0.0.1:{port}")


def counted_on(where):
    call(0, "lock", "--servers", where, "--ttl", "1m", "k")
    for words in (["--attempts", "3"], ["--attempts", "3", "--backoff", "1ms,1.5"]):
        err = call(75, "run", "--servers", where, *words, "k", "--", "true")[1]
        has(err, "other owners held the lock at each of 3 attempts")
    has(call(75, "lock", "--servers", f"{where}?attempts=2&backoff=1", "k")[1], "at each of 2 attempts")


@test
def an_invalid_backoff_is_rejected(_):
    for text in ("", "x", "0", "1,0.5", "1,101", "1,2,0.5", "1,2,3,4", "1,x", "1,,5", ",2"):
        has(call(64, "run", "--backoff", text, "k", "--", "true")[1], "--backoff must be")
    has(call(64, "run", "-n", "--attempts", "2", "k", "--", "true")[1], "exclude each other")
    has(call(64, "run", "--attempts", "0", "k", "--", "true")[1], "--attempts must be")


if __name__ == "__main__":
    run_tests(guarded)

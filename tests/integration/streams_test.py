#!/usr/bin/env python3
"""Standard streams that the caller closed, of the server and of each verb of the command; and text of a
server that a terminal would execute. The last line is "N passed, N failed". HOLDFAST_SERVER names the
server; the command is in the same folder."""
import itertools
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading

from harness import HOLDFAST, LIMIT_S, client_if_listening, equal, has, run_tests, test, until
from job import COMMAND, service

# Each choice of closed streams, as words of a shell.
CLOSED = [" ".join(words) for n in (1, 2, 3) for words in itertools.combinations(("<&-", ">&-", "2>&-"), n)]
# Words of each verb that asks a server, and its exit status when it can print.
VERBS = (("ping", 0), ("info job", 0), ("list", 0), ("renew job me", 0), ("revoke job", 0),
         ("unlock job me", 0), ("lock -n job", 0), ("break job", 0), ("run -n job -- sh -c 'exit 7'", 7))
NO_OUTPUT = 74


def status_of(words, closed):
    return subprocess.run(["sh", "-c", f"exec {COMMAND} {words} {closed}"], check=False, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True).returncode


@test
def the_command_works_without_standard_streams(server):
    for closed in CLOSED:
        server.lock("job", "me")
        for words, status in VERBS:
            prints = not words.startswith("run") and ">&-" in closed.split()
            wanted = (status, NO_OUTPUT) if prints else (status,)
            found = status_of(words, closed)
            if found not in wanted:
                raise AssertionError(f"{words} {closed}: status {found}, wanted {wanted}")


@test
def the_server_works_without_standard_streams(_):
    for closed in CLOSED:
        with tempfile.TemporaryDirectory(prefix="holdfast-test-") as name:
            folder = pathlib.Path(name)
            words = [HOLDFAST, "--port", "0", "--unixsocket", str(folder / "s"), "--dir", str(folder / "d")]
            process = subprocess.Popen(["sh", "-c", f'exec "$@" {closed}', "sh", *words],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                client = until(lambda: client_if_listening(folder / "s"))
                until(lambda: client.ask("PING") == "PONG")
                streams = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)]
                equal(streams, ["/dev/null"] * 3)
                client.close()
                process.send_signal(signal.SIGTERM)
                equal(process.wait(LIMIT_S), 0)
            finally:
                process.kill()
                process.wait()


def answer_with_controls(listener):
    """Answers each request with an error that has an escape, a bell and a NUL."""
    while True:
        with listener.accept()[0] as peer:
            while data := peer.recv(4096):
                requests = len(re.findall(rb"^\*[0-9]+\r$", data, re.MULTILINE))
                peer.sendall(b"-ERR \x1b[31mred\x07 \x00 behind\r\n" * requests)


@test
def an_error_of_a_server_is_one_line_that_no_terminal_executes(_):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer_with_controls, args=[listener], daemon=True).start()
        place = f"holdfast://127.0.0.1:{listener.getsockname()[1]}"
        for words in (["lock", "-n", "job"], ["run", "-n", "job", "--", "true"], ["info", "job"], ["ping"]):
            done = subprocess.run([COMMAND, words[0], "--servers", place, *words[1:]], check=False,
                                  timeout=LIMIT_S, stdin=subprocess.DEVNULL, capture_output=True)
            shown = done.stdout + done.stderr
            equal([byte for byte in shown if byte < 32 and byte != ord("\n")], [])
            has(shown.decode(), "\\x1b[31mred\\x07", "\\x00 behind")


@test
def a_long_owner_does_not_fill_the_terminal(server):
    equal(server.ask("SET", "job", "x" * 2_000_000), "OK")
    done = subprocess.run([COMMAND, "lock", "-w", "1", "job"], check=False, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, capture_output=True)
    equal(all(len(line) < 5000 for line in done.stderr.splitlines()), True)
    has(done.stderr.decode(), "more bytes)")


if __name__ == "__main__":
    run_tests(service)

#!/usr/bin/env python3
"""Notes of locks with the real programs: what `run`, `elect` and `lock` write, a restart, and a server of
an earlier version, which rejects NOTE. The last line is "N passed, N failed". HOLDFAST_SERVER names the
server; the command is in the same folder."""
import getpass
import socket
import sys
import threading

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import LIMIT_S, Server, data_folder, equal, has, run_tests, test
from job import NAME, call, port_of, service, start


def shown(server, key=NAME):
    """owner, addr, name and note of the only holder of a key."""
    (row,) = server.ask("LOCKS", "INFO", key)[9]
    fields = dict(zip(row[::2], row[1::2]))
    return {name: fields[name.encode()].decode() for name in ("owner", "addr", "name", "note")}


def note_under(server, verb, *options):
    """The note of the lock while the command of `run` or `elect` runs."""
    process = start(verb, *options, NAME, "--", "/bin/sh", "-c", "echo up; sleep 1000")
    equal(process.stdout.readline(), "up\n")
    note = shown(server)["note"]
    process.terminate()
    process.communicate(timeout=LIMIT_S)
    return note, process.pid


class Earlier:
    """An address at which a server seems to be of an earlier version: each NOTE arrives as another word."""

    def __init__(self, server):
        self.port, self.notes = int(port_of(server)), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.port))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.relay, args=(source, sink), daemon=True).start()

    def relay(self, source, sink):
        try:
            while data := source.recv(65536):
                self.notes += data.count(b"$4\r\nNOTE\r\n")
                sink.sendall(data.replace(b"$4\r\nNOTE\r\n", b"$4\r\nNOPE\r\n"))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of both has closed the connection


@test
def run_and_elect_write_who_runs_what(server):
    for verb in ("run", "elect"):
        note, pid = note_under(server, verb)
        equal(note, f"{getpass.getuser()}@{socket.gethostname()}[{pid}] sh")


@test
def run_and_elect_write_another_note_or_none(server):
    for verb in ("run", "elect"):
        equal(note_under(server, verb, "--note", "release 2.4")[0], "release 2.4")
        equal(note_under(server, verb, "--note", "")[0], "")


@test
def lock_writes_a_note_only_if_asked(server):
    call(0, "lock", "a")
    equal(shown(server, "a")["note"], "")
    call(0, "lock", "--note", "by hand", "b")
    equal(shown(server, "b")["note"], "by hand")


@test
def a_note_has_at_most_256_bytes(server):
    for size in (255, 256):
        call(0, "lock", "--note", "n" * size, f"key {size}")
        equal(shown(server, f"key {size}")["note"], "n" * size)
    for verb in (("lock", "k"), ("run", "k", "--", "true"), ("elect", "k", "--", "true")):
        error = call(64, verb[0], "--note", "n" * 257, *verb[1:])[1]
        has(error, "--note must be at most 256 bytes, not 257")


@test
def a_restart_keeps_notes_and_no_addresses(_):
    with data_folder() as folder:
        with Server(folder) as server:
            server.lock("exclusive", "alice", 600_000, "NOTE", "why")
            server.lock("shared", "alice", 600_000, "SHARED", "NOTE", "reads")
            equal(shown(server, "shared")["addr"] != "", True)
            server.kill()
        for _ in range(2):  # from the journal, then from the snapshot
            with Server(folder) as server:
                for key, note in (("exclusive", "why"), ("shared", "reads")):
                    found = shown(server, key)
                    equal((found["note"], found["addr"], found["name"]), (note, "", ""))
                equal(server.ask("SAVE"), "OK")


@test
def an_earlier_server_gets_the_request_without_the_note(server):
    earlier = Earlier(server)
    call(0, "lock", "--servers", earlier.address, "--note", "why", "k")
    equal((shown(server, "k")["note"], earlier.notes), ("", 1))
    server.lock("held", "alice", 300)  # the wait in the queue, too
    call(0, "lock", "--servers", earlier.address, "--note", "why", "held")
    equal(earlier.notes, 2)


@test
def a_quorum_of_different_versions(server):
    with data_folder() as first, data_folder() as second:
        with Server(first, "--port", "auto") as a, Server(second, "--port", "auto") as b:
            earlier = Earlier(server)
            servers = f"127.0.0.1:{port_of(a)},127.0.0.1:{port_of(b)},{earlier.address}"
            call(0, "lock", "--servers", servers, "--note", "why", "k")
            equal([shown(s, "k")["note"] for s in (a, b, server)], ["why", "why", ""])


if __name__ == "__main__":
    run_tests(service)

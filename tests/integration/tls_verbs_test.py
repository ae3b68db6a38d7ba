#!/usr/bin/env python3
"""The command `holdfast` over TLS, on a server that wants a certificate of its clients, too: what it prints
and its exit statuses. Closes with "N passed, N failed". The command stands beside HOLDFAST_SERVER;
REDIS_SERVER is Redis."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

from harness import REDIS, Server, equal, has, run_tests, test, until
from job import call, ended, start, told


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Certificates:
    """NAME.pem and NAME.key in a folder: an authority, a certificate by it, and an authority aside."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name in ("ca", "other"):
            self.openssl("req", "-x509", *self.new_key(name), "-subj", f"/CN={name}", "-out",
                         self.pem(name))
        self.openssl("req", *self.new_key("one"), "-subj", "/CN=localhost", "-addext",
                     "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", self.folder / "csr")
        self.openssl("x509", "-req", "-copy_extensions", "copy", "-in", self.folder / "csr", "-CA",
                     self.pem("ca"), "-CAkey", self.key("ca"), "-CAcreateserial", "-out", self.pem("one"))

    def pem(self, name):
        return str(self.folder / f"{name}.pem")

    def key(self, name):
        return str(self.folder / f"{name}.key")

    def new_key(self, name):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                self.key(name))

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)


@contextlib.contextmanager
def redis():
    """A server that the command finds unless told, by a text with all that it needs."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        files = Certificates(folder)
        options = {"tls-port": free_port(), "tls-ca-cert-file": files.pem("ca"),
                   "tls-cert-file": files.pem("one"), "tls-key-file": files.key("one")}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with Server(folder, *words, command=REDIS) as server:
            server.files = files
            server.name = f"127.0.0.1:{options['tls-port']}"
            server.own_files = f"cert={files.pem('one')}&key={files.key('one')}"
            server.place = f"rediss://{server.name}"
            os.environ["HOLDFAST_SERVERS"] = f"{server.place}?cacert={files.pem('ca')}&{server.own_files}"
            yield server


@test
def ping_reaches_the_server(server):
    has(call(0, "ping")[0], server.name, "enough for a lock")


@test
def a_lock_goes_from_lock_by_info_to_unlock(server):
    owner = call(0, "lock", "--ttl", "1m", "k")[0].split()[0]
    has(call(75, "lock", "-n", "k")[1], "k: busy")
    equal([holder["owner"] for holder in told("info", "k")[0]["holders"]], [owner])
    has(call(0, "unlock", "k", owner)[0], "released on 1 of 1 server")
    equal(server.ask("EXISTS", "k"), 0)


@test
def run_holds_the_lock_and_hands_the_servers_on(server):
    inner = f"{os.environ['HOLDFAST_SERVERS']}\n"
    del os.environ["HOLDFAST_SERVERS"]
    files = server.files
    running = start("run", "--servers", server.place, "--cacert", files.pem("ca"), "--cert",
                    files.pem("one"), "--key", files.key("one"), "--ttl", "300ms", "k", "--",
                    "sh", "-c", 'echo "$HOLDFAST_SERVERS"; sleep 1')
    equal(running.stdout.readline(), inner)
    equal(server.ask("EXISTS", "k"), 1)
    ended(running, 0)
    equal(server.ask("EXISTS", "k"), 0)


@test
def flags_say_the_same_as_the_text(server):
    files = server.files
    flags = ["--cacert", files.pem("ca"), "--cert", files.pem("one"), "--key", files.key("one")]
    for place in (server.place, server.place.replace("rediss:", "redis:") + "?tls=yes"):
        call(0, "ping", "--servers", place, *flags)
    call(0, "ping", "--tls", "--servers", server.place.replace("rediss:", "redis:"), *flags)
    has(call(64, "ping", "--servers", "holdfast://h", *flags)[1], "about TLS", "tls=yes")


@test
def a_file_of_any_name_can_be_named(server):
    odd = str(server.files.folder / "a&b=c%20d@e?f.pem")
    pathlib.Path(odd).write_bytes(pathlib.Path(server.files.pem("ca")).read_bytes())
    call(0, "ping", "--servers", f"{server.place}?{server.own_files}", "--cacert", odd)


@test
def watch_shows_events_as_they_come(server):
    watching = start("watch", "--json", "k")
    equal(json.loads(watching.stdout.readline())["event"], "watching")
    call(0, "lock", "k")
    equal(json.loads(watching.stdout.readline())["event"], "granted")
    watching.send_signal(signal.SIGINT)
    ended(watching, -signal.SIGINT)


@test
def elect_leads_and_steps_down(server):
    leading = start("elect", "k", "--", "sh", "-c", "echo leads; exec sleep 600")
    equal(leading.stdout.readline(), "leads\n")
    leading.send_signal(signal.SIGTERM)
    leading.communicate()
    until(lambda: server.ask("EXISTS", "k") == 0)


@test
def what_cannot_be_trusted_is_not_spoken_to(server):
    place, files = server.place, server.files
    for settings in ("timeout=1000", f"cacert={files.pem('other')}"):
        has(call(69, "ping", "--servers", f"{place}?{settings}&{server.own_files}")[0],
            "TLS: certificate verify failed", "cacert=FILE")
    has(call(69, "ping", "--servers", f"{place}?cacert={files.pem('ca')}&sni=other&{server.own_files}")[0],
        "hostname mismatch", "sni=NAME")
    has(call(69, "ping", "--servers", f"{place}?cacert={files.pem('ca')}")[0], "certificate required")
    has(call(69, "run", "-n", "--servers", f"{place}?{server.own_files}", "k", "--", "true")[1],
        "certificate verify")
    call(0, "ping", "--servers", f"{place}?insecure&{server.own_files}")


@test
def files_that_are_no_good_are_wrong_use(server):
    for words in (["ping"], ["run", "k", "--", "true"]):
        verb, *rest = words
        has(call(64, verb, "--servers", f"{server.place}?cacert=/none.pem", *rest)[1],
            "cannot read the CA file /none.pem")
        has(call(64, verb, "--servers", f"{server.place}?cert={server.files.pem('one')}", *rest)[1],
            "no key file")


if __name__ == "__main__":
    run_tests(redis)

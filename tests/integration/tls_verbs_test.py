#!/usr/bin/env python3
"""The command `holdfast` over TLS, with Holdfast and with Redis, which require a certificate of their
clients: its output and its exit statuses. The last line is "N passed, N failed". The command is in the
folder of HOLDFAST_SERVER; REDIS_SERVER is Redis."""
import contextlib
import functools
import json
import os
import pathlib
import signal
import tempfile

from certificates import Certificates
from harness import HOLDFAST, REDIS, Server, equal, free_port, has, run_tests, test, until
from job import call, call_json, ended, start


@contextlib.contextmanager
def one_of_each():
    """A Holdfast server and a Redis server. `place` is the address, `ours` has the settings for the
    client's certificate and key, and `all` is the address with all settings."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder, contextlib.ExitStack() as stack:
        files = Certificates(pathlib.Path(folder, "files"))
        files.authority("other")
        servers = []
        for command, scheme in ((HOLDFAST, "holdfasts"), (REDIS, "rediss")):
            port = free_port()
            data = pathlib.Path(folder, scheme)
            data.mkdir()
            options = {"tls-port": port, "tls-ca-cert-file": files.pem("ca"),
                       "tls-cert-file": files.pem("server"), "tls-key-file": files.key("server")}
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            server = stack.enter_context(Server(str(data), *words, command=command))
            server.files = files
            server.name = f"127.0.0.1:{port}"
            server.ours = f"cert={files.pem('client')}&key={files.key('client')}"
            server.place = f"{scheme}://{server.name}"
            server.all = f"{server.place}?cacert={files.pem('ca')}&{server.ours}"
            servers.append(server)
        yield servers


def on_each(function):
    """A test that runs with each server, which the command then uses by default."""
    @functools.wraps(function)
    def run(servers):
        for server in servers:
            os.environ["HOLDFAST_SERVERS"] = server.all
            function(server)
    return test(run)


@on_each
def ping_reaches_the_server(server):
    has(call(0, "ping")[0], server.name, "enough for a lock")


@on_each
def lock_info_and_unlock_work_on_one_lock(server):
    owner = call(0, "lock", "--ttl", "1m", "k")[0].split()[0]
    has(call(75, "lock", "-n", "k")[1], "k: busy")
    equal([holder["owner"] for holder in call_json("info", "k")[0]["holders"]], [owner])
    has(call(0, "unlock", "k", owner)[0], "released on 1 of 1 server")
    equal(server.ask("EXISTS", "k"), 0)


@on_each
def run_holds_the_lock_and_passes_the_servers_to_its_command(server):
    inner = f"{os.environ['HOLDFAST_SERVERS']}\n"
    del os.environ["HOLDFAST_SERVERS"]
    files = server.files
    running = start("run", "--servers", server.place, "--cacert", files.pem("ca"), "--cert",
                    files.pem("client"), "--key", files.key("client"), "--ttl", "300ms", "k", "--",
                    "sh", "-c", 'echo "$HOLDFAST_SERVERS"; sleep 1')
    equal(running.stdout.readline(), inner)
    equal(server.ask("EXISTS", "k"), 1)
    ended(running, 0)
    equal(server.ask("EXISTS", "k"), 0)


@on_each
def flags_have_the_same_effect_as_settings_in_the_address(server):
    files = server.files
    flags = ["--cacert", files.pem("ca"), "--cert", files.pem("client"), "--key", files.key("client")]
    for place in (server.place, server.place.replace("s://", "://") + "?tls=yes"):
        call(0, "ping", "--servers", place, *flags)
    call(0, "ping", "--tls", "--servers", server.place.replace("s://", "://"), *flags)
    has(call(64, "ping", "--servers", "holdfast://h", *flags)[1], "needs TLS", "tls=yes")


@test
def list_shows_the_locks(servers):
    os.environ["HOLDFAST_SERVERS"] = servers[0].all
    token = call(0, "lock", "k")[0].split()[1]
    has(call(0, "list")[0], "k", token)


@test
def a_quorum_can_have_holdfast_and_redis_servers(servers):
    places = ",".join(server.place for server in servers)
    settings = servers[0].all.partition("?")[2]
    call(0, "run", "--servers", f"quorum://{places}?{settings}", "k", "--", "true")
    plain = ",".join(server.place.replace("s://", "://") for server in servers)
    has(call(0, "ping", "--servers", f"quorum://{plain}?{settings}", "--tls")[0], "2 of 2 servers usable")


@on_each
def a_file_can_have_any_name(server):
    odd = str(server.files.folder / "a&b=c%20d@e?f.pem")
    pathlib.Path(odd).write_bytes(pathlib.Path(server.files.pem("ca")).read_bytes())
    call(0, "ping", "--servers", f"{server.place}?{server.ours}", "--cacert", odd)


@on_each
def watch_shows_events_as_they_come(server):
    watching = start("watch", "--json", "k")
    equal(json.loads(watching.stdout.readline())["event"], "watching")
    call(0, "lock", "k")
    equal(json.loads(watching.stdout.readline())["event"], "granted")
    watching.send_signal(signal.SIGINT)
    ended(watching, -signal.SIGINT)


@on_each
def elect_leads_and_steps_down(server):
    leading = start("elect", "k", "--", "sh", "-c", "echo leads; exec sleep 600")
    equal(leading.stdout.readline(), "leads\n")
    leading.send_signal(signal.SIGTERM)
    leading.communicate()
    until(lambda: server.ask("EXISTS", "k") == 0)


@on_each
def a_server_that_cannot_be_trusted_is_rejected(server):
    place, files = server.place, server.files
    for settings in ("timeout=1000", f"cacert={files.pem('other')}"):
        has(call(69, "ping", "--servers", f"{place}?{settings}&{server.ours}")[0],
            "TLS: certificate verify failed", "cacert=FILE")
    has(call(69, "ping", "--servers", f"{place}?cacert={files.pem('ca')}&sni=other&{server.ours}")[0],
        "hostname mismatch", "sni=NAME")
    has(call(69, "ping", "--servers", f"{place}?cacert={files.pem('ca')}")[0], "certificate required")
    has(call(69, "run", "-n", "--servers", f"{place}?{server.ours}", "k", "--", "true")[1],
        "certificate verify")
    call(0, "ping", "--servers", f"{place}?insecure&{server.ours}")


@on_each
def unusable_files_are_wrong_usage(server):
    for words in (["ping"], ["run", "k", "--", "true"]):
        verb, *rest = words
        has(call(64, verb, "--servers", f"{server.place}?cacert=/none.pem", *rest)[1],
            "cannot read the CA file /none.pem")
        has(call(64, verb, "--servers", f"{server.place}?cert={server.files.pem('client')}", *rest)[1],
            "is set without a key file")


if __name__ == "__main__":
    run_tests(one_of_each)

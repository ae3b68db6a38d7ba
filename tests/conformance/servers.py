"""The servers that the scripts are to behave alike on: Holdfast, stock Redis, and a Redis Cluster of six
processes. Each answers `ask(key, *command)`, where the key says which node is meant."""
import binascii
import itertools
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from harness import HOLDFAST, LIMIT_S, PORTS, REDIS, Client, Server, end_with_parent, equal  # noqa: E402
from harness import has, reserve, until  # noqa: E402
from scripts import Scripts, slot_tag  # noqa: E402

SLOTS = 16384
BUS_OFFSET = 10_000
# Long enough for a loaded machine not to take a slow node for a dead one.
NODE_TIMEOUT_MS = 2000


def slot_of(key):
    return binascii.crc_hqx(slot_tag(key), 0) % SLOTS


class TcpClient(Client):
    """A connection to a port of this machine."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        self.replies = self.socket.makefile("rb")


class One:
    """A single server."""

    def __init__(self, command):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-conformance-")
        self.server = Server(self.folder.name, command=command)

    def ask(self, _, *command):
        return self.server.ask(*command)

    def listener(self):
        return Client(self.server.path)

    def close(self):
        self.server.__exit__()
        self.folder.cleanup()


def holdfast():
    return One(HOLDFAST)


def redis():
    return One(REDIS)


class Scripted:
    """Stock Redis, to which the lock commands are scripts."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.server, self.scripts = Server(folder, command=REDIS), Scripts()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()

    def ask(self, *command, before=""):
        """`before`: Lua that runs before the script."""
        call = self.scripts.call(*command)
        if not call:
            return self.server.ask(*command)
        name, keys, arguments = call
        text = before.encode() + self.scripts.text(name)[0]
        reply = self.server.ask("EVAL", text, len(keys), *keys, *arguments)
        if name == "lease_grant":
            self.scripts.granted(keys, arguments)
        return reply


def free_ports(number):
    """Ports that are free, and their bus ports with them."""
    found = (port for port in PORTS[:-BUS_OFFSET] if reserve(port) and reserve(port + BUS_OFFSET))
    return list(itertools.islice(found, number))


class Node:
    """A server of the cluster."""

    def __init__(self, folder, port):
        self.port = port
        own = pathlib.Path(folder, str(port))
        own.mkdir()
        self.process = subprocess.Popen(
            [os.path.abspath(REDIS), "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS),
             "--repl-diskless-sync-delay", "0", "--logfile", "log"],
            cwd=own, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent)
        self.client = until(self.connected)

    def connected(self):
        equal(self.process.poll(), None)
        try:
            return TcpClient(self.port)
        except ConnectionRefusedError:
            return None

    def kill(self):
        """As a machine that goes down."""
        self.process.kill()
        self.process.wait()
        self.client.close()

    def is_ready(self):
        """The cluster is whole as this node sees it, and a replica has all of its master."""
        if self.client.info("role", "replication") == "slave":
            if self.client.info("master_link_status", "replication") != "up":
                return False
        return b"cluster_state:ok" in self.client.ask("CLUSTER", "INFO")


class Cluster:
    """Three masters and three replicas, made by `redis-cli --cluster create`."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-cluster-")
        self.nodes = {port: Node(self.folder.name, port) for port in free_ports(6)}
        done = subprocess.run(["redis-cli", "--cluster", "create",
                               *(f"127.0.0.1:{port}" for port in self.nodes), "--cluster-replicas", "1",
                               "--cluster-yes"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=LIMIT_S)
        equal((done.returncode, done.stdout[-300:] if done.returncode else ""), (0, ""))
        until(lambda: all(node.is_ready() for node in self.nodes.values()))
        self.look()

    def look(self):
        """Learns which node has which slots."""
        self.owners = {}
        for node in self.nodes.values():
            if node.process.poll() is None:
                for first, last, master, *_ in node.client.ask("CLUSTER", "SLOTS"):
                    self.owners[range(first, last + 1)] = master[1]
                return

    def master_of(self, key):
        slot = slot_of(key)
        return next(self.nodes[port] for slots, port in self.owners.items() if slot in slots)

    def ask(self, key, *command):
        while True:
            reply = self.master_of(key).client.ask(*command)
            if not (isinstance(reply, RuntimeError) and str(reply).startswith("MOVED ")):
                return reply
            self.look()

    def listener(self):
        """At whatever node: PUBLISH reaches all."""
        return TcpClient(next(iter(self.nodes)))

    def replica_of(self, master):
        """None: it has none that lives."""
        return next((node for node in self.nodes.values() if node.process.poll() is None and
                     node.client.info("role", "replication") == "slave" and
                     node.client.info("master_port", "replication") == str(master.port)), None)

    def kill_master_of(self, key):
        """Kills it, and returns when its replica has its slots."""
        slot, dead = slot_of(key), self.master_of(key)
        replica = self.replica_of(dead)
        dead.kill()

        def has_taken_over():
            taken = any(first <= slot <= last and master[1] == replica.port
                        for first, last, master, *_ in replica.client.ask("CLUSTER", "SLOTS"))
            return taken and all(node.is_ready() for node in self.nodes.values()
                                 if node.process.poll() is None)
        until(has_taken_over)
        self.owners = {slots: replica.port if port == dead.port else port
                       for slots, port in self.owners.items()}

    def close(self):
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.kill()
        self.folder.cleanup()

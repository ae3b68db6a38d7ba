"""etcd's locks by its JSON gateway, as a rival at handing one lock from client to client: each client has a
lease and a connection, and locks and unlocks in turn. etcd syncs each change to disk; that is its only
way. Debian's etcd-server starts a service when it is installed, so that is left to whoever wants it."""
import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from servers import SERVER_CORE, end_with_parent, until

LIMIT_S = 30
LEASE_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def is_there():
    return shutil.which("etcd") is not None


class Etcd:
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-bench-")
        self.port = free_port()
        here, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [*SERVER_CORE, "etcd", "--data-dir", os.path.join(self.folder.name, "data"),
             "--log-level", "error", "--listen-client-urls", here, "--advertise-client-urls", here,
             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", f"default={peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        until(self.serves)
        return self

    def serves(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"etcd ended with status {self.process.returncode}")
        try:
            Client(self.port)
        except (ConnectionError, http.client.HTTPException, KeyError):
            return False
        return True

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.lease = self.call("lease/grant", TTL=LEASE_S)["ID"]

    def call(self, path, **body):
        self.connection.request("POST", f"/v3/{path}", json.dumps(body))
        return json.loads(self.connection.getresponse().read())

    def lock(self):
        return self.call("lock/lock", name=encoded("bench"), lease=self.lease)["key"]

    def unlock(self, key):
        self.call("lock/unlock", key=key)


def hand_overs(clients, seconds):
    """A second, and of the clients that were served least and most."""
    with Etcd() as server:
        shares, holders, over = [0] * clients, [0], threading.Event()

        def take_turns(client, number):
            while not over.is_set():
                key = client.lock()
                holders[0] += 1
                if holders[0] != 1:
                    raise RuntimeError("two clients hold the lock at the same time")
                shares[number] += 1
                holders[0] -= 1
                client.unlock(key)

        def work(number):
            try:
                take_turns(Client(server.port), number)
            except (ConnectionError, http.client.HTTPException):
                if not over.is_set():
                    raise
        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(clients)]
        for thread in threads:
            thread.start()
        until(lambda: sum(shares) >= clients)
        before, began = list(shares), time.monotonic()
        time.sleep(seconds)
        gained = [now - then for now, then in zip(shares, before)]
        took = time.monotonic() - began
        over.set()
        return {"rate": sum(gained) / took, "least": min(gained), "most": max(gained)}

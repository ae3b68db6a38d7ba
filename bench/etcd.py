"""etcd's locks by its JSON gateway: each client has a lease and a connection, and locks and unlocks in
turn. etcd always syncs each change to disk."""
import base64
import http.client
import json
import os

from rivals import FETCHED, Rival, free_port

LIMIT_S = 30
LEASE_S = 60
PROGRAM = FETCHED / "etcd/usr/bin/etcd"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class Etcd(Rival):
    name = "etcd"

    @staticmethod
    def is_there():
        return PROGRAM.exists()

    def command(self, folder, port):
        here, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
        return [PROGRAM, "--data-dir", os.path.join(folder, "data"), "--log-level", "error",
                "--listen-client-urls", here, "--advertise-client-urls", here,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"default={peer}"]

    def answers(self, port):
        try:
            Client(port)
        except (ConnectionError, http.client.HTTPException, KeyError):
            return False
        return True


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        self.lease = self.call("lease/grant", TTL=LEASE_S)["ID"]

    def call(self, path, **body):
        self.connection.request("POST", f"/v3/{path}", json.dumps(body))
        reply = json.loads(self.connection.getresponse().read())
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply

    def lock(self):
        return self.call("lock/lock", name=encoded("bench"), lease=self.lease)["key"]

    def unlock(self, key):
        self.call("lock/unlock", key=key)

"""ZooKeeper's locks by its own recipe, and the part of its protocol that the recipe needs. Each client has
a session and makes an ephemeral node with a number. The client with the smallest number holds the lock;
each other client watches the node with the next smaller number until it is deleted. ZooKeeper syncs each
change to disk (forceSync, its default)."""
import pathlib
import shutil
import socket
import struct

from rivals import FETCHED, Rival

LIMIT_S = 30
PROBE_S = 1
SESSION_MS = 40_000
JARS = [FETCHED / "zookeeper/usr/share/java" / f"{name}.jar" for name in
        ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "metrics-core", "snappy-java")]
SETTINGS = """dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
tickTime=2000
"""
CREATE, DELETE, GET_DATA, GET_CHILDREN = 1, 2, 4, 8
EPHEMERAL, SEQUENTIAL = 1, 2
NO_NODE, NODE_EXISTS = -101, -110
EVENT = -1
ALL_RIGHTS = 31


class ZooKeeper(Rival):
    name = "ZooKeeper"

    @staticmethod
    def is_there():
        return shutil.which("java") is not None and all(jar.exists() for jar in JARS)

    def command(self, folder, port):
        settings = pathlib.Path(folder, "settings")
        settings.write_text(SETTINGS.format(folder=folder, port=port), encoding="ascii")
        return ["java", "-cp", ":".join(map(str, JARS)), "org.apache.zookeeper.server.ZooKeeperServerMain",
                settings]

    def answers(self, port):
        """Whether the server is ready. ZooKeeper never answers a connection made during its start."""
        try:
            Client(port, PROBE_S)
        except (ConnectionError, TimeoutError):
            return False
        return True


def packed(value):
    """A text or bytes, preceded by their length."""
    value = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(value)) + value


class Client:
    def __init__(self, port, limit_s=LIMIT_S):
        self.socket = socket.create_connection(("127.0.0.1", port), limit_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        self.asked = 0
        self.send(struct.pack(">iqiq", 0, 0, SESSION_MS, 0) + packed(bytes(16)))
        self.receive()
        self.create("/bench", 0)

    def send(self, body):
        self.socket.sendall(packed(body))

    def receive(self):
        head = self.stream.read(4)
        if len(head) < 4:
            raise ConnectionError("ZooKeeper closed the connection")
        return self.stream.read(*struct.unpack(">i", head))

    def call(self, kind, body):
        """The error of a reply, and the bytes that follow it."""
        self.asked += 1
        self.send(struct.pack(">ii", self.asked, kind) + body)
        reply = self.receive()
        number, _, error = struct.unpack_from(">iqi", reply)
        if number != self.asked or error not in (0, NO_NODE, NODE_EXISTS):
            raise RuntimeError(f"ZooKeeper's reply {number} to {self.asked} has the error {error}")
        return error, reply[16:]

    def create(self, path, flags):
        rights = struct.pack(">ii", 1, ALL_RIGHTS) + packed("world") + packed("anyone")
        reply = self.call(CREATE, packed(path) + packed(b"") + rights + struct.pack(">i", flags))[1]
        return reply[4:].decode()

    def numbered(self):
        """The nodes, in their order."""
        reply = self.call(GET_CHILDREN, packed("/bench") + b"\0")[1]
        names, at = [], 4
        for _ in range(*struct.unpack_from(">i", reply)):
            end = at + 4 + struct.unpack_from(">i", reply, at)[0]
            names.append("/bench/" + reply[at + 4:end].decode())
            at = end
        return sorted(names)

    def lock(self):
        mine = self.create("/bench/lock-", EPHEMERAL | SEQUENTIAL)
        while (ahead := (names := self.numbered()).index(mine)) > 0:
            error, _ = self.call(GET_DATA, packed(names[ahead - 1]) + b"\1")
            if error == 0 and struct.unpack_from(">i", self.receive())[0] != EVENT:
                raise RuntimeError("ZooKeeper sent a reply without a request")
        return mine

    def unlock(self, mine):
        if self.call(DELETE, packed(mine) + struct.pack(">i", -1))[0] != 0:
            raise RuntimeError("the lock was lost")

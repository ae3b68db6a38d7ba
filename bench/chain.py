"""A chain of hand-overs on one connection, all of whose waits are ASYNC. Each reply and push is known in
advance, except for its token. A wrong one ends the run with an error."""
import re
import socket

LIMIT_S = 60
KEY = b"key-of-35-bytes-and-so-%012d"
TOKEN = b":0000000000000000\r\n"  # all tokens have this length, as they follow the clock
QUEUED = b"+QUEUED\r\n"


def packed(*words):
    return b"*%d\r\n" % len(words) + b"".join(map(bulk, words))


def bulk(word):
    return b"$%d\r\n%s\r\n" % (len(word), word)


class Chain:
    """Each key has one holder and `waiters` waiters, and each owner uses one key. After a release the owner
    waits again, so all owners take turns."""

    def __init__(self, path, keys, waiters):
        self.turns, self.round = [0] * keys, waiters + 1
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(path)
        self.socket.sendall(packed(b"HELLO", b"3") + packed(b"PING"))
        greeting = b""
        while not greeting.endswith(b"+PONG\r\n"):
            greeting += self.socket.recv(4096)
        for key in range(keys):
            self.begin(KEY % key, [self.owner(key, i) for i in range(self.round)])

    def begin(self, key, owners, *mode):
        first = packed(b"LOCK", key, owners[0], b"0", *mode)
        self.send(first + b"".join(self.wait(key, owner) for owner in owners[1:]),
                  b"*2\r\n" + bulk(owners[0]) + TOKEN + QUEUED * (len(owners) - 1))

    def owner(self, key, turn):
        return b"owner-of-forty-bytes-and-so-%012d" % (key * self.round + turn % self.round)

    @staticmethod
    def wait(key, owner):
        return packed(b"LOCK", key, owner, b"0", b"WAIT", b"0", b"ASYNC")

    def add_others(self, number):
        """Adds keys, each with a reader that holds it (SHARED) and a writer that waits."""
        for i in range(number):
            self.begin(b"other-%d" % i, [b"reader-%d" % i, b"writer-%d" % i], b"SHARED")

    def hand_over(self, keys):
        """Runs one hand-over of each key. Sends all requests at once."""
        out, expected = [], []
        for number in keys:
            key, turn = KEY % number, self.turns[number]
            self.turns[number] += 1
            owner, following = self.owner(number, turn), self.owner(number, turn + 1)
            out += [packed(b"UNLOCK", key, owner), self.wait(key, owner)]
            expected += [b":1\r\n>5\r\n$4\r\nlock\r\n$7\r\ngranted\r\n", bulk(key), bulk(following), TOKEN,
                         QUEUED]
        self.send(b"".join(out), b"".join(expected))

    def send(self, out, expected):
        self.socket.sendall(out)
        got = bytearray()
        while len(got) < len(expected):
            some = self.socket.recv(1 << 16)
            if not some:
                raise EOFError("the server closed the connection")
            got += some
        if re.sub(rb":\d{16}\r\n", TOKEN, got) != expected:
            raise RuntimeError(f"got {bytes(got[:300])!r}, wanted {expected[:300]!r}")

    def close(self):
        self.socket.close()

"""An HTTP client for tests that sends bytes as they are and shows each reply; and a server with the HTTP
door. No library in between that would correct a request."""
import base64
import json
import pathlib
import re
import socket
import time

from harness import LIMIT_S, Server, equal, until

API = ["info", "locks", "locks/k", "waiters", "history", "top", "events"]


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Http:
    """One connection."""

    def __init__(self, port, host="127.0.0.1", wrap=None):
        self.socket = socket.create_connection((host, port), timeout=LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wrap:
            self.socket = wrap(self.socket)
        self.input = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.input.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def read(self, body=True):
        """The next reply; None if the server has closed the connection."""
        line = self.input.readline()
        if not line:
            return None
        status = int(re.fullmatch(rb"HTTP/1\.[01] (\d{3}) [A-Za-z -]+\r\n", line)[1])
        headers = {}
        while (line := self.input.readline()) != b"\r\n":
            name, value = line.decode().rstrip("\r\n").split(": ", 1)
            headers[name.lower()] = value
        length = int(headers.get("content-length", 0))
        return Reply(status, headers, self.input.read(length) if body else b"")

    def get(self, path, method="GET", **fields):
        fields.setdefault("Host", "127.0.0.1")
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n")
        return self.read(body=method != "HEAD")

    def events(self):
        """The events after the reply's headers: (name, data), one after the other."""
        name = None
        while line := self.input.readline():
            kind, _, value = line.decode().rstrip("\n").partition(": ")
            if kind == "event":
                name = value
            elif kind == "data":
                yield name, json.loads(value)


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class HttpServer(Server):
    """A server with the HTTP door on a free port. Its log is a file."""

    def __init__(self, folder, *options, loaded=True):
        self.logfile = pathlib.Path(f"{folder}.log")
        self.logfile.unlink(missing_ok=True)
        super().__init__(folder, "--http-port", "auto", "--logfile", str(self.logfile), *options,
                         loaded=False)
        self.port = int(until(lambda: re.search(r"HTTP on 127\.0\.0\.1:(\d+)", self.log_text()))[1])
        if loaded:
            until(lambda: "ready to accept connections" in self.log_text())

    def log_text(self):
        return self.logfile.read_text("utf-8") if self.logfile.exists() else ""

    def http(self, **settings):
        return Http(self.port, **settings)

    def get(self, path, method="GET", **fields):
        with self.http() as client:
            return client.get(path, method, Connection="close", **fields)

    def post(self, path, **fields):
        return self.get(path, "POST", **fields)

    def ask_raw(self, data):
        """The status of the reply to these bytes; None if there is none."""
        with self.http() as client:
            client.send(data)
            reply = client.read()
            return reply and reply.status


def is_text(reply, status):
    """A refusal says nothing but what its status means."""
    equal(reply.status, status)
    equal(len(reply.body) < 120 and b"<" not in reply.body, True)
    equal(reply.headers["x-content-type-options"], "nosniff")


def closes(client, within_s=LIMIT_S):
    """Waits until the server closes the connection, and returns how long that took."""
    began = time.monotonic()
    client.socket.settimeout(within_s)
    try:
        equal(client.socket.recv(1), b"")
    except ConnectionResetError:
        pass
    return time.monotonic() - began

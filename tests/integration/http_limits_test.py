#!/usr/bin/env python3
"""The HTTP door of the real server: malformed, smuggled, large, slow and many requests. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import sys
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import equal, run_tests, test, until
from http_rig import HttpServer, closes, is_text

MALFORMED = [
    b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET /livez\r\n\r\n", b"GET /livez HTTP/2.0\r\nHost: a\r\n\r\n",
    b"GET /livez HTTP/1.1\r\n\r\n",                                    # no Host
    b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET livez HTTP/1.1\r\nHost: a\r\n\r\n", b"GET http://a/livez HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: a\r\n bad: b\r\nNo colon\r\n\r\n",
    b"GET /li\0vez HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /api/v1/info?a=1&a=2 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",  # a body
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",                # TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]
# What a proxy in front might read in another way.
SMUGGLED = [
    "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 5, 6", "Content-Length: -1",
    "Content-Length: +5", "Content-Length: 0x5", "Content-Length: 99999999999999999999",
    "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: \x0bchunked",
]


@test
def malformed_requests_are_rejected_and_the_connection_closes(folder):
    with HttpServer(folder) as server:
        for data in MALFORMED:
            with server.http() as client:
                client.send(data)
                is_text(client.read(), 400)
        for field in SMUGGLED:
            with server.http() as client:
                client.send(f"POST /api/v1/locks/k/break HTTP/1.1\r\nHost: 127.0.0.1\r\n{field}\r\n\r\n"
                            "0\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
                is_text(client.read(), 400)
                equal(client.read(), None)
        equal(server.get("/livez").status, 200)


@test
def sizes_at_their_limits(folder):
    def request(size, line="GET /livez HTTP/1.1\r\nHost: a\r\nX: ", end="\r\n\r\n"):
        return (line + "x" * (size - len(line) - len(end)) + end).encode()

    with HttpServer(folder) as server:
        for size, status in ((8191, 200), (8192, 200), (8193, 431), (100_000, 431)):
            equal((size, server.ask_raw(request(size))), (size, status))
        path = "GET /api/v1/info?"
        for size, status in ((4095, 200), (4096, 200), (4097, 414), (8000, 414), (50_000, 414)):
            target = request(size + 4, path, "") + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            equal((size, server.ask_raw(target)), (size, status))
        post = ("POST /api/v1/locks/k/break HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Origin: http://127.0.0.1\r\n")
        for size, status in ((8191, 200), (8192, 200), (8193, 413), (10 ** 9, 413)):
            data = f"{post}Content-Length: {size}\r\n\r\n" + "x" * min(size, 20_000)
            equal((size, server.ask_raw(data.encode())), (size, status))
        for size, status in ((8192, 200), (8193, 413)):
            data = f"{post}Transfer-Encoding: chunked\r\n\r\n{size:x}\r\n{'x' * size}\r\n0\r\n\r\n"
            equal((size, server.ask_raw(data.encode())), (size, status))


@test
def clients_that_only_stay_connected_do_not_keep_probes_out(folder):
    """By default there are at most 64. Each gives way, whatever it does not do."""
    requests = {
        "idle": "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n",
        "silent": "",
        "half a request": "GET /livez HTTP/1.1\r\n",
        "does not read": "GET /page/chart.js HTTP/1.1\r\nHost: a\r\n\r\n" * 9,
        "does not close": "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    }
    with HttpServer(folder) as server:
        for kind, request in requests.items():
            clients = [server.http() for _ in range(64)]
            for client in clients:
                client.send(request)
            for path in ["/livez", "/readyz", "/metrics"] * 3:
                equal((kind, server.get(path).status), (kind, 200))
            for client in clients:
                client.close()


@test
def the_client_with_the_oldest_reply_gives_way(folder):
    with HttpServer(folder, "--http-max-clients", "3") as server:
        first, second, third = (server.http() for _ in range(3))
        for client in second, first, third:
            equal(client.get("/livez").status, 200)
            time.sleep(0.01)  # the times differ
        with server.http() as fourth:
            equal(fourth.get("/livez").status, 200)
            closes(second)
            for client in first, third:
                equal(client.get("/livez").status, 200)


@test
def followers_of_the_events_stay_and_clients_of_the_protocol_do_not_count(folder):
    with HttpServer(folder, "--http-max-clients", "3", "--maxclients", "1") as server:
        # One client is connected by RESP, which is maxclients. It does not need one of the door.
        reply = server.get("/api/v1/info").json()
        equal((reply["connected_clients"], reply["max_clients"]), (1, 1))
        equal([check["name"] for check in reply["checks"] if not check["ok"]], ["clients"])
        held = [server.http() for _ in range(3)]
        for client in held:
            equal(client.get("/api/v1/events").status, 200)
        with server.http() as fourth:
            is_text(fourth.read(), 503)
            equal(fourth.read(), None)
        for client in held:
            client.close()
        until(lambda: server.get("/livez").status == 200)


@test
def unread_replies_and_unfinished_requests_count_as_used_memory(folder):
    with HttpServer(folder) as server:
        def used():
            return int(server.info("used_memory", "memory"))

        before = used()
        unread = server.http()
        while used() < before + 100_000:  # until the socket is full
            unread.send("GET /page/chart.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        unread.close()
        until(lambda: used() < before + 4096)
        unfinished = server.http()
        unfinished.send("GET /livez HTTP/1.1\r\nHost: a\r\nX: " + "x" * 8000)
        until(lambda: used() > before + 4096)
        unfinished.close()
        until(lambda: used() < before + 4096)


@test
def slow_requests_are_cut_after_ten_seconds_and_idle_clients_are_not(folder):
    with HttpServer(folder) as server, server.http() as idle, server.http() as silent, \
            server.http() as slow, server.http() as unread:
        equal(idle.get("/livez").status, 200)
        began = time.monotonic()
        slow.send("GET /livez HTTP/1.1\r\nHost: ")
        # It does not read. The kernel buffers a part of the replies; then the server must not wait forever.
        unread.socket.settimeout(1)
        with contextlib.suppress(OSError):
            for _ in range(2000):
                unread.send("GET /page/chart.js HTTP/1.1\r\nHost: a\r\n\r\n" * 10)
        while time.monotonic() - began < 5:
            slow.send("a")
            time.sleep(0.5)
        is_text(slow.read(), 408)
        closes(silent)
        equal(9.9 <= time.monotonic() - began, True)
        until(lambda: server.get("/api/v1/info").status == 200)
        equal(idle.get("/livez").status, 200)


if __name__ == "__main__":
    run_tests()

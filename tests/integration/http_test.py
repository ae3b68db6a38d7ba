#!/usr/bin/env python3
"""The HTTP door of the real server: probes, metrics, JSON, events, loading, recovery, a full disk.
The last line is "N passed, N failed". HOLDFAST_SERVER names the server, HOLDFAST_LOADED_KEYS how many keys
the test of the load reads."""
import contextlib
import os
import re
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import (LIMIT_S, SANITIZED, TTL_MS, Client, Server, Skipped, equal, has, run_tests, test,
                     until)
from http_rig import Http, HttpServer, is_text

CHECKS = ["loading", "recovering", "journal", "snapshot", "memory", "clients"]
LOADED_KEYS = int(os.environ.get("HOLDFAST_LOADED_KEYS",  # a multiple of 1,000
                                 150_000 if SANITIZED else 400_000))


def checks(server):
    """The checks of /readyz: the names that are ok, and the reasons of the others."""
    text = server.get("/readyz?verbose").body.decode()
    lines = re.findall(r"^\[([+-])\](\w+) (.*)$", text, re.MULTILINE)
    equal([name for _, name, _ in lines], CHECKS)
    return {name: why for sign, name, why in lines if sign == "-"}


@test
def without_the_option_nothing_listens(folder):
    with HttpServer(folder) as server:
        equal(server.get("/livez").status, 200)
        port = server.port
    with Server(folder) as plain:
        equal(plain.ask("PING"), "PONG")
        with contextlib.suppress(ConnectionRefusedError):
            Http(port)
            raise AssertionError("something listens")


@test
def probes_and_pages_need_no_login_and_have_safe_headers(folder):
    with HttpServer(folder, "--requirepass", "secret") as server:
        for path, body in (("/livez", b"alive\n"), ("/readyz", b"ready\n")):
            reply = server.get(path)
            equal((reply.status, reply.body), (200, body))
            equal(reply.headers["cache-control"], "no-store")
        page = server.get("/")
        equal((page.status, page.headers["content-type"]), (200, "text/html; charset=utf-8"))
        for script in re.findall(r'(?:src|href)="(/page/[^"]+)"', page.body.decode()):
            equal(server.get(script).status, 200)
        policy = page.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                     "base-uri 'none'"):
            has(policy, part)
        equal(page.headers["referrer-policy"], "no-referrer")


@test
def head_is_get_without_the_body(folder):
    with HttpServer(folder) as server, server.http() as client:
        for path in ("/livez", "/", "/metrics", "/api/v1/info", "/nothing"):
            head = client.get(path, "HEAD")
            get = client.get(path)
            equal((head.status, head.headers["content-type"]), (get.status, get.headers["content-type"]))


@test
def one_connection_serves_many_requests_also_in_one_packet(folder):
    with HttpServer(folder) as server, server.http() as client:
        client.send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
        equal([client.read().status for _ in range(50)], [200] * 50)
        client.send("GET /livez HTTP/1.0\r\n\r\n")
        equal(client.read().headers["connection"], "close")
        equal(client.read(), None)
        for piece in range(1, 30):
            with server.http() as slow:
                request = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
                slow.send(request[:piece])
                slow.send(request[piece:])
                equal(slow.read().status, 200)


@test
def methods(folder):
    with HttpServer(folder) as server:
        for path in ("/livez", "/metrics", "/api/v1/info"):
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"):
                reply = server.get(path, method)
                is_text(reply, 405)
                equal(reply.headers["allow"], "GET, HEAD")
        reply = server.get("/api/v1/locks/k/break")
        equal((reply.status, reply.headers["allow"]), (405, "POST"))
        for path in ("/nothing", "/api/v1/", "/api/v1/nothing", "/api/v1/locks/k/eat", "/api",
                     "/page/../livez",
                     "/page/", "/etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//livez", "/livez/"):
            is_text(server.get(path), 404)


@test
def keys_are_shown_and_named_by_their_bytes(folder):
    with HttpServer(folder) as server:
        keys = {b"plain": "plain", "grün/ö".encode(): "grün/ö", b"\xff\x00\n": "\\xff\\x00\\x0a",
                b"<script>": "<script>", "a\u202eb".encode(): "a\\xe2\\x80\\xaeb", b"\"\\": "\"\\",
                b"..": ".."}
        for key in keys:
            server.ask("LOCK", key, "own", TTL_MS)
        listed = server.get("/api/v1/locks?count=100")
        equal(b"<" in listed.body, False)
        rows = {row["key_id"]: row for row in listed.json()["locks"]}
        equal({urllib.parse.unquote_to_bytes(name): row["key"] for name, row in rows.items()}, keys)
        for name, row in rows.items():
            lock = server.get(f"/api/v1/locks/{name}").json()
            equal((lock["key"], lock["key_id"], lock["mode"]), (row["key"], name, "exclusive"))
            equal((lock["holders"][0]["owner"], lock["holders"][0]["token"]), ("own", row["token"]))
        equal(server.get("/api/v1/locks/free").status, 404)
        equal(server.get("/api/v1/locks/plain?db=1").status, 404)


@test
def locks_come_in_pages_of_any_database(folder):
    with HttpServer(folder) as server:
        server.ask("SELECT", 3)
        for n in range(120):
            server.lock(f"key:{n}")
        found, cursor = set(), "0"
        while True:
            page = server.get(f"/api/v1/locks?db=3&count=10&match=key:*&cursor={cursor}").json()
            found |= {row["key"] for row in page["locks"]}
            cursor = page["cursor"]
            if cursor == "0":
                break
        equal(found, {f"key:{n}" for n in range(120)})
        for bad in ("db=16", "db=-1", "db=x", "count=0", "count=1001", "cursor=x"):
            is_text(server.get(f"/api/v1/locks?{bad}"), 400)


@test
def a_long_reply_ends_early_and_says_so(folder):
    with HttpServer(folder) as server:
        for n in range(60):
            server.lock(f"{n:02}" + "x" * 60_000)
        found, cursor = set(), "0"
        while True:
            page = server.get(f"/api/v1/locks?count=1000&cursor={cursor}").json()
            found |= {row["key"][:2] for row in page["locks"]}
            cursor = page["cursor"]
            if cursor == "0":
                break
        equal(len(found), 60)
        with contextlib.closing(Client(server.path)) as crowd:
            server.lock("held")
            crowd.send(["HELLO", 3], *(["LOCK", "held", f"owner {n}", TTL_MS, "WAIT", 0, "ASYNC"]
                                       for n in range(8000)))
            until(lambda: server.get("/api/v1/info").json()["waiters"] == 8000)
            lock = server.get("/api/v1/locks/held").json()
            equal((lock["truncated"], len(lock["holders"])), (True, 1))
            equal([w["owner"] for w in lock["waiters"]],
                  [f"owner {n}" for n in range(len(lock["waiters"]))])
            equal(2000 < len(lock["waiters"]) < 8000, True)


@test
def info_has_the_figures_of_the_engine(folder):
    with HttpServer(folder, "--maxmemory", "100mb") as server:
        server.lock("a")
        server.lock("b", "alice", TTL_MS, "SHARED")
        server.lock("c", "alice", TTL_MS, "LIMIT", 3)
        with contextlib.closing(Client(server.path)) as waiter:
            waiter.send(["LOCK", "a", "bob", TTL_MS, "WAIT", 0])
            info = until(lambda: (i := server.get("/api/v1/info").json())["waiters"] == 1 and i)
        equal(info["locks"], {"exclusive": 1, "shared": 1, "semaphore": 1})
        equal((info["ready"], info["user"]), (True, "default"))
        equal(info["rights"], {"break": True, "revoke": True})
        equal((info["grants_total"], info["longest_queue"], info["memory_limit_bytes"]), (3, 1, 100 << 20))
        equal([check["name"] for check in info["checks"]], CHECKS)
        equal(info["server"]["run_id"], server.info("run_id", "server"))
        equal(info["server"]["port"], int(server.info("tcp_port", "server")))
        equal(len(info["wait"]["counts"]), len(info["wait"]["bounds_ms"]) + 1)
        equal(info["wait"]["counts"][-1], 3)
        equal(info["wait"]["bounds_ms"][:5], [0.1, 0.2, 0.4, 0.8, 1.6])


@test
def info_names_the_port_in_use(folder):
    with HttpServer(folder, "--port", "auto", "--bind", "127.0.0.1") as server:
        port = re.search(r"connections on 127\.0\.0\.1:(\d+)", server.log_text())[1]
        equal(server.get("/api/v1/info").json()["server"]["port"], int(port))
    with HttpServer(folder) as server:
        equal(server.get("/api/v1/info").json()["server"]["port"], 0)


# Each has the mark "evil", which no reply may repeat, except as the name of a lock that exists.
HOSTILE = ["%3Cscript%3Eevil%3C/script%3E", "%22%3E%3Cimg%20src=evil%3E", "..%2F..%2Fevil", "%00evil",
           "%FF%FEevil", "evil%0D%0ASet-Cookie:%20a=b", "%E2%80%AEevil", "<script>evil</script>",
           "99999999999999999999999evil", "-1evil", "evil" * 900]
QUERIES = {"info": ["a"], "locks": ["cursor", "match", "count", "db"], "locks/k": ["db"],
           "waiters": ["count"], "history": ["key", "count", "since", "db"], "top": ["by", "count"],
           "events": ["a"]}


@test
def hostile_paths_queries_and_fields_get_a_clear_status_and_are_not_repeated(folder):
    with HttpServer(folder) as server:
        def refused_or_empty(target, statuses, **fields):
            reply = server.get(target, "HEAD" if "events" in target else "GET", **fields)
            what = (target[:80], reply.status)
            equal((what, reply.status in statuses), (what, True))
            text = reply.body + repr(reply.headers).encode()
            equal((what, b"evil" in text or b"<" in reply.body or b"set-cookie" in text.lower()),
                  (what, False))
            if reply.body and reply.headers["content-type"].startswith("application/json"):
                reply.json()
        free_text = {"a", "match", "key"}  # any text is valid
        for text in HOSTILE:
            for path, names in QUERIES.items():
                refused_or_empty(f"/api/v1/{path}/{text}", (404,))
                for name in names:
                    known = (404,) if path == "locks/k" and name in free_text else (200,)
                    refused_or_empty(f"/api/v1/{path}?{name}={text}",
                                     known if name in free_text else (400,))
                refused_or_empty(f"/api/v1/{path}?{text}=1", (200, 404))  # of an unknown name
            for target in (f"/{text}", f"/page/{text}", f"/api/v1/{text}", f"/api/v1/locks/{text}",
                           f"/api/v1/locks/{text}/break", f"/metrics/{text}", f"/livez/{text}"):
                refused_or_empty(target, (404, 405))
        for value in ("<script>evil</script>", "evil\xff\x01", "../evil", "evil" * 1000):
            for name in ("Accept", "If_None_Match", "Origin", "Referer", "User_Agent", "Cookie",
                         "X_Requested_With"):
                statuses = (400,) if "\x01" in value else (200,)
                refused_or_empty("/api/v1/info", statuses, **{name: value})
            for name, statuses in (("Host", (400, 403)), ("Authorization", (400, 401)),
                                   ("Sec_Fetch_Site", (400, 403))):
                refused_or_empty("/api/v1/info", statuses, **{name: value})
        equal([line for line in server.log_text().splitlines() if line.startswith("Set-Cookie")], [])


@test
def metrics_in_both_formats(folder):
    with HttpServer(folder, "--appendfsync", "always") as server:
        server.lock("k")
        text = server.get("/metrics")
        equal(text.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        for metric in ("holdfast_lock_grants_total{mode=\"exclusive\",queued=\"no\"} 1",
                       "holdfast_ready{check=\"loading\"} 1", "process_resident_memory_bytes "):
            has(text.body.decode(), metric)
        for histogram in ("holdfast_loop_turn_seconds", "holdfast_journal_fsync_seconds"):
            count = re.search(rf"^{histogram}_count (\d+)", text.body.decode(), re.MULTILINE)[1]
            equal(int(count) > 0, True)
        for gauge in ("process_open_fds", "process_max_fds", "process_start_time_seconds"):
            equal(float(re.search(rf"^{gauge} (\S+)", text.body.decode(), re.MULTILINE)[1]) > 0, True)
        open_text = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        equal(open_text.headers["content-type"],
              "application/openmetrics-text; version=1.0.0; charset=utf-8")
        equal(open_text.body.endswith(b"# EOF\n"), True)


@test
def a_repeat_that_waited_is_no_grant_in_info_and_in_metrics(folder):
    with HttpServer(folder) as server:
        server.lock("k")
        waiters = [Client(server.path) for _ in range(2)]
        for waiter in waiters:
            waiter.send(["LOCK", "k", "bob", TTL_MS, "WAIT", 0])
        until(lambda: server.info("lock_waiters", "locks") == "2")
        server.ask("UNLOCK", "k", "alice")
        for waiter in waiters:
            equal(waiter.reply()[0], b"bob")
            waiter.close()
        has(server.get("/metrics").body.decode(),
            "holdfast_lock_grants_total{mode=\"exclusive\",queued=\"yes\"} 1\n",
            "holdfast_lock_wait_seconds_count{mode=\"exclusive\"} 2\n",
            "holdfast_lock_wait_ends_total{reason=\"granted\"} 2\n")
        equal([server.info(f"lock_{name}grants", "locks") for name in ("", "queued_")], ["2", "1"])
        equal(server.get("/api/v1/info").json()["wait"]["counts"][-1], 2)


@test
def a_break_grants_the_lock_to_its_waiter_and_is_kept(folder):
    for fsync in ("always", "everysec"):
        with HttpServer(folder, "--appendfsync", fsync) as server:
            origin = f"http://127.0.0.1:{server.port}"
            server.lock(f"broken {fsync}")
            with contextlib.closing(Client(server.path)) as waiter:
                waiter.send(["LOCK", f"broken {fsync}", "bob", TTL_MS, "WAIT", 0])
                until(lambda: server.get("/api/v1/info").json()["waiters"] == 1)
                reply = server.post(f"/api/v1/locks/broken%20{fsync}/break",
                                    Host=f"127.0.0.1:{server.port}", Origin=origin)
                equal((reply.status, reply.json()), (200, {"broken": 1}))
                equal(waiter.reply()[0], b"bob")
                reply = server.post(f"/api/v1/locks/broken%20{fsync}/revoke",
                                    Host=f"127.0.0.1:{server.port}", Origin=origin)
                equal((reply.status, reply.json()), (200, {"asked": 1}))
            has(server.log_text(), f"\"LOCKS\" \"BREAK\" \"broken {fsync}\"")
            server.kill()


@test
def events_show_the_state_each_second_and_each_change(folder):
    with HttpServer(folder) as server, server.http() as client:
        reply = client.get("/api/v1/events")
        equal((reply.status, reply.headers["content-type"]), (200, "text/event-stream; charset=utf-8"))
        events = client.events()
        name, info = next(events)
        equal((name, info["ready"]), ("info", True))
        token = server.lock("k", "bob", TTL_MS)
        server.ask("UNLOCK", "k", "bob")
        changes = [next(e[1] for e in events if e[0] == "change") for _ in range(2)]
        equal([(c["event"], c["key"], c["owner"], c["token"]) for c in changes],
              [("granted", "k", "bob", token), ("released", "k", "bob", token)])
        last = server.get("/api/v1/history?count=2").json()["events"]
        equal(sorted(last[0]), sorted(changes[1]))
        equal([event["serial"] for event in last], [c["serial"] for c in reversed(changes)])
        infos = [next(e[1] for e in events if e[0] == "info") for _ in range(2)]
        equal(infos[1]["now_ms"] - infos[0]["now_ms"] >= 900, True)
        for n in range(300):
            server.ask("LOCK", f"many:{n}", "bob", TTL_MS)
        dropped = next(e[1]["count"] for e in events if e[0] == "dropped")
        equal(100 <= dropped < 300, True)


@test
def events_have_at_most_16_clients_and_end_with_the_server(folder):
    with HttpServer(folder) as server:
        clients = [server.http() for _ in range(16)]
        for client in clients:
            equal(client.get("/api/v1/events").status, 200)
        is_text(server.get("/api/v1/events"), 503)
        clients.pop().close()
        until(lambda: server.get("/api/v1/events", "HEAD").status == 200)
        server.process.terminate()
        for client in clients:
            equal({name for name, _ in client.events()}, {"info"})  # until the end
        server.process.wait(LIMIT_S)


@test
def top_shows_the_contended_keys(folder):
    with HttpServer(folder) as server, contextlib.closing(Client(server.path)) as waiter:
        server.lock("k")
        waiter.send(["LOCK", "k", "bob", TTL_MS, "WAIT", 0])
        rows = until(lambda: server.get("/api/v1/waiters").json()["keys"])
        equal((rows[0]["key"], rows[0]["key_id"], rows[0]["waiters"], rows[0]["db"]), ("k", "k", 1, 0))
        server.ask("UNLOCK", "k", "alice")
        waiter.reply()
        rows = server.get("/api/v1/top?by=wait&count=5").json()["keys"]
        equal((rows[0]["waits"], rows[0]["holds"], sorted(rows[0])),
              (1, 1, ["db", "holds", "key", "key_id", "max_wait_ms", "wait_ms", "waiters", "waits"]))
        for bad in ("by=x", "count=0"):
            is_text(server.get(f"/api/v1/top?{bad}"), 400)


@test
def a_pause_and_a_long_script_do_not_hold_up_the_door(folder):
    with HttpServer(folder, "--busy-reply-threshold", "10") as server:
        other = Client(server.path)
        server.ask("CLIENT", "PAUSE", 1500)
        is_text(server.get("/api/v1/locks"), 503)
        equal(server.get("/api/v1/info").status, 200)
        equal(other.ask("PING"), "PONG")  # after the pause
        equal(server.get("/api/v1/locks").status, 200)
        server.send(["EVAL", "while true do end", 0])
        until(lambda: isinstance(other.ask("GET", "k"), RuntimeError))
        equal([server.get(path).status for path in ("/livez", "/metrics", "/api/v1/info", "/api/v1/locks")],
              [200, 200, 200, 503])
        other.ask("SCRIPT", "KILL")
        server.reply()
        other.close()


@test
def probes_answer_while_the_server_reads_its_data(folder):
    with HttpServer(folder, "--appendonly", "no") as server:
        for first in range(0, LOADED_KEYS, 1000):  # random: the load answers after each MiB of the file
            equal(server.ask("MSET", *(text for i in range(first, first + 1000)
                                       for text in (f"key:{i}", os.urandom(500)))), "OK")
        equal(server.ask("DBSIZE"), LOADED_KEYS)
        server.ask("SAVE")
    with HttpServer(folder, loaded=False) as server:
        first = server.get("/readyz")
        reasons = checks(server)
        alive = server.get("/livez").status
        scrape = server.get("/metrics").body.decode()
        if "ready to accept" in server.log_text():
            raise Skipped("the server has loaded too fast")
        equal((first.status, alive, list(reasons)), (503, 200, ["loading"]))
        has(scrape, "holdfast_ready{check=\"loading\"} 0")
        equal(server.get("/api/v1/locks").status, 503)
        until(lambda: server.get("/readyz").status == 200)
        equal(checks(server), {})
        equal(server.ask("DBSIZE"), LOADED_KEYS)


@test
def the_recovery_wait_is_not_ready(folder):
    with HttpServer(folder) as server:
        server.lock("k", "alice", 2000)
        server.kill()
    meta = (folder / "meta").read_text()
    (folder / "meta").unlink()  # a server that does not know what the last one granted
    equal("crc" in meta, True)
    with HttpServer(folder, "--recovery-wait", "3000") as server:
        has(checks(server).get("recovering", ""), "no new locks for")
        equal(server.get("/readyz").status, 503)
        until(lambda: server.get("/readyz").status == 200)


@test
def a_full_disk_and_full_memory_are_not_ready_until_they_heal(folder):
    with HttpServer(folder, "--appendonly", "no") as server:
        server.ask("SET", "large", "x" * (21 << 20))
        server.ask("CONFIG", "SET", "maxmemory", "20mb")
        has(checks(server)["memory"], "used memory is", "maxmemory is 20971520 bytes")
        server.ask("DEL", "large")
        until(lambda: checks(server) == {})
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False,
                          capture_output=True)
    if done.returncode != 0:
        raise Skipped("a tmpfs cannot be mounted")
    try:
        with HttpServer(folder) as server:
            server.lock("k")
            server.ask("SET", "plain", "value")
            for n in range(400):
                server.lock(f"key:{n}")
            filler = folder / "filler"
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as out:
                while True:
                    out.write(bytes(4096))
            for n in range(400):  # more records than fit in the rest of the journal's last page
                server.ask("UNLOCK", f"key:{n}", "alice")
            has(checks(server)["journal"], "No space left on device")
            # Reads work: they give no token to a string, which the disk could not keep.
            with contextlib.closing(Client(server.path)) as reader:
                _, rows = reader.ask("LOCKS", "LIST", 0, "MATCH", "plain")
                equal(rows[0][rows[0].index(b"token") + 1], 0)
                equal(len(reader.ask("LOCKS", "INFO", "plain")), 12)
                equal(len(reader.ask("LOCKS", "OWNED", "value")), 1)
            host = f"127.0.0.1:{server.port}"
            reply = server.post("/api/v1/locks/k/break", Host=host, Origin=f"http://{host}")
            equal((reply.status, reply.json()), (200, {"broken": 1}))  # as over RESP: releases run
            server.ask("SAVE")
            equal("snapshot" in checks(server), True)
            filler.unlink()
            until(lambda: "journal" not in checks(server))
            equal(server.ask("SAVE"), "OK")
            equal(checks(server), {})
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


if __name__ == "__main__":
    run_tests()

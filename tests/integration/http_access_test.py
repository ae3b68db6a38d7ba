#!/usr/bin/env python3
"""Who may do what at the HTTP door of the real server: logins, permissions, origins, machines, TLS. The
last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import ssl
import sys

sys.dont_write_bytecode = True  # only build/ has generated files
from certificates import Certificates
from harness import TTL_MS, Skipped, equal, has, other_addresses, run_tests, test, until
from http_rig import API, Http, HttpServer, basic, is_text

USERS = ("--user", "default on >admin ~* &* +@all", "--user", "viewer on >see ~* +info +locks|list",
         "--user", "reader on >read ~mine:* +info +locks|info +locks|history +locks|top",
         "--user", "off off >off ~* +@all", "--user", "nobody on >none ~* -@all")


@test
def errors_of_the_api_are_json_and_say_what_is_wrong(folder):
    with HttpServer(folder, *USERS) as server:
        viewer = basic("viewer", "see")
        for path, login, status, error in (
                ("locks?count=1001", viewer, 400, "count must be an integer from 1 to 1000"),
                ("locks?db=16", viewer, 400, "db must be an integer from 0 to 15"),
                ("locks?db=1&db=2", viewer, 400, "malformed"), ("locks/%zz", viewer, 400, "malformed"),
                ("info", None, 401, "log in"),
                ("info", basic("viewer", "no"), 401, "wrong user"),
                ("history", viewer, 403, "to run 'locks|history'"),
                ("events", viewer, 403, "locks|history"),
                ("locks/k", basic("reader", "read"), 403, "to access this key"),
                ("locks/k/break", viewer, 405, "method"), ("nothing", viewer, 404, "no such path")):
            reply = server.get(f"/api/v1/{path}", **({"Authorization": login} if login else {}))
            equal((path, reply.status), (path, status))
            equal(list(reply.json()), ["error"])
            has(reply.json()["error"].lower(), error.lower())
        equal(list(server.get("/api/v2/info").json()), ["error"])


@test
def each_path_needs_the_permission_of_its_command(folder):
    allowed = {
        None: [], ("nobody", "none"): [], ("off", "off"): [], ("viewer", "wrong"): [],
        ("viewer", "see"): ["/metrics", "/readyz?verbose", "/api/v1/info", "/api/v1/locks"],
        ("reader", "read"): ["/metrics", "/readyz?verbose", "/api/v1/info", "/api/v1/locks/mine:k",
                             "/api/v1/history", "/api/v1/top", "/api/v1/waiters", "/api/v1/events"],
        ("", "admin"): "all", ("default", "admin"): "all",
    }
    paths = ["/metrics", "/readyz?verbose", *(f"/api/v1/{name}" for name in API), "/api/v1/locks/mine:k"]
    with HttpServer(folder, *USERS) as server:
        server.lock_as = server.ask("AUTH", "admin")
        for login, good in allowed.items():
            known = login and login[0] != "off" and login[1] != "wrong"
            fields = {"Authorization": basic(*login)} if login else {}
            for path in paths:
                # A foreign Host: the probe's details are free for programs on this machine.
                reply = server.get(path, "HEAD", Host="example.org", **fields)
                wanted = (200, 404) if good == "all" or path in good else ((403,) if known else (401,))
                outcome = (login, path, reply.status)
                equal((outcome, reply.status in wanted), (outcome, True))
                if reply.status == 401:
                    has(reply.headers["www-authenticate"], "Basic realm=")
            equal(server.get("/readyz", **fields).status, 200)
        for broken in ("Basic", "Basic !!!!", "Basic YQ==", "Bearer abc", "Basic " + "A" * 5000):
            is_text(server.get("/api/v1/info", Authorization=broken), 401)
        reasons = [entry[entry.index(b"reason") + 1] for entry in server.ask("ACL", "LOG")]
        equal({b"auth", b"command", b"key"} <= set(reasons), True)


@test
def a_change_needs_a_login_a_right_and_the_own_origin(folder):
    with HttpServer(folder, *USERS) as server:
        equal(server.ask("AUTH", "admin"), "OK")
        server.lock("k")
        host = f"127.0.0.1:{server.port}"
        own, admin = f"http://{host}", basic("default", "admin")
        for fields, status in (
                ({"Origin": own}, 401), ({"Origin": own, "Authorization": basic("default", "no")}, 401),
                ({"Origin": own, "Authorization": basic("viewer", "see")}, 403),
                ({"Authorization": admin}, 403), ({"Origin": "null", "Authorization": admin}, 403),
                ({"Origin": "http://evil.example", "Authorization": admin}, 403),
                ({"Origin": f"https://{host}", "Authorization": admin}, 403),
                ({"Origin": f"http://{host}.evil.example", "Authorization": admin}, 403),
                ({"Origin": own, "Sec_Fetch_Site": "cross-site", "Authorization": admin}, 403)):
            lines = server.log_text().count("rejected")
            is_text(server.post("/api/v1/locks/k/break", Host=host, **fields), status)
            equal(server.log_text().count("rejected"), lines + 1)
            has(server.log_text(), "audit: http 127.0.0.1:", "POST \"/api/v1/locks/k/break\" rejected")
        equal(server.ask("GET", "k"), b"alice")
        has(server.log_text(), "(user \"viewer\")", "(user \"\")")
        reply = server.post("/api/v1/locks/k/break", Host=host, Origin=own, Authorization=admin)
        equal((reply.status, reply.json()), (200, {"broken": 1}))


@test
def a_flood_of_rejected_posts_makes_few_audit_lines_and_a_break_still_has_its_own(folder):
    with HttpServer(folder, "--requirepass", "secret") as server, server.http() as client:
        rejected = 0

        def dropped_after_more():
            nonlocal rejected
            client.send("POST /api/v1/locks/k/break HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 500)
            equal({client.read().status for _ in range(500)}, {401})
            rejected += 500
            return rejected >= 1000 and "the rest is dropped" in server.log_text()

        until(dropped_after_more)
        own = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1",
               "Authorization": basic("default", "secret")}
        equal(client.get("/api/v1/locks/k/break", "POST", **own).status, 200)
        has(server.log_text(), "rejected POST: more than 100 lines in one second; the rest is dropped",
            '"LOCKS" "BREAK" "k"')
        equal(server.log_text().count("rejected\n") < rejected, True)


@test
def without_a_password_only_this_machine_by_its_own_name(folder):
    with HttpServer(folder) as server:
        for host in ("127.0.0.1", f"127.0.0.1:{server.port}", "localhost", f"localhost:{server.port}",
                     "[::1]:80"):
            equal((host, server.get("/api/v1/info", Host=host).status), (host, 200))
        for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:7380", "",
                     "127.0.0.1@evil.example", "localhost.", "0.0.0.0"):
            for path in ("/api/v1/info", "/metrics", "/readyz?verbose"):
                equal((host, server.get(path, Host=host).status), (host, 403))
            equal(server.get("/livez", Host=host).status, 200)
        equal(server.get("/api/v1/info", Sec_Fetch_Site="same-site").status, 403)
        equal(server.get("/api/v1/info", Sec_Fetch_Site="same-origin").status, 200)


@test
def a_login_that_needs_no_password_opens_nothing(folder):
    users = ("--user", "guest on nopass ~* +@all", "--user", "eve on >secret ~* +@all")
    with HttpServer(folder, *users) as server:
        guests = [basic(user, "anything") for user in ("default", "", "guest")]
        server.lock("k")
        for login in guests:  # a page that reaches this machine by DNS rebinding can send such a login
            fields = {"Host": "evil.example", "Authorization": login}
            for path in ("/api/v1/info", "/metrics", "/api/v1/events", "/api/v1/locks/k"):
                is_text(server.get(path, **fields), 403)
            is_text(server.post("/api/v1/locks/k/break", Origin="http://evil.example", **fields), 403)
            equal(server.get("/api/v1/info", Authorization=login).status, 200)
        equal(server.get("/metrics", Host="example.org", Authorization=basic("eve", "secret")).status, 200)
        server.ask("ACL", "SETUSER", "default", "off")
        is_text(server.get("/metrics", Host="evil.example", Authorization=guests[2]), 403)
        equal(server.ask("GET", "k"), b"alice")


@test
def another_machine_needs_a_password(folder):
    if not other_addresses():
        raise Skipped("this machine has no other address")
    address = other_addresses()[0]
    with HttpServer(folder, "--http-bind", f"127.0.0.1 {address}") as server:
        def ask(path, **fields):
            with Http(server.port, address) as client:
                return client.get(path, Host=f"{address}:{server.port}", **fields)
        equal([ask(path).status for path in ("/livez", "/readyz", "/")], [200] * 3)
        for path in ("/metrics", "/readyz?verbose", "/api/v1/info"):
            is_text(ask(path), 403)
            is_text(ask(path, Authorization=basic("default", "anything")), 403)
        server.ask("CONFIG", "SET", "requirepass", "secret")
        equal(ask("/metrics").status, 401)
        equal(ask("/metrics", Authorization=basic("default", "secret")).status, 200)


@test
def a_user_that_loses_its_permission_loses_the_events(folder):
    with HttpServer(folder, *USERS) as server, server.http() as client:
        server.ask("AUTH", "admin")
        client.get("/api/v1/events", Authorization=basic("reader", "read"))
        server.ask_all([["LOCK", "mine:k", "bob", TTL_MS], ["LOCK", "secret", "bob", TTL_MS],
                        ["LOCK", "mine:2", "bob", TTL_MS]])
        events = client.events()
        keys = [next(e[1]["key"] for e in events if e[0] == "change") for _ in range(2)]
        equal(keys, ["mine:k", "mine:2"])
        server.ask("ACL", "SETUSER", "reader", "-info")
        equal([name for name, _ in events if name == "change"], [])  # until the end


@test
def tls(folder):
    files = Certificates(folder.parent / "certificates")
    context = ssl.create_default_context(cafile=files.pem("ca"))
    with HttpServer(folder, "--http-tls", "yes", "--tls-auth-clients", "no", "--tls-cert-file",
                    files.pem("server"), "--tls-key-file", files.key("server")) as server:
        def wrap(plain):
            return context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
        host = f"localhost:{server.port}"
        with Http(server.port, wrap=wrap) as client:
            for _ in range(3):
                equal(client.get("/api/v1/info", Host=host).status, 200)
            equal(len(client.get("/page/chart.js").body) > 100_000, True)
            reply = client.get("/api/v1/locks/k/break", "POST", Host=host, Origin=f"https://{host}",
                               Connection="close")
            equal((reply.status, client.read()), (200, None))
        with Http(server.port) as plain:
            plain.send("GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            equal(plain.socket.recv(100)[:5].startswith(b"HTTP"), False)


if __name__ == "__main__":
    run_tests()

#!/usr/bin/python3
"""Access control of the real server: requirepass by file, flag and CONFIG SET; users in the config file and
in an ACL file; AUTH of clients; protected mode; the limits before login; the audit lines in the log. The
last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import socket
import subprocess

import redis
from harness import LIMIT_S, Client, Server, equal, has, other_addresses, refusal, run_tests, test

# The SHA-256 hash of the password "x".
HASH = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
PLAIN = "user default on nopass ~* &* +@all"


def beside(folder, name, text):
    """Writes a file beside the data folder and returns its path."""
    path = folder.parent / name
    path.write_text(text)
    return path


def texts(reply):
    return [item.decode() for item in reply]


def redis_cli(path, *arguments):
    return subprocess.run(["redis-cli", "--no-auth-warning", "-s", path, *arguments], capture_output=True,
                          text=True, check=False, timeout=LIMIT_S).stdout


def new_connection(server):
    return Client(server.path)


def is_closed(client):
    return client.replies.readline() == b""


@test
def requirepass_by_flag_or_by_file_makes_auth_necessary(folder):
    conf = beside(folder, "conf", "# a comment\nrequirepass = se#cret word  \n")
    for options, password in (["--requirepass", "pw"], "pw"), (["--config", str(conf)], "se#cret word"):
        with Server(folder, *options) as server:
            has(server.ask("GET", "k"), "NOAUTH")
            has(server.ask("AUTH", "bad"), "WRONGPASS")
            equal(server.ask("AUTH", password), "OK")
            equal(server.ask("CONFIG", "GET", "requirepass"), [b"requirepass", password.encode()])


@test
def config_rewrite_keeps_password_and_users(folder):
    conf = beside(folder, "conf", "user = bob on >x +get ~b*\n# between\ntimeout = 5\n")
    with Server(folder, "--config", str(conf)) as server:
        equal(texts(server.ask("ACL", "USERS")), ["bob", "default"])
        equal(server.ask("ACL", "SETUSER", "alice", "on", ">x", "+@lock"), "OK")
        equal(server.ask("ACL", "DELUSER", "bob"), 1)
        equal(server.ask("CONFIG", "SET", "requirepass", "a#b"), "OK")
        listed = server.ask("ACL", "LIST")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
        once = conf.read_text()
        equal(server.ask("CONFIG", "REWRITE"), "OK")
        equal(conf.read_text(), once)
    has(once, "# between\n", "requirepass = a#b\n", f"user = alice on #{HASH} resetchannels -@all +@lock\n")
    with Server(folder, "--config", str(conf)) as server:
        equal(server.ask("AUTH", "a#b"), "OK")
        equal(server.ask("ACL", "LIST"), listed)


@test
def config_rewrite_writes_no_users_if_none_are_defined(folder):
    conf = beside(folder, "conf", "requirepass = pw\n")
    with Server(folder, "--config", str(conf)) as server:
        equal(server.ask("AUTH", "pw"), "OK")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
    equal("user" in conf.read_text(), False)


@test
def an_acl_file_is_loaded_saved_and_loaded_again(folder):
    users = beside(folder, "users.acl", f"{PLAIN}\n\n# a comment\nuser alice on >x ~jobs:* +@lock\n")
    with Server(folder, "--aclfile", str(users)) as server:
        alice = new_connection(server)
        equal(alice.ask("AUTH", "alice", "x"), "OK")
        has(alice.ask("GET", "jobs:1"), "NOPERM")
        equal(alice.ask("LOCK", "jobs:1", "alice", 1000)[0], b"alice")
        equal(server.ask("ACL", "SAVE"), "OK")
        saved = users.read_text()
        equal(saved, f"user alice on #{HASH} ~jobs:* resetchannels -@all +@lock\n{PLAIN}\n")
        users.write_text(saved.replace("+@lock", "+@lock +get") + "user bob on nopass +@all\n")
        bob_before = server.ask("AUTH", "bob", "x")
        equal(server.ask("ACL", "LOAD"), "OK")
        has(bob_before, "WRONGPASS")
        equal(texts(server.ask("ACL", "USERS")), ["alice", "bob", "default"])
        equal(is_closed(alice), True)  # the rules of alice have changed
        equal(server.ask("ACL", "LOAD"), "OK")


@test
def acl_load_keeps_the_connections_of_unchanged_users(folder):
    users = beside(folder, "users.acl", "user alice on >x ~* +@all\nuser bob on >x ~* +@all\n")
    with Server(folder, "--aclfile", str(users)) as server:
        alice, bob = new_connection(server), new_connection(server)
        equal(alice.ask("AUTH", "alice", "x"), "OK")
        equal(bob.ask("AUTH", "bob", "x"), "OK")
        users.write_text("user alice on >x ~* +@all\n")
        equal(server.ask("ACL", "LOAD"), "OK")
        equal(alice.ask("PING"), "PONG")
        equal(is_closed(bob), True)


@test
def a_bad_acl_file_is_rejected_by_acl_load_and_at_startup(folder):
    users = beside(folder, "users.acl", "user alice on >x ~* +@all\n")
    wrong = f"{PLAIN}\nuser bob on +nosuch\nbob\nuser carl on #abc\nuser bob on (+get\nuser default off\n"
    with Server(folder, "--aclfile", str(users)) as server:
        alice = new_connection(server)
        equal(alice.ask("AUTH", "alice", "x"), "OK")
        users.write_text(wrong)
        error = server.ask("ACL", "LOAD")
        has(error, f"{users}:2: Error in applying operation '+nosuch': Unknown command",
            f"{users}:3 should start with user", f"{users}:4: The password hash",
            f"{users}:5: Unmatched parenthesis", f"{users}:6: Duplicate user 'default'", "no change")
        users.unlink()
        has(server.ask("ACL", "LOAD"), "No such file or directory")
        equal(alice.ask("PING"), "PONG")
        equal(texts(server.ask("ACL", "USERS")), ["alice", "default"])
    has(refusal(folder, "--aclfile", str(users)), "No such file or directory")
    users.write_text(wrong)
    has(refusal(folder, "--aclfile", str(users)), f"{users}:2: ")
    has(refusal(folder, "--user", "bob on +nosuch"), "Unknown command")
    has(refusal(folder, "--user", "bob on", "--aclfile", str(users)), "cannot be used together")


@test
def requirepass_applies_if_the_acl_file_does_not_name_default(folder):
    users = beside(folder, "users.acl", "user alice on >x ~* +@all\n")
    with Server(folder, "--aclfile", str(users), "--requirepass", "pw") as server:
        has(server.ask("PING"), "NOAUTH")
        equal(server.ask("AUTH", "pw"), "OK")
        equal(server.ask("ACL", "LOAD"), "OK")
        has(new_connection(server).ask("PING"), "NOAUTH")


@test
def clients_log_in(folder):
    with Server(folder, "--requirepass", "pw", "--user", "alice on >x ~* &* +@all") as server:
        equal(redis_cli(server.path, "-a", "pw", "ACL", "WHOAMI"), "default\n")
        equal(redis_cli(server.path, "--user", "alice", "--pass", "x", "ACL", "WHOAMI"), "alice\n")
        equal(redis_cli(server.path, "-3", "--user", "alice", "--pass", "x", "ACL", "WHOAMI"), "alice\n")
        has(redis_cli(server.path, "--user", "alice", "--pass", "y", "PING"), "NOAUTH")
        for name, password in (None, "pw"), ("alice", "x"):
            client = redis.Redis(unix_socket_path=server.path, username=name, password=password)
            equal(client.acl_whoami(), name or "default")
            equal(client.lock("k", timeout=5).acquire(blocking=False), True)
            client.delete("k")
            client.close()
        try:
            redis.Redis(unix_socket_path=server.path, username="alice", password="bad").ping()
            raise AssertionError("the server accepted a wrong password")
        except redis.RedisError as error:
            has(error, "WRONGPASS")
        equal(server.ask("AUTH", "pw"), "OK")


@test
def input_before_login_is_limited(folder):
    with Server(folder, "--requirepass", "pw") as server:
        for sent, want in ((b"*10\r\n" + b"$1\r\na\r\n" * 10, b"-ERR unknown command"),
                           (b"*11\r\n", b"-ERR Protocol error: unauthenticated multibulk length"),
                           (b"*2\r\n$4\r\nAUTH\r\n$16384\r\n" + b"a" * 16384 + b"\r\n",
                            b"-WRONGPASS"),
                           (b"*2\r\n$4\r\nAUTH\r\n$16385\r\n",
                            b"-ERR Protocol error: unauthenticated bulk length"),
                           (b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*2\r\n$4\r\nECHO\r\n$20000\r\n" +
                            b"a" * 20000 + b"\r\n", b"+OK\r\n$20000\r\n")):
            guest = new_connection(server)
            guest.socket.sendall(sent)
            equal(guest.replies.read(len(want)), want)
            guest.close()
        equal(server.ask("AUTH", "pw"), "OK")


@test
def protected_mode_denies_remote_clients_while_there_is_no_password(folder):
    """Needs an address other than loopback. On a machine without one, the test checks nothing."""
    for address in other_addresses()[:1]:
        with socket.socket() as probe:
            probe.bind((address, 0))
            port = probe.getsockname()[1]
        options = ["--port", str(port), "--bind", address, "127.0.0.1"]
        with Server(folder, *options) as server:
            def ping(host):
                with socket.create_connection((host, port), LIMIT_S) as s:
                    s.sendall(b"PING\r\n")
                    with s.makefile("rb") as replies:
                        return replies.readline()
            has(ping(address), b"-DENIED Holdfast is running in protected mode")
            equal(ping("127.0.0.1"), b"+PONG\r\n")
            equal(server.ask("CONFIG", "SET", "protected-mode", "no"), "OK")
            equal(ping(address), b"+PONG\r\n")
            equal(server.ask("CONFIG", "SET", "protected-mode", "yes", "requirepass", "pw"), "OK")
            has(ping(address), b"-NOAUTH")
            equal(server.ask("CONFIG", "SET", "requirepass", ""), "OK")
            equal(server.ask("ACL", "SETUSER", "default", "off"), "OK")
            has(ping(address), b"-NOAUTH")


@test
def dangerous_commands_are_logged_with_their_user_and_without_passwords(folder):
    with Server(folder, "--user", "alice on >x ~* +@all") as server:
        equal(server.ask("AUTH", "alice", "x"), "OK")
        server.lock("k")
        equal(server.ask("LOCKS", "BREAK", "k"), 1)
        equal(server.ask("FLUSHALL"), "OK")
        equal(server.ask("FLUSHDB"), "OK")
        equal(server.ask("CONFIG", "SET", "timeout", "7", "requirepass", "hush"), "OK")
        equal(server.ask("ACL", "SETUSER", "bob", ">hush", "+get"), "OK")
        equal(server.ask("ACL", "DELUSER", "bob"), 1)
        has(new_connection(server).ask("FLUSHALL"), "NOAUTH")  # rejected, so it has no audit line
        server.send(["SHUTDOWN"])
        server.ended()
    audit = [line.partition(": ")[2] for line in server.log.splitlines() if " audit: " in line]
    equal(audit, ['client 1 (' + server.path + ':0, user "alice"): ' + words for words in
                  ('"LOCKS" "BREAK" "k"', '"FLUSHALL"', '"FLUSHDB"',
                   '"CONFIG" "SET" "timeout" "7" "requirepass" "(redacted)"',
                   '"ACL" "SETUSER" "bob" "(redacted)" "+get"', '"ACL" "DELUSER" "bob"', '"SHUTDOWN"')])
    equal("hush" in server.log, False)


if __name__ == "__main__":
    run_tests()

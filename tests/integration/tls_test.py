#!/usr/bin/python3
"""TLS of the real server, with redis-cli, Python's ssl, redis-py and openssl s_client as clients: accepted
and rejected clients and options; handshakes that are slow, cut or never end; data in both directions;
limits; the end of a connection; certificates that are replaced at run time. The last line is "N passed, N
failed". HOLDFAST_SERVER names the server."""
import contextlib
import pathlib
import re
import select
import socket
import ssl
import subprocess
import tempfile
import time
import warnings

import redis
from certificates import Certificates
from harness import (HOLDFAST, LIMIT_S, Client, Server, equal, has, other_addresses, refusal, run_tests,
                     test, until)
from pages import ROOT, manual

MIB = 1 << 20


class TlsServer(Server):
    """A server with a port for TLS. The inherited connection uses the Unix socket."""

    def __init__(self, files, *options, name="server"):
        self.files = files
        self.logfile = files.folder / "log"  # a pipe without a reader would soon be full
        self.logfile.unlink(missing_ok=True)
        super().__init__(str(files.folder / "data"), "--tls-port", "auto", "--loglevel", "verbose",
                         "--logfile", str(self.logfile), *server_files(files, name), *options, loaded=False)
        self.await_log("ready to accept connections")
        self.port = int(re.search(r"127\.0\.0\.1:(\d+) \(TLS\)", self.log_text())[1])

    def log_text(self):
        return self.logfile.read_text(encoding="utf-8") if self.logfile.exists() else ""

    def await_log(self, text):
        """Waits until the log has the text."""
        until(lambda: text in self.log_text())

    def tcp(self):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain

    def tls(self, name="client", **settings):
        """A TLS connection as a socket."""
        return context(self.files, name, **settings).wrap_socket(self.tcp(), suppress_ragged_eofs=False)

    def client(self, name="client", **settings):
        return TlsClient(self.tls(name, **settings))

    def cli(self, *arguments, ca="ca", name="client"):
        """The output of redis-cli."""
        own = ["--cert", self.files.pem(name), "--key", self.files.key(name)] if name else []
        return subprocess.run(["redis-cli", "--tls", "--cacert", self.files.pem(ca), *own,
                               "-h", "127.0.0.1", "-p", str(self.port), *arguments],
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT_S).stdout

    def closes(self, action):
        """Checks that the server closes the connection after the action, and serves other clients."""
        with self.tcp() as plain:
            action(plain)
            while True:
                try:
                    if plain.recv(65536) == b"":
                        break
                except ConnectionResetError:
                    break
        equal(self.ask("PING"), "PONG")


class TlsClient(Client):
    def __init__(self, connection):  # pylint: disable=super-init-not-called
        self.socket = connection
        self.replies = connection.makefile("rb")


def exchange(connection, requests, size):
    """Sends the requests, and reads `size` bytes meanwhile. In one thread: two may not use the same
    connection of Python's ssl at the same time (https://github.com/python/cpython/issues/151508)."""
    left, received = memoryview(requests), bytearray()
    connection.setblocking(False)
    would_wait = contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError)
    while left or len(received) < size:
        with would_wait:
            if left:
                left = left[connection.send(left[:65536]):]
        with would_wait:
            piece = connection.recv(65536)
            if not piece:
                raise EOFError("the server closed the connection")
            received += piece
            continue
        select.select([connection], [connection] if left else [], [], LIMIT_S)
    connection.settimeout(LIMIT_S)
    return bytes(received)


def server_files(files, name="server"):
    return ["--tls-cert-file", files.pem(name), "--tls-key-file", files.key(name),
            "--tls-ca-cert-file", files.pem("ca")]


def context(files, name="client", version=None, ca="ca"):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # an end without close_notify must be an error
    made.load_verify_locations(files.pem(ca))
    made.check_hostname = False  # it needs a name, and the tests use 127.0.0.1
    if name:
        made.load_cert_chain(files.pem(name), files.key(name))
    if version:
        made.set_ciphers("DEFAULT:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # for versions that must not work
            made.minimum_version = made.maximum_version = version
    return made


def failure(action):
    """The text of the client's error."""
    try:
        action()
    except (OSError, EOFError) as error:
        return str(error)
    return "nothing"


def ask_without_certificate(server):
    # In TLS 1.3 a client gets this error only when it reads.
    with contextlib.closing(server.client(name=None)) as client:
        return client.ask("PING")


@test
def clients_need_a_certificate_unless_an_option_says_otherwise(files):
    for mode in ("yes", "optional", "no"):
        with TlsServer(files, "--tls-auth-clients", mode) as server:
            equal(server.cli("PING"), "PONG\n")
            equal(server.client().ask("PING"), "PONG")
            equal("PONG" in server.cli("PING", name=None), mode != "yes")
            equal("PONG" in server.cli("PING", name="stranger"), mode == "no")
            if mode == "yes":
                has(failure(lambda: ask_without_certificate(server)), "CERTIFICATE_REQUIRED")
                server.await_log("the TLS handshake failed: peer did not return a certificate")
            if mode != "no":
                has(failure(lambda: server.client("expired").ask("PING")), "CERTIFICATE_EXPIRED")
                server.await_log("certificate verify failed: certificate has expired")
            equal(server.ask("PING"), "PONG")


@test
def a_client_of_another_authority_does_not_trust_the_server(files):
    with TlsServer(files) as server:
        has(server.cli("PING", ca="other"), "certificate verify failed")
        has(failure(lambda: server.client(ca="other")), "CERTIFICATE_VERIFY_FAILED")
        server.await_log("unknown ca")
        equal(server.cli("PING"), "PONG\n")


@test
def old_versions_are_rejected_and_each_new_version_can_be_chosen(files):
    with TlsServer(files) as server:
        for version, why in ((ssl.TLSVersion.TLSv1, "PROTOCOL"), (ssl.TLSVersion.TLSv1_1, "PROTOCOL")):
            has(failure(lambda v=version: server.tls(version=v)), why)
        server.await_log("the TLS handshake failed: unsupported protocol")
        for version in ("TLSv1.2", "TLSv1.3"):
            equal(server.ask("CONFIG", "SET", "tls-protocols", version), "OK")
            equal(server.tls().version(), version)
        has(server.ask("CONFIG", "SET", "tls-protocols", "TLSv1.1"), "is not a supported TLS version")
        equal(server.ask("CONFIG", "SET", "tls-protocols", "TLSv1.2", "tls-ciphers",
                         "ECDHE-ECDSA-AES128-GCM-SHA256"), "OK")
        equal(server.tls().cipher()[0], "ECDHE-ECDSA-AES128-GCM-SHA256")


@test
def wrong_options_prevent_the_start_and_the_error_names_the_file(files):
    def said(*options):
        return refusal(files.folder / "data", "--tls-port", "auto", *map(str, options))
    nowhere = str(files.folder / "nowhere.pem")
    has(said(), "set tls-cert-file and tls-key-file")
    has(said("--tls-cert-file", files.pem("server"), "--tls-key-file", files.key("server")),
        "set tls-ca-cert-file or tls-ca-cert-dir", "tls-auth-clients no")
    has(said(*server_files(files), "--tls-cert-file", nowhere),
        f"cannot read the certificate file {nowhere}: No such file or directory")
    has(said(*server_files(files), "--tls-key-file", files.key("client")),
        f"the key in {files.key('client')} does not match the certificate in {files.pem('server')}")
    has(said(*server_files(files, "expired")), f"the certificate in {files.pem('expired')} expired at 20")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        has(said(*server_files(files), "--tls-port", taken.getsockname()[1]), "choose another --tls-port")
    pathlib.Path(files.key("ca")).chmod(0)
    has(said(*server_files(files), "--tls-key-file", files.key("ca")), "Permission denied")


@test
def an_encrypted_key_needs_its_passphrase_which_is_never_shown(files):
    locked = str(files.folder / "locked.key")
    files.openssl("pkey", "-aes128", "-passout", "pass:geheim", "-in", files.key("server"), "-out", locked)
    options = [*server_files(files), "--tls-key-file", locked]
    has(refusal(files.folder / "data", "--tls-port", "auto", *options), "is encrypted; give its passphrase")
    with TlsServer(files, "--tls-key-file", locked, "--tls-key-file-pass", "geheim",
                   "--slowlog-log-slower-than", "0") as server:
        equal(server.cli("PING"), "PONG\n")
        has(server.ask("CONFIG", "SET", "tls-key-file-pass", "falsch"), "is wrong")
        equal(server.ask("CONFIG", "SET", "tls-key-file-pass", "geheim"), "OK")
        for text in (str(server.ask("SLOWLOG", "GET", "100")), server.log_text()):
            equal(("tls-key-file-pass" in text, "geheim" in text, "falsch" in text), (True, False, False))


@test
def a_handshake_byte_by_byte_and_its_commands_work(files):
    with TlsServer(files) as server, server.tcp() as plain:
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context(files).wrap_bio(came, goes)

        def drive(step):
            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    return step()
                for byte in goes.read():
                    plain.sendall(bytes([byte]))
                came.write(plain.recv(1))
        drive(session.do_handshake)
        session.write(b"PING\r\n")
        equal(drive(lambda: session.read(7)), b"+PONG\r\n")


def handshake_bytes(server):
    """The bytes that a client sends in a handshake: the ClientHello, and the rest."""
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context(server.files).wrap_bio(came, goes)
    with server.tcp() as plain:
        with contextlib.suppress(ssl.SSLWantReadError):
            session.do_handshake()
        hello = goes.read()
        plain.sendall(hello)
        while True:
            came.write(plain.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                session.do_handshake()
                return hello, goes.read()


@test
def a_handshake_that_is_cut_at_any_byte_leaves_no_connection(files):
    with TlsServer(files) as server:
        hello, rest = handshake_bytes(server)
        before = int(server.info("connected_clients", "clients"))
        for cut in range(len(hello) + 1):
            with server.tcp() as plain:
                plain.sendall(hello[:cut])
        for cut in range(0, len(rest), 7):  # the rest is of another session, so it is garbage
            with server.tcp() as plain:
                plain.sendall(hello + rest[:cut])
        until(lambda: int(server.info("connected_clients", "clients")) <= before)
        equal(server.cli("PING"), "PONG\n")


@test
def renegotiation_is_rejected(files):
    with TlsServer(files) as server:
        client = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2", "-cert",
             files.pem("client"), "-key", files.key("client")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        client.stdin.write(b"PING\n")
        client.stdin.flush()
        said = b""
        while b"+PONG" not in said:
            said += client.stdout.read1()
        has(client.communicate(b"R\n", LIMIT_S)[0], b"no renegotiation")
        equal(server.cli("PING"), "PONG\n")


@test
def plain_text_on_the_port_for_tls_and_the_reverse_are_rejected(files):
    with TlsServer(files, "--port", "auto") as server:
        server.closes(lambda plain: plain.sendall(b"PING\r\n"))
        server.await_log("the peer does not speak TLS")
        server.closes(lambda plain: plain.sendall(bytes(range(256)) * 300))
        port = int(re.search(r"connections on 127\.0\.0\.1:(\d+),", server.log_text())[1])
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as plain:
            plain.sendall(b"PING\r\n")
            equal(plain.recv(100), b"+PONG\r\n")
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as plain:
            has(failure(lambda: context(files).wrap_socket(plain)), "WRONG_VERSION_NUMBER")
        equal(server.cli("PING"), "PONG\n")


@test
def a_pipeline_of_100000_requests_and_20_mib_in_both_directions(files):
    with TlsServer(files) as server, contextlib.closing(server.client()) as client:
        number = 100_000
        replies = b"".join(b":%d\r\n" % n for n in range(1, number + 1))
        equal(exchange(client.socket, b"INCR n\r\n" * number, len(replies)) == replies, True)
        large = bytes(range(256)) * (20 * MIB // 256)
        equal(client.ask("SET", "large", large), "OK")
        equal(server.ask("GET", "large") == large, True)
        equal(client.ask("GET", "large") == large, True)


@test
def a_client_that_reads_too_slowly_is_disconnected_at_the_limit(files):
    with TlsServer(files, "--client-output-buffer-limit", "4mb") as server:
        server.ask("SET", "large", b"x" * MIB)
        client = server.client()
        client.send(*[("GET", "large")] * 30)
        server.await_log("its unread replies exceed client-output-buffer-limit")
        equal(server.cli("PING"), "PONG\n")
        # Without a close_notify, the client knows that replies are missing.
        has(failure(lambda: [client.reply() for _ in range(30)]), "UNEXPECTED_EOF")


@test
def a_client_that_reads_slowly_within_the_limit_gets_all_replies(files):
    with TlsServer(files) as server:
        large = bytes(range(251)) * (8 * MIB // 251)
        server.ask("SET", "large", large)
        client = server.client()
        client.send(*[("GET", "large")] * 4, ("PING",))
        # All replies exist, and wait to be sent.
        until(lambda: b" cmd=ping " in server.ask("CLIENT", "LIST"))
        for _ in range(4):
            equal(client.reply() == large, True)
        equal(client.reply(), "PONG")


@test
def a_client_that_sends_beyond_the_limit_is_disconnected(files):
    with TlsServer(files, "--client-query-buffer-limit", "1mb") as server:
        client = server.client()
        failure(lambda: client.send(("SET", "key", b"x" * (4 * MIB))))
        server.await_log("its unprocessed input exceeds client-query-buffer-limit")
        equal(server.cli("PING"), "PONG\n")


@test
def a_lock_is_handed_over(files):
    with TlsServer(files) as server:
        alice, bob = server.client(), server.client()
        equal(alice.ask("LOCK", "key", "alice", 60000)[0], b"alice")
        bob.send(("LOCK", "key", "bob", 60000, "WAIT", 60000))
        until(lambda: b" waits=1 " in server.ask("CLIENT", "LIST"))
        equal(alice.ask("UNLOCK", "key", "alice"), 1)
        equal(bob.reply()[0], b"bob")
        bob.send(("LOCK", "other", "bob", 60000))
        equal(bob.reply()[0], b"bob")


@test
def replies_wait_for_the_disk(files):
    with TlsServer(files, "--appendfsync", "always") as server:
        client = server.client()
        requests = [("LOCK", f"key:{i}", "alice", 60000) for i in range(2000)]
        equal({reply[0] for reply in client.ask_all(requests)}, {b"alice"})
        equal(client.ask("QUIT"), "OK")
        equal(client.socket.recv(1), b"")


@test
def a_grant_and_all_later_replies_wait_while_the_disk_cannot_be_written(files):
    with TlsServer(files) as server:
        folder = files.folder / "data"
        server.lock("mine", ttl=60000)  # `meta` covers this TTL, but not a much longer one
        client = server.tls()
        folder.chmod(0o500)
        client.sendall(b"LOCK held alice 6000000\r\n")
        client.settimeout(0.3)
        for _ in range(3):
            equal(failure(lambda: client.recv(1)), "The read operation timed out")
            client.sendall(b"PING\r\n")
        folder.chmod(0o700)
        client.settimeout(LIMIT_S)
        received = b""
        while received.count(b"+PONG\r\n") < 3:
            received += client.recv(4096)
        equal(received[:4], b"*2\r\n")
        client.close()


@test
def a_client_that_quits_gets_the_last_reply_and_close_notify(files):
    with TlsServer(files) as server:
        server.ask("SET", "large", b"x" * (20 * MIB))
        client = server.client()
        client.send(("GET", "large"), ("QUIT",))
        equal(len(client.reply()), 20 * MIB)
        equal(client.reply(), "OK")
        equal(client.socket.recv(1), b"")  # raises an error without a close_notify
        killed = server.client()
        number = killed.ask("CLIENT", "ID")
        equal(server.ask("CLIENT", "KILL", "ID", number), 1)
        equal(killed.socket.recv(1), b"")


@test
def a_client_that_has_sent_close_notify_still_gets_its_replies(files):
    with TlsServer(files) as server, server.tcp() as plain:
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context(files).wrap_bio(came, goes)
        handshake(session, came, goes, plain)
        server.ask("SET", "large", b"x" * (2 * MIB))
        session.write(b"GET large\r\n")
        with contextlib.suppress(ssl.SSLWantReadError):
            session.unwrap()  # sends close_notify: the client sends no more
        plain.sendall(goes.read())
        while data := plain.recv(65536):
            came.write(data)
        equal(came.pending > 2 * MIB, True)


def handshake(session, came, goes, plain):
    while True:
        try:
            session.do_handshake()
        except ssl.SSLWantReadError:
            plain.sendall(goes.read())
            came.write(plain.recv(65536))
        else:
            return plain.sendall(goes.read())


@test
def a_connection_that_is_cut_without_close_notify_ends_its_session(files):
    with TlsServer(files) as server:
        for cut in (0, 1, 20):
            with server.tcp() as plain:
                came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
                session = context(files).wrap_bio(came, goes)
                handshake(session, came, goes, plain)
                session.write(b"LOCK key alice 60000 SESSION\r\n")
                plain.sendall(goes.read())
                until(lambda: server.ask("EXISTS", "key") == 1)
                session.write(b"PING\r\n")
                plain.sendall(goes.read()[:cut])
            until(lambda: server.ask("EXISTS", "key") == 0)


@test
def files_are_reloaded_and_open_connections_stay(files):
    with TlsServer(files) as server:
        client = server.client()
        first = client.socket.getpeercert(binary_form=True)
        files.issue("second")
        second = ("tls-cert-file", files.pem("second"), "tls-key-file", files.key("second"))
        # The certificate alone does not match the key: the server applies neither.
        has(server.ask("CONFIG", "SET", *second[:2]), "CONFIG SET failed", "does not match the certificate")
        has(server.ask("CONFIG", "SET", "timeout", "7", *second[:2]), "does not match the certificate")
        equal(server.ask("CONFIG", "GET", "timeout")[1], b"0")
        equal(server.ask("CONFIG", "GET", "tls-cert-file")[1].decode(), files.pem("server"))
        equal(server.tls().getpeercert(binary_form=True), first)
        equal(server.ask("CONFIG", "SET", *second), "OK")
        renewed = server.tls().getpeercert(binary_form=True)
        equal(renewed != first, True)
        equal(client.ask("PING"), "PONG")
        # The same names with other contents.
        files.issue("second")
        equal(server.ask("CONFIG", "SET", *second), "OK")
        equal(server.tls().getpeercert(binary_form=True) not in (first, renewed), True)
        pathlib.Path(files.pem("second")).write_text("garbage", encoding="ascii")
        has(server.ask("CONFIG", "SET", *second), "cannot be used")
        equal(server.cli("PING"), "PONG\n")
        equal(client.ask("PING"), "PONG")


@test
def hanging_handshakes_block_no_client_and_are_closed(files):
    with TlsServer(files, "--tls-handshake-timeout", "2") as server:
        hello, _ = handshake_bytes(server)
        client = server.client()
        before = int(server.info("connected_clients", "clients"))
        hanging = [server.tcp() for _ in range(200)]
        for i, plain in enumerate(hanging):
            plain.sendall(hello[:i * 2])
        until(lambda: int(server.info("connected_clients", "clients")) == before + 200)
        begun = time.monotonic()
        equal(server.client().ask("PING"), "PONG")
        equal(client.ask("PING"), "PONG")
        for plain in hanging:
            with plain, contextlib.suppress(ConnectionResetError):
                while plain.recv(65536):
                    pass
        equal(time.monotonic() - begun < LIMIT_S, True)
        server.await_log("it took longer than tls-handshake-timeout")
        equal(client.ask("PING"), "PONG")


@test
def a_handshake_counts_as_a_client(files):
    with TlsServer(files, "--maxclients", "3") as server:
        hanging = [server.tcp() for _ in range(2)]
        until(lambda: int(server.info("connected_clients", "clients")) == 3)
        equal(failure(server.tls) != "nothing", True)
        for plain in hanging:
            plain.close()
        until(lambda: int(server.info("connected_clients", "clients")) == 1)
        equal(server.client().ask("PING"), "PONG")


@test
def protected_mode_is_reported_over_tls(files):
    """Needs an address other than loopback. On a machine without one, the test checks nothing."""
    for own in other_addresses()[:1]:
        with TlsServer(files, "--bind", "127.0.0.1 " + own) as server:
            def connection(address=own, port=server.port):
                plain = socket.create_connection((address, port), timeout=LIMIT_S)
                return TlsClient(context(files).wrap_socket(plain, suppress_ragged_eofs=False))
            client = connection()
            has(client.reply(), "DENIED Holdfast is running in protected mode")
            equal(client.socket.recv(1), b"")
            equal(server.ask("CONFIG", "SET", "protected-mode", "no"), "OK")
            equal(connection().ask("PING"), "PONG")


@test
def the_commands_in_the_manual_work_as_shown(files):
    marker = "<!-- run by tests/integration/tls_test.py -->\n```sh\n"
    text, = (page.text for page in manual() if marker in page.text)
    shown = text.split(marker)[1].split("```")[0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ready = ">log & \nuntil grep 'ready to accept' log; do sleep 0.01; done\n"
    run = shown.replace("build/holdfast-server", str(ROOT / HOLDFAST)).replace("7380", str(port))
    run = "trap 'kill $!; wait' EXIT\n" + run.replace("&\n", ready)
    said = subprocess.run(["bash", "-ec", run], check=False, text=True, cwd=files.folder, timeout=LIMIT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    has(said, "ready to accept connections on 127.0.0.1", "\nalice\n")


@test
def redis_py_speaks_tls(files):
    with TlsServer(files) as server:
        client = redis.Redis("127.0.0.1", server.port, ssl=True, ssl_ca_certs=files.pem("ca"),
                             ssl_certfile=files.pem("client"), ssl_keyfile=files.key("client"),
                             ssl_check_hostname=True)
        with client.lock("key", timeout=60):
            equal(client.exists("key"), 1)
        equal(client.info("server")["tcp_port"], server.port)
        client.close()


@contextlib.contextmanager
def made_files():
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        files = Certificates(pathlib.Path(folder))
        files.authority("other")
        files.issue("stranger", "other")
        files.issue("expired", days=-1)
        yield files


if __name__ == "__main__":
    run_tests(made_files)

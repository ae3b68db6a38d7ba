#!/usr/bin/env python3
"""--check-config and --print-config of the server. The last line is "N passed, N failed". HOLDFAST_SERVER
names the server."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # only build/ has generated files
from certificates import Certificates
from harness import HOLDFAST, LIMIT_S, Server, end_with_parent, equal, has, refusal, run_tests, test


def called(*words):
    """The exit status and the output of the server's program."""
    done = subprocess.run([HOLDFAST, *map(str, words)], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S, preexec_fn=end_with_parent)
    return done.returncode, done.stdout


def errors(*words):
    """The error lines of a check that must fail."""
    status, output = called("--check-config", *words)
    equal(status, 1)
    lines = output.splitlines()
    equal([line for line in lines if not line.startswith("holdfast-server: ")], [])
    return [line.removeprefix("holdfast-server: ") for line in lines]


def config_file(folder, text):
    path = folder.parent / "conf"
    path.write_text(text, "ascii")
    return path


@test
def a_good_file_has_no_errors_and_the_check_makes_nothing(folder):
    conf = config_file(folder, f"dir = {folder}\nlogfile = {folder}.log\nunixsocket = {folder}.sock\n")
    for words in (conf,), ("--config", conf), ("--config", conf, "--port", "auto"):
        equal(called("--check-config", *words), (0, "no errors\n"))
    equal(sorted(os.listdir(folder.parent)), ["conf"])
    equal(called("--check-config"), (0, "no errors\n"))


@test
def each_wrong_line_of_the_file_is_one_error_line(folder):
    conf = config_file(folder, "port = x\n# comment\nprot = 1\ntimeout 5\n")
    equal(errors(conf, "--maxclients", "0"),
          [f"{conf}: line 1: port: expected a number from 0 to 65535, or auto, got 'x'",
           f"{conf}: line 3: unrecognised option 'prot'; see --help",
           f"{conf}: line 4: no =; write name = value; see --help",
           "--maxclients: expected a number from 1 to 1048576, got '0'"])
    has(refusal(folder, "--config", str(conf)), "line 1: port", "line 3: unrecognised", "line 4: no =")


@test
def files_and_folders_are_checked_all_at_once(folder):
    closed = folder.parent / "closed"
    closed.mkdir(mode=0o500)
    got = errors("--dir", closed, "--logfile", closed / "log", "--aclfile", closed / "users",
                 "--unixsocket", closed / "socket", "--tls-port", "auto", "--tls-auth-clients", "no",
                 "--tls-cert-file", closed / "cert", "--tls-key-file", closed / "key")
    equal(len(got), 5)
    has(got[0], f"cannot write the log {closed}/log: Permission denied; check --logfile")
    has(got[1], f"opening file '{closed}/users'")
    has(got[2], "TLS: ", f"{closed}/cert")
    has(got[3], f"cannot listen on {closed}/socket: Permission denied; check --unixsocket")
    has(got[4], f"cannot write the data folder {closed}: Permission denied")
    has(errors("--dir", closed / "data")[0], f"cannot make the data folder {closed}/data")
    has(errors("--dir", config_file(folder, ""))[0], "is not a folder; check --dir")
    has(errors("--dir", folder / "a/b")[0], "No such file or directory")
    has(errors("--logfile", closed)[0], "Is a directory")
    has(errors(folder.parent / "missing")[0], "cannot read the config file")


@test
def a_path_that_can_never_exist_is_an_error(folder):
    (folder.parent / "file").write_text("")
    for path, why in ((folder.parent / ("x" * 256), "File name too long"),
                      (folder.parent / "file" / "x", "Not a directory")):
        equal(errors("--dir", path), [f"cannot make the data folder {path}: {why}"])
        has(errors("--logfile", path)[0], f"cannot write the log {path}: {why}")


@test
def users_addresses_and_certificates_are_checked(folder):
    has(errors("--user", "alice on +nosuchcommand")[0], "nosuchcommand")
    users = folder.parent / "users"
    users.write_text("user alice on >x\nuser bob +@nosuch\n", "ascii")
    has(errors("--aclfile", users)[0], "@nosuch")
    equal(errors("--aclfile", users, "--user", "a on"),
          ["the options user and aclfile cannot be used together; remove one of them"])
    has(errors("--bind", "192.0.2.1")[0], "this machine has no such address; check --bind")
    has(errors("--http-port", "auto", "--http-bind", "192.0.2.1")[0],
        "this machine has no such address; check --http-bind")
    has(errors("--bind", "no.such.host.invalid")[0], "cannot resolve the address")
    has(errors("--port", "0")[0], "nothing to listen on")
    has(errors("--unixsocket", "/tmp/" + "x" * 120)[0], "too long for a socket")
    has(errors("--unixsocket", users)[0], "exists and is not a socket")
    for words in ("--tls-port", "auto"), ("--http-port", "auto", "--http-tls", "yes"):
        has(errors(*words)[0], "TLS needs a certificate and its key")
    equal(errors("--tls-port", "7379"),
          ["port and tls-port are both 7379; choose another port for one of them"])


@test
def a_good_certificate_passes_and_a_key_that_does_not_fit_is_an_error(folder):
    certs = Certificates(folder.parent / "certs")
    words = ["--tls-port", "auto", "--tls-auth-clients", "no", "--tls-cert-file", certs.pem("server")]
    equal(called("--check-config", *words, "--tls-key-file", certs.key("server")), (0, "no errors\n"))
    has(errors(*words, "--tls-key-file", certs.key("client"))[0], "TLS: ")


@test
def a_running_server_does_not_disturb_the_check_of_its_own_options(folder):
    with Server(folder) as server:
        port = server.info("tcp_port", "server")
        words = ["--port", port] if port != "0" else ["--port", "auto"]
        equal(called("--check-config", *words, "--dir", folder, "--unixsocket", server.path),
              (0, "no errors\n"))
        equal(server.ask("PING"), "PONG")


@test
def the_printed_file_starts_a_server_and_has_the_given_options(folder):
    status, text = called("--print-config", "--loglevel", "verbose", "--appendfsync", "always")
    equal(status, 0)
    has(text, "\nloglevel = verbose\n", "\nappendfsync = always\n", "\n#port = 7379\n", "\n## Disk\n")
    conf = config_file(folder, text)
    equal(called("--check-config", conf), (0, "no errors\n"))
    with Server(folder, "--config", str(conf)) as server:
        equal(server.ask("CONFIG", "GET", "appendfsync"), [b"appendfsync", b"always"])
        equal(server.ask("CONFIG", "SET", "loglevel", "notice", "maxmemory", "1gb"), "OK")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
    after = conf.read_text("ascii")
    start, _, added = after.partition("\n# Added by CONFIG REWRITE\n")
    equal(start, text.replace("loglevel = verbose", "loglevel = notice"))
    has(added, "maxmemory = 1073741824\n")
    has(called("--print-config", "--port", "x")[1], "--port: expected a number")


run_tests()

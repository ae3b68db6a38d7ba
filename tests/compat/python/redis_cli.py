"""redis-cli without a terminal: scripts, pipes and files. Another test covers its use in a terminal."""
import os
import pathlib
import subprocess
import tempfile

from steps import COMPARE_AND_DELETE, EVENT_LIMIT_S, HOLDFAST, HOST, PORT, native, step


def cli(*arguments, given=b""):
    """The output of redis-cli on both streams, and its exit status if that is not 0."""
    done = subprocess.run(["redis-cli", "-h", HOST, "-p", str(PORT), *arguments], input=given, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=EVENT_LIMIT_S,
                          env=os.environ | {"REDISCLI_RCFILE": "/dev/null"})
    return done.stdout if done.returncode == 0 else (done.returncode, done.stdout)


def commands():
    step("ping", cli("PING"), b"PONG\n")
    step("set, get", [cli("SET", "k", "a\nb"), cli("GET", "k")], [b"OK\n", b"a\nb\n"])
    step("quoted", cli("--no-raw", "GET", "k"), b'"a\\nb"\n')
    step("nothing", [cli("GET", "none"), cli("--no-raw", "GET", "none")], [b"\n", b"(nil)\n"])
    step("an integer", [cli("INCR", "n"), cli("--no-raw", "INCR", "n")], [b"1\n", b"(integer) 2\n"])
    step("an array", cli("--no-raw", "MGET", "n", "none"), b'1) "2"\n2) (nil)\n')
    step("csv, json", [cli("--csv", "MGET", "n", "none"), cli("--json", "MGET", "n", "none")],
         [b'"2",NULL\n', b'["2",null]\n'])
    step("an error", cli("GET"), b"ERR wrong number of arguments for 'get' command\n\n")
    step("an error, -e", cli("-e", "GET"), (1, b"ERR wrong number of arguments for 'get' command\n"))
    step("unknown", cli("NOSUCH", "x"), b"ERR unknown command 'NOSUCH', with args beginning with: 'x' \n\n")
    step("-n", [cli("-n", "3", "SET", "three", "x"), cli("EXISTS", "three"), cli("-n", "3", "DBSIZE")],
         [b"OK\n", b"0\n", b"1\n"])
    step("-n 99", cli("-n", "99", "PING"), b"SELECT 99 failed: ERR DB index is out of range\nPONG\n")
    step("-u", cli("-u", f"redis://{HOST}:{PORT}/3", "GET", "three"), b"x\n")
    step("--user", cli("--no-auth-warning", "--user", "default", "--pass", "x", "PING"), b"PONG\n")
    step("-a", cli("--no-auth-warning", "-a", "x", "PING").split(b" <")[0], b"AUTH failed: ERR AUTH")
    step("-r", cli("-r", "3", "INCR", "n"), b"3\n4\n5\n")


def inputs():
    everything = bytes(range(256))
    step("-x", [cli("-x", "SET", "binary", given=everything), cli("GET", "binary") == everything + b"\n"],
         [b"OK\n", True])
    step("-X", [cli("-X", "tag", "SET", "tagged", "tag", given=b"a\x00b"),
                cli("--no-raw", "GET", "tagged")],
         [b"OK\n", b'"a\\x00b"\n'])
    step("lines", cli(given=b"SET a 1\nINCR a\n\nGET \"a\"\nHSET h f v\nHGETALL h\n"),
         b"OK\n2\n2\n1\nf\nv\n")
    step("multi", cli(given=b"MULTI\nSET m 1\nINCR m\nEXEC\nGET m\n"), b"OK\nQUEUED\nQUEUED\nOK\n2\n2\n")
    step("multi with an error", cli(given=b"MULTI\nSET m\nEXEC\nMULTI\nGET m\nDISCARD\n"),
         b"OK\nERR wrong number of arguments for 'set' command\n\n"
         b"EXECABORT Transaction discarded because of previous errors.\n\nOK\nQUEUED\nOK\n")
    step("watch", cli(given=b"WATCH m\nSET m 5\nMULTI\nGET m\nEXEC\n"), b"OK\nOK\nOK\nQUEUED\n\n")
    step("select", cli(given=b"SELECT 3\nGET three\nSELECT 0\n"), b"OK\nx\nOK\n")
    step("quit", cli(given=b"PING\nQUIT\nPING\n"), b"PONG\n")


def pipe():
    frames = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\np:%d\r\n$1\r\nx\r\n" % (len(b"p:%d" % i), i)
                      for i in range(20_000))
    told = b"All data transferred. Waiting for the last reply...\nLast reply received from server.\n"
    step("--pipe", cli("--pipe", given=frames), told + b"errors: 0, replies: 20000\n")
    step("--pipe, inline, an error", cli("--pipe", given=b"SET q 1\r\nINCR q\r\nNOSUCH\r\n"),
         (1, b"ERR unknown command 'NOSUCH', with args beginning with: \n" + told +
             b"errors: 1, replies: 3\n"))
    step("all are there", cli("--csv", "MGET", "p:0", "p:19999", "q"), b'"x","x","2"\n')
    found = cli("--scan", "--pattern", "p:*").split()
    step("--scan", [len(found), len(set(found))], [20_000, 20_000])
    step("--scan, quoted", cli("--scan", "--pattern", "p:1999[89]").split()[0][:6], b"p:1999")
    step("--bigkeys", sorted(line for line in cli("--bigkeys").splitlines() if b"bytes (" in line or
                             b"fields (" in line or line.startswith((b"Sampled", b"Biggest"))),
         [b"1 hashs with 1 fields (00.00% of keys, avg size 1.00)",
          b"20007 strings with 20266 bytes (100.00% of keys, avg size 1.01)",
          b'Biggest   hash found \'"h"\' has 1 fields',
          b'Biggest string found \'"binary"\' has 256 bytes',
          b"Sampled 20008 keys in the keyspace!"])
    step("--memkeys", b'Biggest   hash found \'"h"\'' in cli("--memkeys"), True)
    step("--hotkeys", [cli("--hotkeys")[0],
                       b"An LFU maxmemory policy is not selected" in cli("--hotkeys")[1]],
         [1, True])


def scripts():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "release.lua")
        path.write_text(COMPARE_AND_DELETE, encoding="utf-8")
        run = ["--eval", str(path), "lock"]
        step("--eval, another's", [cli("SET", "lock", "me"), cli(*run, ",", "you")], [b"OK\n", b"0\n"])
        step("--eval, mine", [cli(*run, ",", "me"), cli("EXISTS", "lock")], [b"1\n", b"0\n"])
        path.write_text("return {1, {KEYS[1], 'x'}, false, {ok='FINE'}}", encoding="utf-8")
        step("--eval, nested", cli("--no-raw", *run),
             b'1) (integer) 1\n2) 1) "lock"\n   2) "x"\n3) (nil)\n4) FINE\n')
        path.write_text("return nosuch()", encoding="utf-8")
        step("--eval, an error", cli(*run).split(b" script: ")[0],
             b"ERR user_script:1: Script attempted to access nonexistent global variable 'nosuch'")
    step("evalsha, unknown", cli("EVALSHA", "0" * 40, "0"),
         b"NOSCRIPT No matching script. Please use EVAL.\n\n")
    sha = "59b6ab2fbe0ee4b25733de0f62e6cda4899ef8e9"
    step("script load", [cli("SCRIPT", "LOAD", "return 7"), cli("EVALSHA", sha, "0")],
         [f"{sha}\n".encode(), b"7\n"])


def resp3():
    step("-3 map", cli("-3", "--no-raw", "HGETALL", "h"), b'1# "f" => "v"\n')
    step("-3 null", cli("-3", "--no-raw", "GET", "none"), b"(nil)\n")
    step("-3 map, csv, json", [cli("-3", "--csv", "HGETALL", "h"), cli("-3", "--json", "HGETALL", "h")],
         [b'"f","v"\n', b'{"f":"v"}\n'])
    step("-3 double, boolean", [cli("-3", "--no-raw", "EVAL", "redis.setresp(3) return {double=2.5}", "0"),
                                cli("-3", "--no-raw", "EVAL", "redis.setresp(3) return true", "0")],
         [b"(double) 2.5\n", b"(true)\n"])
    step("-3 verbatim", cli("-3", "INFO", "server")[:8], b"# Server")
    step("-3 config", cli("-3", "--json", "CONFIG", "GET", "maxmemory"), b'{"maxmemory":"0"}\n')
    step("-3 hello", cli("-3", "--csv", "HELLO")[:8], b'"server"')
    step("-3 pushes", cli("-3", "--no-raw", "--show-pushes", "yes",
                          given=b"CLIENT TRACKING ON\nGET h2\nSET h2 1\nPING\n"),
         b"OK\n(nil)\nOK\n-> invalidate: 'h2'\nPONG\n")
    step("-3 multi", cli("-3", "--no-raw", given=b"MULTI\nHGETALL h\nGET none\nEXEC\n"),
         b'OK\nQUEUED\nQUEUED\n1) 1# "f" => "v"\n2) (nil)\n')


def pubsub():
    """Subscribes with redis-cli, and returns its output up to the last message."""
    with subprocess.Popen(["redis-cli", "-h", HOST, "-p", str(PORT), "--no-raw", "PSUBSCRIBE", "ch*",
                           "other"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as subscriber:
        lines = [subscriber.stdout.readline() for _ in range(7)]
        step("subscribed", lines[-1], b"3) (integer) 2\n")
        step("publish", [cli("PUBLISH", "ch1", "a\nb"), cli("PUBLISH", "nobody", "x")], [b"1\n", b"0\n"])
        step("heard", [subscriber.stdout.readline() for _ in range(4)],
             [b'1) "pmessage"\n', b'2) "ch*"\n', b'3) "ch1"\n', b'4) "a\\nb"\n'])
        subscriber.terminate()


def locks():
    step("set nx px", [cli("SET", "lock", "me", "NX", "PX", "30000"),
                       cli("SET", "lock", "you", "NX", "PX", "1")],
         [b"OK\n", b"\n"])
    release = ["EVAL", COMPARE_AND_DELETE, "1", "lock"]
    step("release", [cli(*release, "you"), cli(*release, "me")], [b"0\n", b"1\n"])
    if HOLDFAST:
        native("LOCK", cli("--csv", "LOCK", "lock", "me", "30000").startswith(b'"me",'), True)
        native("SET NX is refused", cli("SET", "lock", "you", "NX", "PX", "30000"), b"\n")
        native("the script releases it", [cli(*release, "you"), cli(*release, "me")], [b"0\n", b"1\n"])


def main():
    for part in (commands, inputs, pipe, scripts, resp3, pubsub, locks):
        part()


main()

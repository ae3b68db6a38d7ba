#!/usr/bin/python3
"""Holds README.md to its word: its redis-cli session and its examples are run as they stand there and must
print what stands there, and its tables must name every command and option of the server.

In README.md, `<!-- run: WHAT -->` before a code block says how to run it, and `<!-- prints -->` marks what
it prints. Tokens differ from run to run: each in README stands for one of the run. Needs python3-redis,
nodejs, node-redis, golang-go, golang-github-gomodule-redigo-dev and redis-tools; without them it fails.
HOLDFAST_SERVER is the server to test, build/holdfast-server where it is not set.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = ROOT / os.environ.get("HOLDFAST_SERVER", "build/holdfast-server")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROMPT = "127.0.0.1:7379> "
LIMIT_S = 300  # of one test; the first Go program compiles Go's library

BLOCK = re.compile(r"<!-- (run: ([a-z-]+)(?: ([a-z]+))?|prints) -->\n```[a-z]*\n(.*?)```", re.DOTALL)
# As the library is installed here: with sanitizers.
COMPILE = "g++ -std=c++20 -Wall -Wextra -Werror -fsanitize=address,undefined"
EXAMPLES = {
    "python": ("example.py", ["/usr/bin/python3"]),
    "node": ("example.js", ["node"]),
    "node-npm": ("example.js", ["node"]),
    "go": ("example.go", ["go", "run"]),
    "ruby": ("example.rb", ["ruby"]),
    "php": ("example.php", ["php"]),
    "perl": ("example.pl", ["perl"]),
    "cpp-static": ("example.cc", ["bash", "-c", f"""set -e
        {COMPILE} "$0" $(pkg-config --cflags --libs --static holdfast |
          sed 's/-lholdfast/-l:libholdfast.a/') -o example
        ./example"""]),
    "cpp": ("example.cc", ["bash", "-c", f"""set -e
        {COMPILE} "$0" $(pkg-config --cflags --libs holdfast) -o example
        ./example"""]),
}
# Where Debian keeps the packages of Node and Go; another folder for Go's cache, as there may be no HOME.
ENVIRONMENT = {
    "NODE_PATH": "/usr/share/nodejs",
    "GO111MODULE": "off",
    "GOPATH": "/usr/share/gocode",
    "GOCACHE": str(ROOT / "build/go-cache"),
    "CGO_ENABLED": "0",
    "REDISCLI_RCFILE": "/dev/null",
}


class Server:
    """A server on a port of its own, for one test; its tables are seeded, as stripes give the tokens."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [SERVER, "--port", "auto", "--bind", "127.0.0.1", "--hash-seed", "1"],
            stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if match := re.search(r"ready to accept connections on 127\.0\.0\.1:(\d+)", line):
                self.port = match.group(1)
                return self
        raise AssertionError("the server did not get ready")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()
        assert self.process.returncode == 0, f"the server ended with status {self.process.returncode}"


class Tokens:
    """Which token of the run a token of README stands for."""
    PATTERN = re.compile(r"\b\d{16}\b")

    def __init__(self):
        self.of_run = {}

    def translated(self, text):
        return self.PATTERN.sub(lambda m: self.of_run.get(m.group(), m.group()), text)

    def check(self, shown, printed):
        """Both must be the same but for tokens, and equal tokens in one must be equal in the other."""
        told = f"README shows:\n{shown}\nbut this was printed:\n{printed}"
        assert self.PATTERN.sub("TOKEN", shown) == self.PATTERN.sub("TOKEN", printed), told
        for mine, theirs in zip(self.PATTERN.findall(shown), self.PATTERN.findall(printed)):
            assert self.of_run.setdefault(mine, theirs) == theirs, told
        assert len(set(self.of_run.values())) == len(self.of_run), told


class Terminal:
    """A redis-cli as in a terminal. The end of an answer is told by an ECHO sent behind the command."""
    MARK = "--end of the answer--"

    def __init__(self, port):
        self.cli = subprocess.Popen(["redis-cli", "-p", port, "--no-raw"], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT)

    def send(self, command):
        self.cli.stdin.write(f"{command}\nECHO '{self.MARK}'\n")
        self.cli.stdin.flush()

    def answer(self):
        lines = []
        for line in self.cli.stdout:
            if line == f'"{self.MARK}"\n':
                return "".join(lines)
            if not re.fullmatch(r"\(\d+\.\d\ds\)\n", line):  # how long it took
                lines.append(line)
        raise AssertionError(f"redis-cli ended after: {lines}")

    def close(self):
        self.cli.communicate()


def wait_until_blocked(port):
    """Returns when a client of the server waits for a lock."""
    with socket.create_connection(("127.0.0.1", int(port))) as s, s.makefile("rwb") as f:
        while True:
            f.write(b"INFO clients\r\n")
            f.flush()
            text = f.read(int(f.readline()[1:]) + 2)
            if b"blocked_clients:1\r\n" in text:
                return


def blocks():
    """README's marked code blocks: (kind, terminal, text), kind "" for what the one before prints."""
    return [(m[1] or "", m[2], m[3]) for m in (re.Match.groups(m, "") for m in BLOCK.finditer(README))]


def play(terminal, text, port, tokens):
    """Types a block of the session. What stands before the first prompt answers the command sent last."""
    answers = [text] if not text.startswith(PROMPT) else []
    for part in text.split(PROMPT)[1:]:
        command, _, shown = part.partition("\n")
        terminal.send(tokens.translated(command))
        if shown:
            tokens.check(shown, terminal.answer())
        else:
            wait_until_blocked(port)
    for shown in answers:
        tokens.check(shown, terminal.answer())


def test_session():
    """the redis-cli session answers as shown"""
    tokens = Tokens()
    terminals = {}
    with Server() as server:
        for kind, name, text in blocks():
            if kind != "redis-cli":
                continue
            if name not in terminals:
                terminals[name] = Terminal(server.port)
            play(terminals[name], text, server.port, tokens)
        for terminal in terminals.values():
            terminal.close()
    assert len(terminals) == 3, "README has lost its session"


def run_example(kind, text, shown):
    name, command = EXAMPLES[kind]
    with Server() as server, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_text(text, encoding="utf-8")
        done = subprocess.run([*command, path], cwd=folder, capture_output=True, text=True, check=False,
                              env=os.environ | ENVIRONMENT | {"HOLDFAST_PORT": server.port})
        assert done.returncode == 0, f"status {done.returncode}:\n{done.stdout}{done.stderr}"
        Tokens().check(shown, done.stdout)


def run_examples(kind, number):
    found = blocks()
    mine = [i for i, block in enumerate(found) if block[0] == kind]
    assert len(mine) == number, f"README has {len(mine)} examples in {kind}, not {number}"
    for i in mine:
        assert i + 1 < len(found) and found[i + 1][0] == "", f"nothing says what the {kind} example prints"
        run_example(kind, found[i][2], found[i + 1][2])


def test_python():
    """the Python examples print what is shown"""
    run_examples("python", 3)


def test_node_npm():
    """the example with a lock library of npm prints what is shown"""
    sys.path.insert(0, str(ROOT / "tests/compat"))
    import cases_node  # where the packages of npm are pinned
    cases_node.install()
    with tempfile.TemporaryDirectory() as folder:  # there, versions have names of their own
        for name, pinned in (("redlock", "redlock5"), ("ioredis", "ioredis5")):
            pathlib.Path(folder, name).symlink_to(cases_node.BUILD / "node_modules" / pinned)
        ENVIRONMENT["NODE_PATH"] += f":{folder}"
        run_examples("node-npm", 1)


def test_others():
    """the Ruby, PHP and Perl examples print what is shown"""
    for kind in ("ruby", "php", "perl"):
        run_examples(kind, 1)


def test_cpp():
    """the C++ examples, linked with both libraries that `make install` installs, print what is shown, also
    with the engine inside the program"""
    with tempfile.TemporaryDirectory() as folder:
        make = ["make", "-s", "-C", ROOT, f"PREFIX={folder}", "LIBRARY=asan",
                f"LDCONFIG=touch {folder}/cached"]
        subprocess.run([*make, "install-library"], check=True, stdout=subprocess.DEVNULL)
        installed = pathlib.Path(folder)
        assert (installed / "cached").exists() == (os.geteuid() == 0), "ldconfig is for root, and always"
        for library in ("libholdfast.a", "libholdfast.so.0"):
            sections = subprocess.run(["readelf", "-SW", installed / "lib" / library], check=True,
                                      capture_output=True, text=True).stdout
            assert ".text" in sections and ".debug_info" not in sections, f"{library} is not stripped"
        ENVIRONMENT["PKG_CONFIG_PATH"] = f"{folder}/lib/pkgconfig"
        run_examples("cpp", 2)
        for text, shown in [(block[2], after[2]) for block, after in zip(blocks(), blocks()[1:])
                            if block[0] == "cpp"]:
            run_example("cpp-static", text, shown)
            embedded = re.sub(r'Client client\(.*\);', 'Client client(port != nullptr ? "embedded:" : "");',
                              text)
            assert embedded != text
            for kind in ("cpp", "cpp-static"):
                run_example(kind, embedded, shown)
        subprocess.run([*make, "uninstall"], check=True, stdout=subprocess.DEVNULL)
        left = [path for path in installed.rglob("*") if not path.is_dir() and path.name != "cached"]
        assert not left, f"uninstall has left {left}"


def test_node():
    """the Node example prints what is shown"""
    run_examples("node", 1)


def test_go():
    """the Go example prints what is shown"""
    run_examples("go", 1)


def test_commands():
    """every command of the server is described"""
    command = ["COMMAND", "LIST", "FILTERBY", "PATTERN", "*"]
    with Server() as server:
        listed = subprocess.run(["redis-cli", "-p", server.port, *command], capture_output=True, text=True,
                                check=True).stdout.upper().split()
    assert "LOCK" in listed and "LOCKS|INFO" in listed
    # A lock command has a heading; of others each word stands in a table.
    missing = []
    for name in listed:
        words = name.split("|")
        own = words[0] in ("LOCK", "RENEW", "UNLOCK", "FENCE") or (len(words) == 2 and words[0] in
                                                                   ("LOCKS", "LEASE"))
        there = (f"\n### {' '.join(words)}\n" in README if own else
                 all(re.search(rf"`[^`\n]*\b{word}\b", README) for word in words))
        if not there:
            missing.append(name)
    assert not missing, f"README does not describe {missing}"


def test_options():
    """the table of options has those of --help, with their defaults"""
    told = subprocess.run([SERVER, "--help"], capture_output=True, text=True, check=True).stdout
    told = re.sub(r"\s+", " ", told)
    options = re.findall(r"--([a-z-]+) [A-Z]+ [^(]*\(default ([^)]*)\)", told)
    table = re.findall(r"^\| `--([a-z-]+)` \| ([^|]+) \|", README, re.MULTILINE)
    assert len(options) > 20 and options == table, f"--help: {options}\nREADME: {table}"


def over_time(*_):
    raise TimeoutError(f"not done after {LIMIT_S} s")


def main():
    signal.signal(signal.SIGALRM, over_time)
    tests = [test_session, test_python, test_cpp, test_node, test_node_npm, test_go, test_others,
             test_commands, test_options]
    failed = 0
    for test in tests:
        signal.alarm(LIMIT_S)
        try:
            test()
        except Exception:  # whatever it is, the other tests run
            failed += 1
            print(f"FAILED: README: {test.__doc__}")
            traceback.print_exc(file=sys.stdout)
        signal.alarm(0)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

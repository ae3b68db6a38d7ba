#!/usr/bin/python3
"""Runs the redis-cli sessions and the examples of README.md and docs/ as they are written, and compares
their output with the pages. Checks that the pages describe every command and option of the server. The last
line is "N passed, N failed".

pages.py describes the markers of code blocks. Each page with a session has its own server, and so has each
example. Tokens differ from run to run: each token of a page stands for one token of the run. Other blocks:
tutorials_test.py runs the kind `shell` in docs/tutorials, and a marker names the blocks of tls_test.py.
Needs python3-redis, nodejs, node-redis, golang-go, golang-github-gomodule-redigo-dev, ruby, php, perl and
redis-tools; the test fails without them. HOLDFAST_SERVER names the server."""
import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import HOLDFAST, end_with_parent, equal, part_of, run_tests, test
from pages import CODE_SPAN, ENVIRONMENT, MARKER, ROOT, Page, Tokens, manual

SERVER = ROOT / HOLDFAST
PROMPT = "127.0.0.1:7379> "
# The minimum number of blocks of each kind in the pages.
BLOCKS = {"redis-cli": 6, "cpp": 4, "python": 5, "node": 1, "node-npm": 2, "go": 1, "ruby": 1, "php": 1,
          "perl": 1}
TERMINALS = 3  # the minimum number of terminals in the sessions

# With sanitizers, because the installed library has them.
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


def embedded_client(match):
    """The client of an example with an embedded engine, and with the options that the example gives it."""
    return f'Client client(port != nullptr ? "embedded:" : ""{match[1] or ""});'


class Server:
    """A server on its own port, for one page or one example. It listens on 127.0.0.1 and, if the machine
    has it, on ::1, which `localhost` may stand for. The seed of its hash tables is fixed, because the
    tokens depend on it."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [SERVER, "--port", "auto", "--hash-seed", "1"],
            stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
        for line in self.process.stdout:
            if match := re.search(r"ready to accept connections on 127\.0\.0\.1:(\d+)", line):
                self.port = match.group(1)
                return self
        raise AssertionError("the server did not become ready")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()
        assert self.process.returncode == 0, f"the server ended with status {self.process.returncode}"


class Terminal:
    """A redis-cli that prints as in a terminal. An ECHO after each command marks the end of the answer.
    `waits` is whether the last command has no answer yet."""
    MARK = "--end of the answer--"

    def __init__(self, port):
        self.waits = False
        self.cli = subprocess.Popen(["redis-cli", "-p", port, "--no-raw"], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, env=os.environ | ENVIRONMENT)

    def send(self, command):
        self.cli.stdin.write(f"{command}\nECHO '{self.MARK}'\n")
        self.cli.stdin.flush()
        self.waits = True

    def answer(self):
        lines = []
        for line in self.cli.stdout:
            if line == f'"{self.MARK}"\n':
                self.waits = False
                return "".join(lines)
            if not re.fullmatch(r"\(\d+\.\d\ds\)\n", line):  # the duration
                lines.append(line)
        raise AssertionError(f"redis-cli ended after: {lines}")

    def close(self):
        self.cli.kill()
        self.cli.communicate()


def wait_until_blocked(port, number):
    """Returns when `number` clients of the server wait for a lock."""
    with socket.create_connection(("127.0.0.1", int(port))) as s, s.makefile("rwb") as f:
        while True:
            f.write(b"INFO clients\r\n")
            f.flush()
            text = f.read(int(f.readline()[1:]) + 2)
            if b"blocked_clients:%d\r\n" % number in text:
                return


def marked(*kinds):
    """The marked blocks of these kinds, each with its page."""
    return [(page, block) for page in manual() for block in page.blocks if block.kind in kinds]


@contextlib.contextmanager
def at(page, block):
    """Adds the page and the line of the block to a failure."""
    try:
        yield
    except (AssertionError, EOFError, TimeoutError) as failure:
        raise AssertionError(f"{page.name}:{block.line}: {failure}") from failure


def play(terminals, name, text, port, tokens):
    """Types a block of a session. The text before the first prompt is the answer to the last command."""
    terminal = terminals[name]
    answer, *commands = text.split(PROMPT)
    if answer:
        tokens.check(answer, terminal.answer())
    for part in commands:
        command, _, shown = part.partition("\n")
        terminal.send(tokens.translated(command))
        if shown:
            tokens.check(shown, terminal.answer())
        else:
            wait_until_blocked(port, sum(other.waits for other in terminals.values()))


def run_example(page, block, kind=None, text=None):
    name, command = EXAMPLES[kind or block.kind]
    with at(page, block), Server() as server, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.write_text(text or block.text, encoding="utf-8")
        done = subprocess.run([*command, path], cwd=folder, capture_output=True, text=True, check=False,
                              env=os.environ | ENVIRONMENT | {"HOLDFAST_PORT": server.port})
        assert done.returncode == 0, f"status {done.returncode}:\n{done.stdout}{done.stderr}"
        assert block.prints is not None, "the page does not say what the example prints"
        Tokens().check(block.prints, done.stdout)


def run_examples(*kinds):
    for page, block in marked(*kinds):
        run_example(page, block)


@test
def the_pages_have_enough_blocks_of_each_kind(_):
    for kind, number in BLOCKS.items():
        found = len(marked(kind))
        assert found >= number, f"the pages have {found} blocks of the kind {kind}, fewer than {number}"
    terminals = {(page.name, block.name) for page, block in marked("redis-cli")}
    assert len(terminals) >= TERMINALS, f"fewer than {TERMINALS} terminals: {terminals}"


def marker_faults(page):
    """Markers that mark no block to run. The pages of tutorials_test and three_questions_test may have
    other kinds."""
    tutorial = page.name.startswith("docs/tutorials/") or page.name == "docs/operations.md"
    known = {block.line for block in page.blocks if block.kind in BLOCKS}
    for match in MARKER.finditer(page.text):
        line = page.text.count("\n", 0, match.start()) + 1
        if match[1] == "run:" and line not in known and not tutorial:
            yield f"{page.name}:{line}: the marker is malformed, of an unknown kind, or has no code block"
    prints = sum(match[1] == "prints" for match in MARKER.finditer(page.text))
    if prints != sum(block.prints is not None for block in page.blocks) and not tutorial:
        yield f"{page.name}: a `prints` has no code block, or no block before it"


@test
def every_marker_marks_a_block_that_is_run(_):
    equal([fault for page in manual() for fault in marker_faults(page)], [])


@test
def the_redis_cli_sessions_answer_as_shown(_):
    for page in manual():
        typed = [block for block in page.blocks if block.kind == "redis-cli"]
        if typed:
            run_session(page, typed)


def run_session(page, typed):
    tokens = Tokens()
    with Server() as server, contextlib.ExitStack() as closing:
        terminals = {}
        for block in typed:
            if block.name not in terminals:
                terminals[block.name] = Terminal(server.port)
                closing.callback(terminals[block.name].close)
            with at(page, block):
                play(terminals, block.name, block.text, server.port, tokens)


@test
def the_python_examples_print_what_is_shown(_):
    run_examples("python")


@test
def the_examples_with_packages_of_npm_print_what_is_shown(_):
    sys.path.insert(0, str(ROOT / "tests/compat"))
    import cases_node  # where the packages of npm are pinned
    cases_node.install()
    with tempfile.TemporaryDirectory() as folder:  # links the names in the examples to the pinned versions
        for name, pinned in (("redlock", "redlock5"), ("ioredis", "ioredis5"),
                             ("redis-semaphore", "redis-semaphore")):
            pathlib.Path(folder, name).symlink_to(cases_node.BUILD / "node_modules" / pinned)
        ENVIRONMENT["NODE_PATH"] += f":{folder}"
        run_examples("node-npm")


@test
def the_node_examples_print_what_is_shown(_):
    run_examples("node")


@test
def the_go_examples_print_what_is_shown(_):
    run_examples("go")


@test
def the_ruby_php_and_perl_examples_print_what_is_shown(_):
    run_examples("ruby", "php", "perl")


@contextlib.contextmanager
def installed_library():
    """Installs the library by `make` in a temporary folder, and uninstalls it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        make = ["make", "-s", "-C", ROOT, f"PREFIX={folder}", "LIBRARY=asan",
                f"LDCONFIG=touch {folder}/cached"]
        subprocess.run([*make, "install-library"], check=True, stdout=subprocess.DEVNULL)
        installed = pathlib.Path(folder)
        yield installed
        subprocess.run([*make, "uninstall"], check=True, stdout=subprocess.DEVNULL)
        left = [path for path in installed.rglob("*") if not path.is_dir() and path.name != "cached"]
        assert not left, f"make uninstall did not remove {left}"


@test
def the_cpp_examples_print_what_is_shown_with_both_libraries_and_an_embedded_engine(_):
    with installed_library() as installed:
        assert (installed / "cached").exists() == (os.geteuid() == 0), "make runs ldconfig for root only"
        for library in ("libholdfast.a", "libholdfast.so.0"):
            sections = subprocess.run(["readelf", "-SW", installed / "lib" / library], check=True,
                                      capture_output=True, text=True).stdout
            assert ".text" in sections and ".debug_info" not in sections, f"{library} is not stripped"
        names = subprocess.run(["nm", "-DC", "--defined-only", installed / "lib/libholdfast.so.0"],
                               check=True, capture_output=True, text=True).stdout
        mutex = [name for name in names.splitlines() if " holdfast::Mutex::" in name]
        assert mutex and not any("std::" in name for name in mutex), f"std in the ABI of mutex.h: {mutex}"
        ENVIRONMENT["PKG_CONFIG_PATH"] = f"{installed}/lib/pkgconfig"
        embedded = 0
        for page, block in marked("cpp"):
            text = re.sub(r"Client client\(.*?(, \w+)?\);", embedded_client, block.text)
            embedded += text != block.text
            for kind, program in part_of([("cpp", block.text), ("cpp-static", block.text),
                                          ("cpp-static", text), ("cpp", text)], 2):
                run_example(page, block, kind, program)
        assert embedded >= BLOCKS["cpp"], \
            f"{embedded} examples have an embedded engine, fewer than {BLOCKS['cpp']}"


def described(page):
    """The words in the code spans of each paragraph, list item and table row of a page."""
    for passage in re.split(r"\n\s*\n|\n(?=\||[-*] |\d+\. )", page.prose):
        yield set(re.findall(r"[\w-]+", " ".join(match[2] for match in CODE_SPAN.finditer(passage))))


@test
def every_command_is_described(_):
    command = ["COMMAND", "LIST", "FILTERBY", "PATTERN", "*"]
    with Server() as server:
        listed = subprocess.run(["redis-cli", "-p", server.port, *command], capture_output=True, text=True,
                                check=True).stdout.upper().split()
    assert "LOCK" in listed and "LOCKS|INFO" in listed
    # A lock command has a heading in docs/protocol.md. The words of another command are in one passage.
    headings = {heading.text for heading in Page(ROOT / "docs/protocol.md").headings if heading.level == 3}
    passages = [words for page in manual() if page.name != "README.md" for words in described(page)]
    missing = []
    for name in listed:
        parts = name.split("|")
        own = (parts[0] in ("LOCK", "RENEW", "UNLOCK", "FENCE", "CL.THROTTLE")
               or len(parts) == 2 and parts[0] in ("LOCKS", "LEASE", "BACKUP"))
        if not (" ".join(parts) in headings if own else any(words.issuperset(parts) for words in passages)):
            missing.append(name)
    assert not missing, f"the pages do not describe {missing}"


@test
def the_table_of_options_has_those_of_help_with_their_defaults(_):
    help_text = subprocess.run([SERVER, "--help"], capture_output=True, text=True, check=True).stdout
    help_text = re.sub(r"\s+", " ", help_text)
    options = re.findall(r"--([a-z-]+) [A-Z]+ [^(]*\(default ([^)]*)\)", help_text)
    page = Page(ROOT / "docs/configuration.md")
    table = re.findall(r"^\| `--([a-z-]+)` \| ([^|]+) \|", page.text, re.MULTILINE)
    assert len(options) > 20 and options == table, f"--help: {options}\n{page.name}: {table}"


if __name__ == "__main__":
    run_tests(contextlib.nullcontext)

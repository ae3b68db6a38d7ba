#!/usr/bin/python3
"""Holds redis-scripts/README.md to its word: what is typed there and the examples are run as they stand,
with stock Redis, and must print what stands there; and it must describe every script. Tokens differ from
run to run: each in the text stands for one of the run. Closes with "N passed, N failed". Needs
python3-redis, node-redis and redis-tools. REDIS_SERVER names the server."""
import contextlib
import os
import pathlib
import pty
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # build/ is the only place for what is made
import servers  # first: it sets the path
from harness import LIMIT_S, REDIS, end_with_parent, equal, has, run_tests, test, until
from pages import ENVIRONMENT, Tokens, blocks

FOLDER = servers.ROOT / "redis-scripts"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
EXAMPLES = {"python": ("example.py", "/usr/bin/python3"), "node": ("example.js", "node")}
MARK = "--end of the answer--"


@contextlib.contextmanager
def redis():
    """The port of a server of its own, on both addresses that `localhost` may stand for."""
    port = servers.free_ports(1)[0]
    with tempfile.TemporaryDirectory(prefix="holdfast-readme-") as folder:
        process = subprocess.Popen([os.path.abspath(REDIS), "--port", str(port), "--bind", "127.0.0.1",
                                    "-::1", "--save", "", "--dir", folder], stdout=subprocess.DEVNULL,
                                   preexec_fn=end_with_parent)

        def connected():
            equal(process.poll(), None)
            with contextlib.suppress(ConnectionRefusedError):
                return servers.TcpClient(port)
        until(connected).close()
        yield str(port)
        process.terminate()
        equal(process.wait(LIMIT_S), 0)


class Shell:
    """A shell whose output is a terminal, as redis-cli shows replies otherwise than in $(...)."""

    def __init__(self, port, folder):
        cli = pathlib.Path(folder, "redis-cli")
        cli.write_text(f'#!/bin/sh\nexec /usr/bin/redis-cli -p {port} "$@"\n', encoding="utf-8")
        cli.chmod(0o755)
        ours, theirs = pty.openpty()
        self.output = os.fdopen(ours, encoding="utf-8", newline="\n")
        self.shell = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, text=True, cwd=FOLDER,
            env=os.environ | ENVIRONMENT | {"PATH": f"{folder}:{os.environ['PATH']}"},
            preexec_fn=end_with_parent)
        os.close(theirs)

    def answer(self, command):
        self.shell.stdin.write(f"{command}\necho '{MARK}'\n")
        self.shell.stdin.flush()
        lines = []
        while (line := self.output.readline().replace("\r", "")) != f"{MARK}\n":
            lines.append(line)
        return "".join(lines)

    def close(self):
        self.shell.stdin.close()
        equal(self.shell.wait(LIMIT_S), 0)
        self.output.close()


def block_of(kind):
    """The one block of this kind."""
    block, = (block for block in blocks(README) if block.kind == kind)
    return block


@test
def what_is_typed_in_the_shell_answers_as_shown(folder):
    folder.mkdir()
    tokens = Tokens()
    with redis() as port:
        shell = Shell(port, folder)
        for part in block_of("shell").text.split("$ ", 1)[1].split("\n$ "):
            command, _, shown = part.partition("\n")
            if shown and not shown.endswith("\n"):
                shown += "\n"
            tokens.check(shown, shell.answer(command))
        shell.close()


def run_example(kind, folder):
    folder.mkdir()
    name, command = EXAMPLES[kind]
    block = block_of(kind)
    (folder / name).write_text(block.text, encoding="utf-8")
    with redis() as port:
        done = subprocess.run([command, folder / name], cwd=folder, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S, env=os.environ | ENVIRONMENT |
                              {"REDIS_PORT": port, "REDIS_SCRIPTS": str(FOLDER)})
    equal((done.returncode, done.stderr), (0, ""))
    Tokens().check(block.prints, done.stdout)


@test
def the_python_example_prints_what_is_shown(folder):
    run_example("python", folder)


@test
def the_node_example_prints_what_is_shown(folder):
    run_example("node", folder)


@test
def each_script_is_in_the_table_and_has_a_head(_):
    names = {path.stem for path in FOLDER.glob("*.lua")} - {"common", "lease_common"}
    equal(len(names), 12)
    for name in sorted(names):
        has(README, f"| `{name}` |")
        text = (FOLDER / f"{name}.lua").read_text(encoding="utf-8")
        has(text, "--   KEYS   ", "--   ARGV   ", "Errors: ")


if __name__ == "__main__":
    sys.exit(run_tests())

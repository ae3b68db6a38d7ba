"""What the tests of `holdfast backup` and `holdfast restore` have in common."""
import os
import re
import subprocess

from harness import HOLDFAST, LIMIT_S, Server, end_with_parent

COMMAND = os.path.join(os.path.dirname(HOLDFAST), "holdfast")


def run(status, *args, env=None, stdin=None, prepare=end_with_parent):
    """Returns the output of the command, which must exit with this status."""
    done = subprocess.run([COMMAND, *map(str, args)], check=False, stdout=subprocess.PIPE, stdin=stdin,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S, env=env, preexec_fn=prepare)
    text = done.stdout.decode(errors="replace")
    if done.returncode != status or "Sanitizer" in text:
        raise AssertionError(f"status {done.returncode}, wanted {status}: {text:.1000}")
    return text


class Source(Server):
    """A server on a TCP port, so that the command can reach it."""

    def __init__(self, folder, *options, **kinds):
        super().__init__(folder, "--port", "auto", "--bind", "127.0.0.1", *options, **kinds)
        self.port = re.search(r"on 127\.0\.0\.1:(\d+)", self.log).group(1)

    def backup(self, path, *options, status=0, **kinds):
        return run(status, "backup", "--servers", f"127.0.0.1:{self.port}", *options, path, **kinds)

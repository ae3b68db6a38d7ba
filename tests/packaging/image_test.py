#!/usr/bin/python3
"""The image of packaging/Containerfile: `make image` builds it with buildah on a bare Debian (debian.py),
with the packages of `make deb`. A container of it runs in namespaces of its own with the command, user,
check and stop signal of the image, on a read-only root file system and without rights. IMAGE_SOURCES=1
builds the packages in the image's own stage too. Needs root, buildah and Debian's mirror. The last line is
"N passed, N failed"."""
import contextlib
import functools
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
from debian import BASE, call, make_base, packages  # noqa: E402
from harness import Skipped, end_with_parent, equal, has, run_tests, test, until  # noqa: E402

# Not in build/: make looks for its own files there, and would find those of the images.
STORE = tempfile.TemporaryDirectory(prefix="holdfast-images-")
BUILDAH = ["buildah", "--root", f"{STORE.name}/store", "--runroot", f"{STORE.name}/run"]
ISOLATED = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
HARDENED = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
harness.TEST_LIMIT_S = 3600  # a build from the sources


def buildah(*words):
    return call(*BUILDAH, *words, env=ISOLATED).strip()


def make_image(folder):
    """Builds the image as holdfast:test, by the target of the Makefile."""
    make_base()
    (folder / "Containerfile").write_text(f"FROM scratch\nADD {BASE.name} /\n")
    buildah("build", "-q", "-t", "localhost/debian:12", "-f", str(folder / "Containerfile"),
            str(BASE.parent))
    flags = "--build-arg BASE=localhost/debian:12"
    if not os.environ.get("IMAGE_SOURCES"):
        (folder / "deb").mkdir()
        for package in packages().values():
            shutil.copy(package, folder / "deb")
        flags += f" --build-context packages={folder}"
    call("make", "-C", str(ROOT), "image", "IMAGE=localhost/holdfast:test",
         f"IMAGE_BUILD={shlex.join(BUILDAH)} build --format docker", f"IMAGE_FLAGS={flags}", env=ISOLATED)


class Container:
    """A container of the image, and its data volume, which outlives its process."""

    def __init__(self, folder, user=None):
        image = json.loads(buildah("inspect", "--type", "image", "localhost/holdfast:test"))
        self.settings = image["Docker"]["config"]
        self.name = buildah("from", "localhost/holdfast:test").splitlines()[-1]
        self.root = buildah("mount", self.name).splitlines()[-1]
        self.user, self.group = (user or self.settings["User"]).split(":")
        self.data = folder / "data"
        self.data.mkdir(mode=0o700)
        own = os.stat(f"{self.root}/data")
        os.chown(self.data, *((int(self.user), int(self.group)) if user else (own.st_uid, own.st_gid)))
        self.process = self.server = None
        self.log = folder / "log"

    def as_user(self):
        return ["/usr/bin/setpriv", f"--reuid={self.user}", f"--regid={self.group}", *HARDENED, "--"]

    def start(self, *options):
        """Starts the image's entry point with its own options or these, as process 1, and waits until the
        image's check of health succeeds."""
        root, data = shlex.quote(self.root), shlex.quote(str(self.data))
        command = self.as_user() + ["env", "-C", self.settings["WorkingDir"]]
        command += self.settings["Entrypoint"] + (list(options) or self.settings["Cmd"])
        script = "\n".join([
            "set -e", "mount --make-rprivate /", f"mount --bind {root} {root}", f"cd {root}",
            "ip link set lo up", "mount -t proc proc proc", "mount -t tmpfs -o mode=755 dev dev",
            "for d in null urandom; do touch dev/$d; mount --bind /dev/$d dev/$d; done",
            "mount -o remount,ro dev", f"mount --bind {data} data", "mount -o remount,ro,bind .",
            f"exec chroot . {shlex.join(command)}"])
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child",
                 "sh", "-c", script], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent)
        self.server = int(until(self.child))
        until(self.healthy)

    def child(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the container ended: {self.log.read_text()[-2000:]}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return children.read_text().strip()

    def run(self, *words):
        """Runs a command in the container; returns the exit status and the output."""
        done = subprocess.run(
            ["nsenter", f"--target={self.server}", "--mount", "--pid", "--net", "--root", "--wd",
             *self.as_user(), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def healthy(self):
        self.child()
        kind, *words = self.settings["Healthcheck"]["Test"]
        equal(kind, "CMD")
        return self.run(*words)[0] == 0

    def stop(self):
        """Stops the container as `podman stop` does; returns the exit status of the server."""
        os.kill(self.server, getattr(signal, self.settings["StopSignal"]))
        return self.process.wait(harness.LIMIT_S)

    def remove(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        buildah("umount", self.name)
        buildah("rm", self.name)


@contextlib.contextmanager
def container(folder, user=None):
    made = Container(folder, user)
    try:
        yield made
    finally:
        made.remove()


@test
def a_restart_keeps_the_locks(folder):
    with container(folder) as made:
        made.start()
        status, out = made.run("holdfast", "lock", "--ttl", "1h", "test")
        equal((status, made.run("holdfast", "lock", "--no-wait", "test")[0]), (0, 75))
        token = out.split()[1]
        equal(made.stop(), 0)
        made.start()
        has(made.run("holdfast", "list")[1].encode(), token.encode())
        os.kill(made.server, signal.SIGKILL)
        made.process.wait()
        made.start()
        has(made.run("holdfast", "list")[1].encode(), token.encode())
        equal(made.stop(), 0)


@test
def the_check_of_health_fails_while_the_server_is_stuck(folder):
    with container(folder) as made:
        made.start()
        os.kill(made.server, signal.SIGSTOP)
        equal(made.healthy(), False)
        os.kill(made.server, signal.SIGCONT)
        until(made.healthy)
        equal(made.stop(), 0)


@test
def the_server_has_no_rights_and_writes_to_its_volume_only(folder):
    with container(folder) as made:
        made.start()
        process = pathlib.Path(f"/proc/{made.server}")
        status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
        equal(set(status["Uid"].split()) | set(status["Gid"].split()), {"65532"})
        equal({status[name] for name in ("CapPrm", "CapEff", "CapBnd")}, {"0" * 16})
        equal(made.run("sh", "-c", "touch /x /tmp/x /etc/holdfast/x /var/lib/x")[0], 1)
        equal(made.run("sh", "-c", "touch /data/x && rm /data/x"), (0, ""))
        equal(sorted(made.settings["Volumes"]), ["/data"])
        equal(made.stop(), 0)
        equal({entry.name.split(".")[0] for entry in made.data.iterdir()} >= {"meta"}, True)


@test
def any_other_user_can_run_it(folder):
    """OpenShift gives each project a user of its own."""
    with container(folder, user="1000700000:1000700000") as made:
        made.start()
        equal(made.run("holdfast", "lock", "--ttl", "1h", "test")[0], 0)
        equal(made.stop(), 0)


@test
def options_replace_those_of_the_image(folder):
    with container(folder) as made:
        made.start("--dir", "/data", "--maxmemory", "50mb")
        has(made.run("holdfast-server", "--version")[1].encode(), b"holdfast")
        has(pathlib.Path(f"/proc/{made.server}/cmdline").read_bytes(), b"50mb")
        equal(made.stop(), 0)


@test
def the_image_has_programs_for_its_user_only(_):
    """Nothing of the build is left, and no file of the package belongs to a user that the image has not."""
    with tempfile.TemporaryDirectory() as aside, container(pathlib.Path(aside)) as made:
        root = pathlib.Path(made.root)
        for path in ("deb", "src", "usr/bin/g++", "usr/bin/make"):
            equal((path, (root / path).exists()), (path, False))
        equal(call("chroot", str(root), "find", "/", "-xdev", "(", "-nouser", "-o", "-nogroup", ")"), "")
        has((root / "etc/passwd").read_bytes(), b"holdfast:x:65532:65532:")


@functools.cache
def image_error():
    """Builds the image, once for all tests; returns the exception of a build that failed."""
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-image-") as folder:
            make_image(pathlib.Path(folder))
    except (AssertionError, Skipped) as why:
        return why
    return None


@contextlib.contextmanager
def folder_of_test():
    if os.geteuid() != 0:
        raise Skipped("not root")
    if shutil.which("buildah") is None:
        raise Skipped("buildah is not installed")
    if image_error():
        raise image_error()
    with tempfile.TemporaryDirectory(prefix="holdfast-image-") as folder:
        yield pathlib.Path(folder)


run_tests(folder_of_test)

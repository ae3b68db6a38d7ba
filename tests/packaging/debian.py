"""Shared by the tests of this folder: the packages of `make deb`, and bare Debians (debootstrap) to use
them in, without or with a booted systemd. DEB_DIR is the folder of the packages. DEBIAN_MIRROR is the
mirror of Debian, else the one that apt uses here."""
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
from harness import Skipped, equal, has, until  # noqa: E402

DEBS = ROOT / os.environ.get("DEB_DIR", "build/deb")
BASE = DEBS / "bookworm.tar"  # the bare Debian, made once
NAMES = ["holdfast", "holdfast-server", "libholdfast0"]
DEV = "libholdfast-dev"
# What apt, dpkg and adduser write for themselves, and the mounts of this test.
OTHER_PATHS = ("/debs", "/proc/", "/run/", "/tmp/", "/var/cache/", "/var/lib/apt/", "/var/lib/dpkg/",
               "/var/log/", "/etc/shadow-", "/etc/gshadow-")
USERS = ("passwd", "group", "shadow", "gshadow")
# A client that acquires locks as long as the file /busy exists, and writes each grant to a file.
LOAD = """i=0; while [ -e /busy ]; do i=$((i + 1))
if grant=$(holdfast lock --quiet --ttl 1h "$0-$i" 2>/dev/null); then echo "$0-$i $grant" >>"/granted-$0"; fi
done"""
CLIENTS = 3
UNIT = "/usr/lib/systemd/system/holdfast-server.service"
harness.TEST_LIMIT_S = 1800  # downloads


def call(*words, status=0, **options):
    """Runs a command, which must end with this status, and returns its output."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def packages():
    """The packages of the last build by their names, without those of debug information."""
    found = {name: next(DEBS.glob(f"{name}_*.deb"), None) for name in [*NAMES, DEV]}
    if None in found.values():
        raise Skipped("no packages; run make deb")
    return found


def earlier(package, folder):
    """The same package with a lower version."""
    tree = folder / package.name
    call("dpkg-deb", "-R", str(package), str(tree))
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^(Version: \S+)", r"\1~earlier", control.read_text(), flags=re.MULTILINE))
    made = folder / f"earlier-{package.name}"
    call("dpkg-deb", "--root-owner-group", "-Znone", "-b", str(tree), str(made))
    return made


class Machine:
    """A bare Debian with a network of its own."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        call("mount", "-t", "tmpfs", "-o", "size=2g,mode=755", "debian", str(root))
        call("tar", "-C", str(root), "-xpf", str(BASE))
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        call("mount", "-t", "proc", "proc", str(self.root / "proc"))
        self.network = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE, text=True)
        equal(self.network.stdout.readline(), "up\n")
        self.server = None
        self.before = self.state()

    def end(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        self.network.kill()
        self.network.communicate()
        call("umount", "-l", str(self.root / "proc"))
        call("umount", "-l", str(self.root))

    def run(self, *words, status=0):
        return call("chroot", str(self.root), *words, status=status,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
                         "DEBIAN_FRONTEND": "noninteractive"})

    def inside(self, *words):
        """The words that run a command in the machine and its network."""
        return ["nsenter", f"--net=/proc/{self.network.pid}/ns/net", "chroot", str(self.root), *words]

    def ask(self, *words, status=0):
        return call(*self.inside(*words), status=status)

    def install(self, files):
        for old in (self.root / "debs").glob("*.deb"):
            old.unlink()
        (self.root / "debs").mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, self.root / "debs")
        paths = [f"/debs/{file.name}" for file in files]
        return self.run("apt-get", "-y", "--no-install-recommends", "install", *paths)

    def start(self):
        """Starts the server as the unit says: its command, as its user."""
        unit = (self.root / UNIT[1:]).read_text()
        command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE).group(1).split()
        user = re.search(r"^User=(.*)$", unit, re.MULTILINE).group(1)
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"]
        self.server = subprocess.Popen(self.inside(*as_user, *command), stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
        log = ""
        while "ready to accept connections" not in log:
            line = self.server.stdout.readline()
            log += line
            if not line:
                raise AssertionError(f"the server did not start: {log}")

    def stop(self):
        self.server.terminate()
        has(self.server.communicate(timeout=harness.LIMIT_S)[0].encode(), b"stopped")
        equal(self.server.returncode, 0)
        self.server = None

    def state(self):
        """All paths, users and groups, and each path with the name of the packages."""
        paths = self.run("find", "/", "-xdev").splitlines()
        found = {path for path in paths if not path.startswith(OTHER_PATHS) or "holdfast" in path}
        for name in USERS:
            found.update(f"{name}: {line}" for line in (self.root / "etc" / name).read_text().splitlines())
        return {line for line in found if not line.startswith("/debs")}

    def granted(self):
        """The locks that the clients of the load acquired, and their tokens."""
        lines = [line for file in self.root.glob("granted-*") for line in file.read_text().splitlines()]
        return {line.split()[0]: int(line.split()[2]) for line in lines}

    @contextlib.contextmanager
    def load(self):
        """Clients that acquire locks, and one that keeps a lock by renewing it, which must not be lost."""
        (self.root / "busy").touch()
        keeps = ["holdfast", "run", "--ttl", "30s", "kept", "--", "sh", "-c",
                 "while [ -e /busy ]; do sleep 0.1; done"]
        commands = [keeps, *(["sh", "-c", LOAD, f"client{i}"] for i in range(CLIENTS))]
        clients = [subprocess.Popen(self.inside(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True) for command in commands]
        try:
            self.more_grants()
            yield
            self.more_grants()
        finally:
            (self.root / "busy").unlink()
            said = [client.communicate(timeout=harness.LIMIT_S)[0] for client in clients]
        equal([client.returncode for client in clients], [0] * len(clients))
        equal("lost" in said[0], False)

    def more_grants(self):
        enough = len(self.granted()) + 10 * CLIENTS
        harness.until(lambda: len(self.granted()) >= enough)


class Booted(Machine):
    """The same, with a systemd that has booted after boot()."""

    def __init__(self, root):
        self.container = None
        super().__init__(root)

    def boot(self):
        """Boots the systemd of the machine, with a network of its own."""
        (self.root / "usr/sbin/policy-rc.d").unlink()
        call("umount", "-l", str(self.root / "proc"))
        self.container = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "-D", str(self.root), "--boot", "--private-network",
             "--register=no", "--keep-unit", "--console=pipe"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until(lambda: self.container.poll() is not None or self.has_booted())
        if self.container.poll() is not None:
            raise Skipped(f"no systemd boots here: {self.container.communicate()[0].strip()[-200:]}")

    def run(self, *words, status=0):
        if self.container is None:
            return super().run(*words, status=status)
        return self.ask("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", *words, status=status)

    def has_booted(self):
        state = subprocess.run(self.inside("systemctl", "is-system-running"), check=False, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return state.stdout.strip() in ("running", "degraded")

    def inside(self, *words):
        children = pathlib.Path(f"/proc/{self.container.pid}/task/{self.container.pid}/children")
        pid = (children.read_text() if children.exists() else "").split()
        return ["nsenter", "-m", "-u", "-i", "-n", "-p", "-C", "-t", pid[0] if pid else "0", *words]

    def end(self):
        if self.container is not None:
            self.container.kill()
            self.container.communicate()
            call("mount", "-t", "proc", "proc", str(self.root / "proc"))  # which end() removes
        super().end()


def mirror():
    """The address of Debian's mirror, which answers."""
    sites = call("apt-get", "indextargets", "--format", "$(SITE)", "Codename: bookworm").split()
    site = os.environ.get("DEBIAN_MIRROR") or next(iter(sites), None)
    try:
        urllib.request.urlopen(f"{site}/dists/bookworm/Release", timeout=20).close()
    except (ValueError, OSError) as why:
        raise Skipped(f"no mirror of Debian 12 at {site}: {why}") from why
    return site


def make_base():
    """Makes BASE from Debian's mirror, if it does not exist. Suites that run at once wait for the first."""
    BASE.parent.mkdir(parents=True, exist_ok=True)
    with BASE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not BASE.exists():
            download_base()


def download_base():
    if shutil.which("debootstrap") is None:
        raise Skipped("debootstrap is not installed")
    site = mirror()
    with tempfile.TemporaryDirectory(prefix="holdfast-debian-") as root:
        call("debootstrap", "--variant=minbase", "bookworm", root, site)
        # The folder is the "/" of the machines: not only root may read it.
        os.chmod(root, 0o755)
        call("tar", "-C", root, "-cf", f"{BASE}.new", ".")
    os.rename(f"{BASE}.new", BASE)


@contextlib.contextmanager
def machine(kind=Machine):
    """A new bare Debian, of the class `kind`."""
    if os.geteuid() != 0:
        raise Skipped("not root")
    make_base()
    with tempfile.TemporaryDirectory(prefix="holdfast-debian-") as root:
        made = kind(root)
        try:
            yield made
        finally:
            made.end()


@contextlib.contextmanager
def folder_of_test():
    with tempfile.TemporaryDirectory(prefix="holdfast-deb-") as folder:
        yield pathlib.Path(folder)

#!/usr/bin/python3
"""The Debian packages of `make deb`: lintian finds nothing, and in a bare Debian (debootstrap, no systemd)
they are installed, used, upgraded while a lock is held, and purged without a rest. Needs root and Debian's
mirror. The last line is "N passed, N failed, N skipped". DEB_DIR is the folder of the packages."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
from debian import BASE, DEBS, NAMES, call, make_base, packages  # noqa: E402
from harness import Skipped, equal, has, run_tests, test  # noqa: E402

UNIT = "/usr/lib/systemd/system/holdfast-server.service"
harness.TEST_LIMIT_S = 1800  # downloads


def rebuilt(package, folder):
    """The same package with a higher version."""
    tree = folder / package.name
    call("dpkg-deb", "-R", str(package), str(tree))
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^(Version: \S+|Depends: .*libholdfast0 \(= [^)]+)", r"\1+rebuilt",
                              control.read_text(), flags=re.MULTILINE))
    call("dpkg-deb", "--root-owner-group", "-b", str(tree), str(folder / f"new-{package.name}"))
    return folder / f"new-{package.name}"


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

    def traces(self):
        """The paths, users and groups that the packages left."""
        found = [path for path in self.run("find", "/", "-xdev", "-iname", "*holdfast*").split()
                 if not path.startswith(("/debs/", "/proc/"))]
        for name in ("passwd", "group", "shadow", "gshadow"):
            lines = (self.root / "etc" / name).read_text().splitlines()
            found += [line for line in lines if "holdfast" in line]
        return found


@contextlib.contextmanager
def machine():
    if os.geteuid() != 0:
        raise Skipped("not root")
    make_base()
    with tempfile.TemporaryDirectory(prefix="holdfast-debian-") as root:
        made = Machine(root)
        try:
            yield made
        finally:
            made.end()


@test
def lintian_finds_nothing(_):
    packages()
    if shutil.which("lintian") is None:
        raise Skipped("lintian is not installed")
    changes = max(DEBS.glob("holdfast_*.changes"), key=os.path.getmtime)
    equal(call("lintian", "--fail-on", "error,warning", "--allow-root", str(changes)), "")


@test
def install_use_upgrade_and_purge(folder):
    now = packages()
    later = [rebuilt(package, folder) for package in now]
    with machine() as debian:
        debian.install(now)
        equal(debian.run("stat", "-c", "%U %G %a", "/etc/holdfast/holdfast.conf", "/var/lib/holdfast"),
              "root holdfast 640\nholdfast holdfast 700\n")
        debian.start()
        token = int(debian.ask("holdfast", "lock", "--ttl", "1h", "test").split()[1])
        has(debian.ask("holdfast", "list").encode(), b"test")
        conf = debian.root / "etc/holdfast/holdfast.conf"
        conf.write_text(conf.read_text() + "\n# a line of the administrator\nmaxmemory = 100mb\n")
        debian.stop()

        debian.install(later)
        has(debian.run("dpkg-query", "-W", "holdfast-server").encode(), b"+rebuilt")
        has(conf.read_text().encode(), b"\nmaxmemory = 100mb\n")
        debian.start()
        has(debian.ask("holdfast", "list").encode(), b"test")
        debian.ask("holdfast", "lock", "--no-wait", "test", status=75)
        equal(int(debian.ask("holdfast", "lock", "--ttl", "1h", "other").split()[1]) > token, True)
        debian.stop()

        debian.run("apt-get", "-y", "remove", *NAMES)
        equal((debian.root / "var/lib/holdfast/meta").exists(), True)
        equal(conf.exists(), True)
        debian.run("apt-get", "-y", "purge", "--auto-remove", "holdfast-server")
        equal(debian.traces(), [])


@test
def a_program_is_built_with_the_packages_of_the_library(folder):
    """The pkg-config file and the headers name all that a program needs."""
    library, headers = (next(p for p in packages() if p.name.startswith(name + "_"))
                        for name in ("libholdfast0", "libholdfast-dev"))
    for package in (library, headers):
        call("dpkg-deb", "-x", str(package), str(folder))
    config = next(folder.glob("usr/lib/*/pkgconfig"))
    (folder / "a.cc").write_text("#include <holdfast/client.h>\n"
                                 'int main() { holdfast::Client c("embedded:"); }\n')
    flags = call("pkg-config", f"--define-variable=prefix={folder}/usr", "--cflags", "--libs", "holdfast",
                 env={**os.environ, "PKG_CONFIG_PATH": str(config)}).split()
    call("g++", "-std=c++20", "-o", str(folder / "a"), str(folder / "a.cc"), *flags)
    call(str(folder / "a"), env={**os.environ, "LD_LIBRARY_PATH": str(config.parent)})


@contextlib.contextmanager
def folder_of_test():
    with tempfile.TemporaryDirectory(prefix="holdfast-deb-") as folder:
        yield pathlib.Path(folder)


run_tests(folder_of_test)

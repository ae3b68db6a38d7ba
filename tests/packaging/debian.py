"""Shared by the tests of packages and of the image: the packages of `make deb`, and a bare Debian as an
archive that debootstrap makes from Debian's mirror."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

from harness import Skipped

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBS = ROOT / os.environ.get("DEB_DIR", "build/deb")
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
BASE = DEBS / "bookworm.tar"  # the bare Debian, made once
NAMES = ["holdfast", "holdfast-server", "libholdfast-dev", "libholdfast0"]


def call(*words, status=0, **options):
    """Runs a command, which must end with this status, and returns its output."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def packages():
    """The packages of the last build, without those of debug information."""
    found = [max(DEBS.glob(f"{name}_*.deb"), key=os.path.getmtime, default=None) for name in NAMES]
    if None in found:
        raise Skipped("no packages; run make deb")
    return found


def make_base():
    """Makes BASE from Debian's mirror, if it does not exist."""
    if BASE.exists():
        return
    if shutil.which("debootstrap") is None:
        raise Skipped("debootstrap is not installed")
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/bookworm/Release", timeout=20).close()
    except (urllib.error.URLError, OSError) as why:
        raise Skipped(f"no mirror of Debian: {why}") from why
    with tempfile.TemporaryDirectory(prefix="holdfast-debian-") as root:
        call("debootstrap", "--variant=minbase", "bookworm", root, MIRROR)
        call("tar", "-C", root, "-cf", f"{BASE}.new", ".")
    os.rename(f"{BASE}.new", BASE)

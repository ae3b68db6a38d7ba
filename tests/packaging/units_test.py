#!/usr/bin/python3
"""The systemd units: they are valid, they are hardened, the unit of several servers differs from the other
in names only, and the hardening leaves what the server needs. The last line is "N passed, N failed"."""
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
from harness import Skipped, equal, has, run_tests, test  # noqa: E402

UNITS = ROOT / "packaging/systemd"
MOST_EXPOSURE = 1.5


def analyze(*words):
    """Runs systemd-analyze, and returns its output."""
    if shutil.which("systemd-analyze") is None:
        raise Skipped("systemd-analyze is not installed")
    done = subprocess.run(["systemd-analyze", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    equal((words[0], done.returncode, done.stdout if done.returncode else ""), (words[0], 0, ""))
    return done.stdout


def settings(name):
    return [line for line in (UNITS / name).read_text().splitlines() if line and not line.startswith("#")]


@test
def the_units_are_valid(folder):
    for name in ("holdfast-server.service", "holdfast-server@.service", "holdfast-server.socket",
                 "holdfast-proxy.service"):
        text = re.sub("/usr/bin/holdfast[a-z-]*", "/bin/true", (UNITS / name).read_text())
        (folder / name.replace("@.", "@one.")).write_text(text)
    for path in sorted(folder.iterdir()):
        equal(analyze("verify", "--man=no", str(path)), "")


@test
def the_services_are_hardened(folder):
    for name in ("holdfast-server.service", "holdfast-server@.service", "holdfast-proxy.service"):
        shutil.copy(UNITS / name, folder / name.replace("@.", "@one."))
    for path in sorted(folder.iterdir()):
        said = analyze("security", "--offline=yes", "--no-pager", str(path))
        level = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said).group(1))
        equal(level <= MOST_EXPOSURE, True)


@test
def the_unit_of_several_servers_differs_in_names_only(_):
    one, several = settings("holdfast-server.service"), settings("holdfast-server@.service")
    differ = [b for a, b in zip(one, several) if a != b]
    equal(len(one), len(several))
    equal([line.split("=")[0] for line in differ],
          ["Description", "ExecStart", "StateDirectory", "RuntimeDirectory"])
    equal([line for line in differ if "%i" not in line], [])


@test
def the_server_sees_the_id_of_the_boot(_):
    """Without it the server cannot know after a kill that the kernel still has its writes. It would make
    each restart a recovery wait."""
    equal([line for line in settings("holdfast-server.service") if line.startswith("ProcSubset=")], [])
    has("\n".join(settings("holdfast-server.service")).encode(), b"Type=notify", b"WatchdogSec=",
        b"StateDirectoryMode=0700", b"LimitNOFILE=", b"OOMScoreAdjust=")


@contextlib.contextmanager
def unit_folder():
    with tempfile.TemporaryDirectory(prefix="holdfast-units-") as folder:
        yield pathlib.Path(folder)


run_tests(unit_folder)

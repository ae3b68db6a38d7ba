#!/usr/bin/env python3
"""The permissions of what `make install` copies. The last line is "N passed, N failed". It needs `make`."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import equal, run_tests, test
from pages import ROOT

FAKE_STRIP = '#!/bin/sh\ntouch "$3"\n'  # in place of: strip OPTION -o FILE LIBRARY


@test
def all_users_may_read_what_root_installs_with_a_narrow_umask(_):
    with tempfile.TemporaryDirectory() as folder:
        strip = pathlib.Path(folder, "strip")
        strip.write_text(FAKE_STRIP, "ascii")
        strip.chmod(0o755)
        root = pathlib.Path(folder, "root")
        subprocess.run(["make", "-s", "-C", ROOT, f"DESTDIR={root}", "PREFIX=/usr", f"STRIP={strip}",
                        "LIBRARIES=", "install-library", "install-completions"],
                       check=True, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.umask(0o077))
        closed = {str(path.relative_to(root)) for path in (root / "usr").rglob("*") if path.exists()
                  and not path.stat().st_mode & (0o005 if path.is_dir() else 0o004)}
        equal(closed, set())
        equal((root / "usr/lib/pkgconfig/holdfast.pc").exists(), True)


run_tests()

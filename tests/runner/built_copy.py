"""A copy of the project with the objects of build/asan. make compiles only what changes in it."""
import collections.abc
import pathlib
import shutil
import subprocess

# Of build/. Without the flags make would compile everything again.
BUILT = ("asan", "units", "generated", "commit", "flags", "redis-server")

# The precompiled headers name the folder of the project. In a copy make gets this, and compiles without
# them.
MAKE_ARGUMENTS = ("CLANG_PCH=", "TEST_FLAGS=")


def make(root: pathlib.Path, folder: pathlib.Path, names: collections.abc.Iterable[str]) -> None:
    """Makes the folder anew, with these files of `root` and their times, and with the objects."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, folder / name)
    (folder / "build").mkdir(parents=True, exist_ok=True)
    for name in BUILT:
        if (root / "build" / name).exists():
            subprocess.run(["cp", "-a", "--reflink=auto", root / "build" / name, folder / "build"],
                           check=True)

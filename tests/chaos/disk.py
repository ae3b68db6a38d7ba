"""The data folder of a server, and faults of its disk: no space, slow syncs, a folder that is moved away or
replaced. As root each folder that gets full is on a tmpfs of its own, in a mount namespace of the test: the
other processes of the machine do not see these mounts, and they end with the test's processes. Without root
a limit of the size of files (RLIMIT_FSIZE) takes the place of the full disk."""
import contextlib
import ctypes
import os
import resource
import shutil
import tempfile
import threading
import time

SIZE_MIB = 64
HOWS = ("away", "empty", "link", "copy", "foreign")
SAVED = "all data is saved in the new folder"
ENTERED = " was replaced"
NEVER = "18014398509481983"
UNNOTICED_S = 3  # after this time a server has noticed that its folder is another one


def libc_call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def make_private_mounts():
    """Moves this process to a mount namespace of its own, and returns an empty text, or the reason why the
    test cannot mount."""
    new_namespace, recursive, private = 0x20000, 1 << 14, 1 << 18
    try:
        libc_call("unshare", new_namespace)
        libc_call("mount", None, b"/", None, recursive | private, None)
        with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
            mount_tmpfs(folder)
            unmount(folder)
    except OSError as why:
        return str(why)
    return ""


def mount_tmpfs(path):
    libc_call("mount", b"tmpfs", os.fsencode(path), b"tmpfs", 0, f"size={SIZE_MIB}m".encode())


def unmount(path):
    detach = 2
    with contextlib.suppress(OSError):
        libc_call("umount2", os.fsencode(path), detach)


def remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def copy(folder, to):
    """Copies the files of a folder that a server uses: it may remove a file before its copy. Returns False
    if the copy is not complete, because the disk is full."""
    to.mkdir(mode=0o700)
    try:
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(folder / name, to / name)
    except OSError:
        remove(to)
        return False
    return True


class Disk:
    def __init__(self, base, mounted):
        self.base, self.path = base, base / "data"
        self.delay = base.with_suffix(".delay")
        self.mounted = mounted
        self.server = None
        self.lock = threading.RLock()
        self.original = None     # the path of the folder that was moved away
        self.returned_at = None  # the time at which the original was put back at its place
        self.seen = (0, 0)       # numbers of SAVED and ENTERED in the log before
        self.id = ""             # of the server, in its folder
        self.number = 0
        self.full = 0         # number of faults that fill the disk
        base.mkdir()
        if mounted:
            mount_tmpfs(base)

    def close(self):
        if self.mounted:
            unmount(self.base)

    # A full disk.

    def fill(self, pid, free):
        """Fills the disk except for `free` bytes."""
        self.full += 1
        if not self.mounted:
            soft = max((path.stat().st_size for path in self.path.glob("journal.*")), default=0) + free
            return self.limit(pid, soft)
        with open(self.base / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            room = os.statvfs(self.base)
            os.posix_fallocate(filler.fileno(), 0, max(room.f_bavail * room.f_frsize - free, 1))
            while free == 0:
                filler.seek(0, os.SEEK_END)
                filler.write(bytes(4096))
        return None

    def empty(self, pid):
        self.full -= 1
        if not self.mounted:
            self.limit(pid, resource.RLIM_INFINITY)
        with contextlib.suppress(FileNotFoundError):
            (self.base / "filler").unlink()

    @staticmethod
    def limit(pid, size):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    # Slow syncs.

    def slow_down(self, delay_ms):
        self.delay.write_text(str(delay_ms), "utf-8")

    def is_failing(self):
        """Whether the server may fail to save its data."""
        return self.full > 0 or not self.is_settled()

    # A replaced folder.

    def replace(self, how, other):
        """Moves the folder away, and puts another one at its path. Returns False if the server does not
        run, has not yet saved its data after the fault before this one, or has no space for a copy."""
        with self.lock:
            if not self.is_settled() or not self.server.has_opened():
                return False
            self.number += 1
            new = self.base / f"new{self.number}"
            self.id = id_line(self.path)
            if how in ("copy", "foreign") and not copy(self.path if how == "copy" else other, new):
                return False
            self.seen = self.counts()
            self.original = self.base / f"original{self.number}"
            self.returned_at = None
            self.path.rename(self.original)
            if how == "empty":
                self.path.mkdir(mode=0o700)
            elif how == "link":
                new.mkdir(mode=0o700)
                self.path.symlink_to(new)
            elif how != "away":
                new.rename(self.path)
            return True

    def put_back(self):
        """Puts the original folder back at its path. The server saves its data there again if it has
        entered another one."""
        with self.lock:
            if self.is_settled() or self.returned_at is not None:
                return
            removed = self.base / f"removed{self.number}"
            if self.path.is_symlink() or self.path.exists():
                self.path.rename(removed)
            self.original.rename(self.path)
            self.returned_at = time.monotonic()
            if removed.exists():
                remove(removed)

    def is_settled(self):
        """Whether the server has saved its data after the last fault of this kind, or need not."""
        with self.lock:
            if self.original is None:
                return True
            saved, entered = self.counts()
            back = self.returned_at is not None and time.monotonic() > self.returned_at + UNNOTICED_S
            if saved > self.seen[0] or back and entered == self.seen[1]:
                self.forget()
            return self.original is None

    def forget(self):
        if self.returned_at is None:
            remove(self.original)
        self.original = self.returned_at = None

    def end_stop(self):
        """After a stop of the server: if the server has not begun to save its data in the new folder, puts
        the original one back, as the administrator must. Returns whether the server may have lost data: it
        had claimed the new folder, and its data is not yet there."""
        with self.lock:
            if self.is_settled():
                return False
            claimed = self.is_claimed()
            if not claimed:
                self.put_back()
            self.forget()
            return claimed

    def counts(self):
        text = self.server.text()
        return text.count(SAVED), text.count(ENTERED)

    def is_claimed(self):
        """A server that enters a folder first writes there that it may have lost locks without an end."""
        text = meta_of(self.path)
        return self.id in text and f"\nhorizon-boot-ms {NEVER}\n" in text


def meta_of(folder):
    try:
        return (folder / "meta").read_text("utf-8")
    except OSError:
        return ""


def id_line(folder):
    return next((line for line in meta_of(folder).split("\n") if line.startswith("id ")), "no id")

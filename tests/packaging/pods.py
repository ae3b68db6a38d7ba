"""Pods as processes: a pod has a network namespace with an address on a bridge, a process namespace in
which its server is process 1, and a root file system with the server, the libraries of this machine and the
volumes of the manifest. It runs the command of the manifest with the manifest's user, groups and rights,
and a thread sends its probes. tests/chaos/network.py makes the network. What it does not have: seccomp, and
limits of memory."""
import base64
import ctypes
import http.client
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

from harness import LIMIT_S, end_with_parent, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))

CLONE_NEWNET = 0x40000000
PROBE_DEFAULTS = {"periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3, "initialDelaySeconds": 0}


class Probe:
    """A probe of the manifest: HTTP GET to the pod's address."""

    def __init__(self, settings, ports):
        get = settings["httpGet"]
        self.path = get["path"]
        self.port = ports[get["port"]]
        for name, value in PROBE_DEFAULTS.items():
            setattr(self, name, settings.get(name, value))
        self.failures = 0
        self.next = time.monotonic() + self.initialDelaySeconds

    def send(self, address):
        """Sends the probe; returns whether it succeeded."""
        self.next = time.monotonic() + self.periodSeconds
        connection = http.client.HTTPConnection(address, self.port, timeout=self.timeoutSeconds)
        try:
            connection.request("GET", self.path)
            good = 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            good = False
        finally:
            connection.close()
        self.failures = 0 if good else self.failures + 1
        return good

    def failed(self):
        return self.failures >= self.failureThreshold


class Kubelet(threading.Thread):
    """Sends the probes of one pod from another node of the network. `ready_since` is None while the pod is
    not ready. `verdict` says why the kubelet would kill the container."""

    def __init__(self, container, address, space):
        super().__init__(daemon=True)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.startup, self.liveness, self.readiness = (
            Probe(container[name], ports) for name in ("startupProbe", "livenessProbe", "readinessProbe"))
        self.address = address
        self.space = space
        self.ended = threading.Event()
        self.ready_since = None
        self.verdict = None
        self.start()

    def run(self):
        with open(self.space, "rb") as space:
            if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) != 0:
                self.verdict = f"setns: {os.strerror(ctypes.get_errno())}"
                return
        while not self.startup.send(self.address):
            if self.startup.failed():
                self.verdict = "the startup probe failed"
                return
            if self.ended.wait(self.startup.periodSeconds):
                return
        while not self.ended.wait(max(0, min(self.readiness.next, self.liveness.next) - time.monotonic())):
            self.send_due()

    def send_due(self):
        now = time.monotonic()
        if self.readiness.next <= now:
            if self.readiness.send(self.address):
                self.ready_since = self.ready_since or time.monotonic()
            elif self.readiness.failed():
                self.ready_since = None
        if self.liveness.next <= now and not self.liveness.send(self.address) and self.liveness.failed():
            self.verdict = "the liveness probe failed"


def volume_files(name, spec, objects):
    """The files of a ConfigMap or Secret volume: their bytes by name, and their mode."""
    volume = next(volume for volume in spec["volumes"] if volume["name"] == name)
    if "configMap" in volume:
        kind, wanted, source = "ConfigMap", volume["configMap"]["name"], volume["configMap"]
    else:
        kind, wanted, source = "Secret", volume["secret"]["secretName"], volume["secret"]
    found = next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == wanted)
    decode = base64.b64decode if kind == "Secret" else str.encode
    return {file: decode(text) for file, text in found["data"].items()}, source.get("defaultMode", 0o644)


class Pod:
    """One pod of the StatefulSet. Its data volume outlives it."""

    def __init__(self, name, spec, objects, folder):
        self.name = name
        self.spec = spec
        self.container = spec["containers"][0]
        self.group = spec["securityContext"]["fsGroup"]
        self.root = folder / f"{name}-root"
        self.root.mkdir()
        self.log_path = folder / f"{name}.log"
        self.mounts = [self.make_volume(mount, objects, folder) for mount in self.container["volumeMounts"]]
        self.process = self.server = self.kubelet = None

    def make_volume(self, mount, objects, folder):
        """Makes the folder of a volume as the kubelet does, with the group of the pod."""
        volume = folder / f"{self.name}-{mount['name']}"
        volume.mkdir()
        if mount["name"] == "data":
            os.chown(volume, 0, self.group)
            volume.chmod(0o2775)
        else:
            files, mode = volume_files(mount["name"], self.spec, objects)
            for file, text in files.items():
                (volume / file).write_bytes(text)
                os.chown(volume / file, 0, self.group)
                (volume / file).chmod(mode)
        return volume, mount["mountPath"], mount.get("readOnly", False)

    def data(self):
        return next(volume for volume, path, _ in self.mounts if path == "/data")

    def script(self, programs):
        """The shell script that makes the root file system and becomes the server."""
        root = shlex.quote(str(self.root))
        lines = ["set -e", "mount --make-rprivate /", f"mount -t tmpfs -o mode=755 pod {root}",
                 f"cd {root}",
                 "mkdir -p usr/bin usr/lib usr/lib64 proc dev tmp",
                 "ln -s usr/lib lib", "ln -s usr/lib64 lib64", "ln -s usr/bin bin",
                 "for d in usr/lib usr/lib64; do mount --bind /$d $d; mount -o remount,ro,bind $d; done",
                 "mount -t proc -o nosuid,nodev,noexec proc proc",
                 "for d in null urandom; do touch dev/$d; mount --bind /dev/$d dev/$d; done"]
        for program in (*programs, shutil.which("setpriv")):
            target = f"usr/bin/{pathlib.Path(program).name}"
            lines += [f"touch {target}", f"mount --bind {shlex.quote(str(program))} {target}",
                      f"mount -o remount,ro,bind {target}"]
        for volume, path, read_only in self.mounts:
            lines += [f"mkdir -p .{path}", f"mount --bind {shlex.quote(str(volume))} .{path}"]
            lines += [f"mount -o remount,ro,bind .{path}"] * read_only
        if self.container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append("mount -o remount,ro .")
        command = [*self.container["command"], *self.container.get("args", [])]
        return "\n".join(lines + [f"exec chroot . {shlex.join(self.rights() + command)}"])

    def rights(self):
        """setpriv with the user, the groups and the rights of the security contexts."""
        context = self.spec["securityContext"]
        own = self.container["securityContext"]
        words = ["/usr/bin/setpriv", f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}",
                 f"--groups={context['fsGroup']}"]
        if own["capabilities"]["drop"] == ["ALL"]:
            words += ["--inh-caps=-all", "--bounding-set=-all"]
        if own["allowPrivilegeEscalation"] is False:
            words.append("--no-new-privs")
        return [*words, "--"]

    def start(self, programs, inside, address, kubelet_space):
        """Starts the container; `inside` are the words that enter the pod's network."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*inside, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                 self.script(programs)],
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)
        self.server = int(until(self.child))
        self.kubelet = Kubelet(self.container, address, kubelet_space)

    def child(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} did not start: {self.log()}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return children.read_text().strip()

    def log(self):
        return self.log_path.read_text()[-3000:]

    def stop_probes(self):
        self.kubelet.ended.set()
        self.kubelet.join(LIMIT_S)
        if self.kubelet.verdict:
            raise AssertionError(f"{self.name}: {self.kubelet.verdict}: {self.log()}")

    def stop(self):
        """Deletes the pod: SIGTERM, and the grace period. Returns the exit status of the server."""
        self.stop_probes()
        os.kill(self.server, signal.SIGTERM)
        return self.process.wait(self.spec["terminationGracePeriodSeconds"])

    def kill(self):
        self.stop_probes()
        os.kill(self.server, signal.SIGKILL)
        self.process.wait(LIMIT_S)

    def wait_ready(self, seconds):
        """Waits until the pod has been ready for this time: it is available then."""
        def available():
            if self.kubelet.verdict or self.process.poll() is not None:
                why = self.kubelet.verdict or "the server ended"
                raise AssertionError(f"{self.name}: {why}: {self.log()}")
            since = self.kubelet.ready_since
            return since is not None and time.monotonic() - since >= seconds
        until(available)

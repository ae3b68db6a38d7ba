#!/usr/bin/python3
"""The manifests of packaging/kubernetes: they fit the Kubernetes API, and they work: three servers run as
the manifests say, in namespaces in place of pods (pods.py), while clients hold locks and servers are
replaced, killed and cut off. Needs root, kubectl and npm. The last line is "N passed, N failed, N
skipped"."""
import base64
import contextlib
import copy
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))
import harness  # noqa: E402
from debian import call  # noqa: E402
from harness import Skipped, end_with_parent, equal, run_tests, test, until  # noqa: E402
import manifests  # noqa: E402
from manifests import only  # noqa: E402
from pods import Pod  # noqa: E402
import network  # noqa: E402

SERVER = ROOT / os.environ.get("HOLDFAST_SERVER", "build/holdfast-server")
PROGRAMS = [SERVER, SERVER.with_name("holdfast")]
LOST, BUSY, UNAVAILABLE = 76, 3, 69  # exit statuses of holdfast run; BUSY is that of -E
TTL_S = 3
harness.TEST_LIMIT_S = 600


def objects_of(folder):
    copied = manifests.copy_to(folder)
    return manifests.render(copied), manifests.render(copied / "monitoring")


class Cluster:
    """The pods of the manifests, and a node for the kubelets and one for the clients."""

    def __init__(self, folder):
        if os.geteuid() != 0:
            raise Skipped("not root")
        self.folder = folder
        objects, self.monitoring = objects_of(folder)
        self.set = only(objects, "StatefulSet")["spec"]
        self.hosts = folder / "hosts"
        self.password = folder / "kubernetes/app-password"
        self.network, why = network.make_network()
        if isinstance(self.network, network.Loopback) or "partition" not in self.network.can:
            raise Skipped(f"no network namespaces with nft: {why}")
        self.network.add("kubelet")
        self.network.add("client")
        self.nodes = {}
        self.jobs = []
        self.pods = [Pod(f"holdfast-{i}", self.set["template"]["spec"], objects, folder)
                     for i in range(self.set["replicas"])]
        port = next(p["port"] for p in only(objects, "Service")["spec"]["ports"] if p["name"] == "lock")
        self.servers = ",".join(f"{pod.name}.{self.set['serviceName']}:{port}" for pod in self.pods)
        for pod in self.pods:
            self.place(pod)
        for pod in self.pods:
            self.run(pod)
        for pod in self.pods:
            pod.wait_ready(0)

    def place(self, pod):
        """Gives the pod a new node of the network and a new address, as Kubernetes does for each new pod.
        The old address does not answer any more."""
        number = len(self.network.nodes)
        self.network.add(f"pod{number}")
        self.nodes[pod.name] = f"pod{number}"
        text = "127.0.0.1 localhost\n" + "".join(
            f"{self.network.address(node)} {name}.{self.set['serviceName']}\n"
            for name, node in self.nodes.items())
        # The file stays the same one, because clients have mounted it.
        with open(self.hosts, "r+" if self.hosts.exists() else "w") as hosts:
            hosts.write(text)
            hosts.truncate()
        self.cut([])

    def cut(self, names):
        """The client cannot reach the pods with these names. Nodes of former pods are unplugged."""
        unplugged = [n for n in self.network.nodes if n.startswith("pod") and n not in self.nodes.values()]
        faults = [types.SimpleNamespace(kind="cable", node=node) for node in unplugged]
        pairs = [pair for name in names
                 for pair in (("client", self.nodes[name]), (self.nodes[name], "client"))]
        self.network.apply(faults + [types.SimpleNamespace(kind="partition", pairs=pairs)])

    def run(self, pod):
        node = self.nodes[pod.name]
        pod.start(PROGRAMS, self.network.inside(node), self.network.address(node),
                  network.SPACES / (self.network.prefix + "kubelet"))

    def client(self, verb, *words, servers=None, node="client"):
        """Starts `holdfast` in a node, where the names of the pods are known."""
        job = subprocess.Popen(
            [*self.network.inside(node), "unshare", "--mount", "sh", "-c",
             'mount --bind "$1" /etc/hosts; shift; exec "$@"', "sh", str(self.hosts),
             str(PROGRAMS[1]), verb, "--servers", servers or self.servers, "--user", "app",
             "--password-file", str(self.password), *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent)
        self.jobs.append(job)
        return job

    def ask(self, verb, *words, **options):
        """Runs `holdfast` to its end; returns the exit status and the output."""
        job = self.client(verb, *words, **options)
        out, err = job.communicate(timeout=harness.LIMIT_S)
        return job.returncode, out or err

    def holds(self, key):
        """Owner and token of the lock on each server, by the name of the pod; None where nobody holds it.
        The question comes from the kubelets' node, which is never cut off."""
        found = {}
        for pod, address in zip(self.pods, self.servers.split(",")):
            _, out = self.ask("list", "--json", servers=address, node="kubelet")
            listed = [lock for lock in json.loads(out) if lock["key"] == key]
            found[pod.name] = (listed[0]["owner"], listed[0]["token"]) if listed else None
        return found

    def is_held_everywhere(self, key, token):
        """Whether one owner has the lock on all servers, with this token or a larger one."""
        holds = self.holds(key).values()
        return None not in holds and len({owner for owner, _ in holds}) == 1 and min(
            held for _, held in holds) >= token

    def close(self):
        for job in self.jobs:
            job.kill()
            job.communicate()
        for pod in self.pods:
            if pod.process is not None and pod.process.poll() is None:
                pod.kubelet.ended.set()
                # Not pod.process: the server has other rights, and would survive its end.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pod.server, signal.SIGKILL)
                pod.process.wait()
        self.network.close()


@contextlib.contextmanager
def cluster(folder):
    made = Cluster.__new__(Cluster)
    made.jobs, made.pods, made.network = [], [], network.Loopback()
    try:
        made.__init__(folder)
        yield made
    finally:
        made.close()


class Holder:
    """`holdfast run` with a job that ends when the test says so. `token` is the token of its lock."""

    def __init__(self, made, key="job", ttl=f"{TTL_S}s"):
        self.cluster = made
        self.key = key
        self.done = made.folder / f"{key}-done"
        self.job = made.client("run", "--ttl", ttl, "--grace", "100ms", key, "--", "sh", "-c",
                               f'echo "$HOLDFAST_TOKEN"; while [ ! -e {self.done} ]; do sleep 0.05; done')
        line = self.job.stdout.readline()
        if not line:
            raise AssertionError(f"holdfast run: {self.job.communicate()[1]}")
        self.token = int(line)

    def check(self):
        """The job runs, and another client is rejected."""
        equal(self.job.poll(), None)
        equal(self.rival(), BUSY)

    def rival(self):
        return self.cluster.ask("run", "-n", "-q", "-E", str(BUSY), self.key, "--", "true")[0]

    def end(self):
        """Ends the job. The holder never lost the lock, and the next owner gets a larger token."""
        self.done.touch()
        out, err = self.job.communicate(timeout=harness.LIMIT_S)
        equal((self.job.returncode, out, err), (0, "", ""))
        status, out = self.cluster.ask("run", self.key, "--", "sh", "-c", 'echo "$HOLDFAST_TOKEN"')
        equal((status, int(out) > self.token), (0, True))


@test
def the_manifests_fit_the_api(folder):
    objects, monitoring = objects_of(folder)
    equal(manifests.type_errors(objects + monitoring, folder), [])


@test
def a_misspelt_field_does_not_fit_the_api(folder):
    objects, monitoring = objects_of(folder)
    wrong = copy.deepcopy(objects + monitoring)
    pod = only(wrong, "StatefulSet")["spec"]["template"]["spec"]
    pod["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    pod["containers"][0]["imagePullPolicy"] = "Sometimes"
    only(wrong, "PodDisruptionBudget")["spec"]["maxUnavailible"] = 1
    only(wrong, "ServiceMonitor")["spec"]["endpoints"][0]["intervall"] = "15s"
    errors = "\n".join(manifests.type_errors(wrong, folder))
    equal(sorted(re.findall(r"readOnlyRootFileSystem|Sometimes|maxUnavailible|intervall", errors)),
          ["Sometimes", "intervall", "maxUnavailible", "readOnlyRootFileSystem"])


@test
def the_manifests_fit_each_other(folder):
    """Selectors, ports, names of volumes and the limits of memory agree."""
    objects, monitoring = objects_of(folder)
    spec = only(objects, "StatefulSet")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    for item in (spec, only(objects, "PodDisruptionBudget")["spec"]):
        equal(item["selector"]["matchLabels"], labels)
    service = only(objects, "Service")
    equal(service["spec"]["selector"], labels)
    equal(service["metadata"]["name"], spec["serviceName"])
    equal(only(objects, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"], labels)
    monitor = only(monitoring, "ServiceMonitor")["spec"]
    equal(monitor["selector"]["matchLabels"], service["metadata"]["labels"])
    ports = {port["name"] for port in spec["template"]["spec"]["containers"][0]["ports"]}
    equal({port["targetPort"] for port in service["spec"]["ports"]}, ports)
    policy = only(objects, "NetworkPolicy")["spec"]["ingress"]
    equal({port["port"] for rule in policy for port in rule["ports"]}, ports)
    equal({point["port"] for point in monitor["endpoints"]} <= ports, True)
    claims = {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
    pod = spec["template"]["spec"]
    equal({mount["name"] for mount in pod["containers"][0]["volumeMounts"]},
          claims | {volume["name"] for volume in pod["volumes"]})


@test
def the_image_has_the_version_of_the_program(folder):
    objects, _ = objects_of(folder)
    image = only(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["image"]
    header = (ROOT / "src/core/base/version.h").read_text()
    version = re.search(r'kHoldfastVersion = "(.*)"', header).group(1)
    equal(image, f"holdfast:{version}")


@test
def the_alert_rules_have_one_source(folder):
    _, monitoring = objects_of(folder)
    source = manifests.yaml.safe_load((ROOT / "packaging/prometheus/alerts.yml").read_text())
    equal(only(monitoring, "PrometheusRule")["spec"], source)


@test
def the_passwords_are_random_and_are_kept(folder):
    copied = manifests.copy_to(folder)
    files = [copied / name for name in ("users.acl", "app-password", "monitoring/password")]
    texts = [file.read_text() for file in files]
    equal([file.stat().st_mode & 0o777 for file in files], [0o600] * 3)
    equal([bool(re.fullmatch("[0-9a-f]{48}", text)) for text in texts[1:]], [True, True])
    equal([line.split()[1] for line in texts[0].splitlines()], ["default", "app", "monitor"])
    again = subprocess.run([copied / "passwords.sh"], capture_output=True, text=True, check=False)
    equal((again.returncode, again.stderr),
          (1, "passwords.sh: users.acl exists; remove it to make new passwords\n"))
    equal([file.read_text() for file in files], texts)


@test
def metrics_need_the_password_of_the_monitor(folder):
    """A scrape with the login of the ServiceMonitor succeeds, and one without a login does not."""
    with cluster(folder) as made:
        monitor = only(made.monitoring, "Secret", "holdfast-monitor")["data"]
        login = ":".join(base64.b64decode(monitor[name]).decode() for name in ("username", "password"))
        where = f"http://{made.network.address(made.nodes['holdfast-0'])}:7380/metrics"
        for options, status in ((["--user", login], "200"), ([], "401")):
            equal(call(*made.network.inside("kubelet"), "curl", "-s", "-o", "/dev/null", "-w",
                       "%{http_code}", *options, where), status)


@test
def a_rolling_restart_does_not_lose_a_lock(folder):
    """Each pod is deleted and comes back with a new address, the one with the highest number first, as the
    StatefulSet does. The next one follows when it is available."""
    with cluster(folder) as made:
        holder = Holder(made)
        waiter = made.client("run", "--wait", "10m", holder.key, "--", "echo", "granted")
        for pod in reversed(made.pods):
            equal(pod.stop(), 0)
            holder.check()
            made.place(pod)
            made.run(pod)
            holder.check()
            pod.wait_ready(made.set["minReadySeconds"])
            holder.check()
            # While the holder has lost its lock on a pod, the waiter may have it there for a moment. Then
            # the pod gives the holder a larger token.
            until(lambda: made.is_held_everywhere(holder.key, holder.token))
        equal(waiter.poll(), None)
        waiter.kill()
        holder.end()


@test
def a_killed_pod_keeps_its_locks(folder):
    """The container starts again in its pod, on its volume, and has the lock without a renewal: the holder
    is cut off from it. It grants locks at once."""
    with cluster(folder) as made:
        holder = Holder(made, ttl="1m")
        for pod in made.pods:
            pod.kill()
            holder.check()
            made.cut([pod.name])
            made.run(pod)
            pod.wait_ready(0)
            equal(made.holds(holder.key)[pod.name][1], holder.token)
            made.cut([])
            until(lambda: made.ask("ping")[1].count("no answer") == 0)
        holder.end()


@test
def a_client_that_is_cut_off_loses_its_lock_before_another_one_has_it(folder):
    with cluster(folder) as made:
        holder = Holder(made, key="first")
        made.cut([made.pods[0].name])
        cut_at = time.monotonic()
        until(lambda: time.monotonic() - cut_at > 2 * TTL_S)
        holder.check()
        made.cut([pod.name for pod in made.pods])
        equal(holder.job.wait(harness.LIMIT_S), LOST)
        equal(holder.rival(), UNAVAILABLE)
        made.cut([])
        status, out = made.ask("run", holder.key, "--", "sh", "-c", 'echo "$HOLDFAST_TOKEN"')
        equal((status, int(out) > holder.token), (0, True))


@test
def a_pod_has_no_rights_and_writes_to_its_volume_only(folder):
    with cluster(folder) as made:
        for pod in made.pods:
            process = pathlib.Path(f"/proc/{pod.server}")
            status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
            user = str(made.set["template"]["spec"]["securityContext"]["runAsUser"])
            equal(set(status["Uid"].split()) | set(status["Gid"].split()), {user})
            equal({status[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")}, {"0" * 16})
            equal(status["NoNewPrivs"], "1")
            mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
            writable = [words[4] for words in mounts
                        if words[5].split(",")[0] == "rw" and not words[4].startswith(("/proc", "/dev/"))]
            equal(writable, ["/data"])
        equal(made.ask("ping")[0], 0)


@contextlib.contextmanager
def test_folder():
    with tempfile.TemporaryDirectory(prefix="holdfast-kubernetes-") as folder:
        yield pathlib.Path(folder)


if __name__ == "__main__":
    run_tests(test_folder)

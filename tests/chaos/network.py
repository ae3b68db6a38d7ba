"""A private network of the test: a bridge in a network namespace, and for each node a namespace with one
cable to the bridge. The network of the machine does not change. All names begin with PREFIX and the test's
process id. The next test removes the namespaces of a test that was killed."""
import os
import pathlib
import shutil
import subprocess

PREFIX = "holdfast-chaos-"
SPACES = pathlib.Path("/run/netns")


def call(*words, text=None):
    done = subprocess.run(words, input=text, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stdout.strip()}")
    return done.stdout


def remove_left_behind():
    for path in SPACES.glob(f"{PREFIX}*"):
        owner = path.name[len(PREFIX):].split("-")[0]
        if not pathlib.Path("/proc", owner).exists():
            subprocess.run(["ip", "netns", "del", path.name], check=False)


class Loopback:
    """For a machine without namespaces: all nodes use 127.0.0.1, without faults of the network."""

    can = frozenset()

    def address(self, _):
        return "127.0.0.1"

    def inside(self, _):
        return []

    def apply(self, _):
        pass

    def close(self):
        pass


class Network:
    """The nodes, by names of at most 12 bytes. The caller must call close()."""

    def __init__(self):
        self.prefix = f"{PREFIX}{os.getpid()}-"
        self.hub = self.prefix + "hub"
        self.nodes = []
        self.slow = set()
        self.can = set()
        try:
            self.make_space(self.hub)
            call("ip", "-n", self.hub, "link", "add", "br0", "type", "bridge")
            call("ip", "-n", self.hub, "link", "set", "br0", "up")
            self.find_out()
        except OSError:
            self.close()
            raise

    def find_out(self):
        """Finds the faults that this kernel and the installed tools support."""
        self.can = {"cable"}
        if shutil.which("nft"):
            try:
                self.filter("iifname \"x\" numgen random mod 100 < 1 drop")
                self.can |= {"partition", "oneway", "split", "loss"}
            except OSError:
                pass
        for kind, words in (("delay", ("netem", "delay", "1ms")),
                            ("slow", ("tbf", "rate", "64kbit", "burst", "2000", "limit", "60000"))):
            try:
                call("tc", "-n", self.hub, "qdisc", "replace", "dev", "br0", "root", *words)
                call("tc", "-n", self.hub, "qdisc", "del", "dev", "br0", "root")
                self.can.add(kind)
            except OSError:
                pass

    def make_space(self, name):
        call("ip", "netns", "add", name)
        call("ip", "-n", name, "link", "set", "lo", "up")

    def add(self, node):
        self.nodes.append(node)
        space = self.prefix + node
        self.make_space(space)
        call("ip", "-n", self.hub, "link", "add", node, "type", "veth", "peer", "name", "eth0",
             "netns", space)
        call("ip", "-n", self.hub, "link", "set", node, "master", "br0", "up")
        call("ip", "-n", space, "address", "add", self.address(node) + "/24", "dev", "eth0")
        call("ip", "-n", space, "link", "set", "eth0", "up")

    def address(self, node):
        return f"10.77.0.{self.nodes.index(node) + 1}"

    def inside(self, node):
        """The words before a command that must run in the node. They are replaced by the command (exec), so
        the pid stays the same."""
        return ["nsenter", f"--net={SPACES / (self.prefix + node)}"]

    def filter(self, rules):
        call(*self.inside("hub"), "nft", "-f", "-", text=(
            "table bridge chaos\ndelete table bridge chaos\ntable bridge chaos { chain c { "
            f"type filter hook forward priority 0; policy accept;\n{rules}\n}}\n}}\n"))

    def apply(self, faults):
        """Makes the network as bad as these faults, and no worse: objects with kind and, of partition (no
        frame comes through), oneway, split and loss (`percent` of them are lost), `pairs` of (from, to); of
        cable (unplugged), delay and slow (64 kbit/s, of which a queue becomes a delay), `node`."""
        rules = []
        for fault in faults:
            if fault.kind in ("partition", "oneway", "split", "loss"):
                lost = f"numgen random mod 100 < {fault.percent} " if fault.kind == "loss" else ""
                rules += [f"iifname \"{a}\" oifname \"{b}\" {lost}drop" for a, b in fault.pairs]
        if "partition" in self.can:
            self.filter("\n".join(rules))
        unplugged = {fault.node for fault in faults if fault.kind == "cable"}
        for node in self.nodes:
            call("ip", "-n", self.hub, "link", "set", node, "down" if node in unplugged else "up")
        self.slow_down({(fault.node, fault.kind) for fault in faults if fault.kind in ("delay", "slow")})

    def cut(self, pairs, mute=(), loss=0):
        """Drops all IP packets of these pairs of (from, to), and no others. ARP goes on, so that no sender
        gets an error: the packets are lost without a word. Of the nodes `mute` no packet that ends a
        connection gets through, so their peers keep connections to processes that have ended. `loss`: so
        many of 100 other packets are lost."""
        rules = []
        if pairs:
            elements = ", ".join(f'"{a}" . "{b}"' for a, b in sorted(pairs))
            rules.append(f"ether type ip iifname . oifname {{ {elements} }} drop")
        if mute:
            names = ", ".join(f'"{node}"' for node in sorted(mute))
            rules.append(f"ether type ip iifname {{ {names} }} tcp flags & (fin | rst) != 0 drop")
        if loss:
            rules.append(f"ether type ip numgen random mod 100 < {loss} drop")
        self.filter("\n".join(rules))

    def slow_down(self, wanted):
        """Slows the hub's side of the cable: messages to the node are late, messages from it are not."""
        for node, _ in self.slow - wanted:
            call("tc", "-n", self.hub, "qdisc", "del", "dev", node, "root")
        for node, kind in wanted - self.slow:
            words = (("netem", "delay", "120ms", "100ms") if kind == "delay" else
                     ("tbf", "rate", "64kbit", "burst", "2000", "limit", "60000"))
            call("tc", "-n", self.hub, "qdisc", "replace", "dev", node, "root", *words)
        self.slow = wanted

    def close(self):
        for path in SPACES.glob(self.prefix + "*"):
            subprocess.run(["ip", "netns", "del", path.name], check=False)


def make_network():
    """The network, and the reason if it cannot have faults; an empty reason if it can."""
    if not shutil.which("ip") or not shutil.which("nsenter"):
        return Loopback(), "no iproute2 here"
    remove_left_behind()
    try:
        return Network(), ""
    except OSError as why:
        return Loopback(), str(why)

"""The faults and their times, drawn from a seed before the run begins. So a seed always gives the same
faults at the same moments, independent of the servers and clients."""
import random
from dataclasses import dataclass, field

from disk import HOWS

NETWORK = ("partition", "oneway", "split", "loss", "cable", "delay", "slow")
RESTART = ("kill", "term", "early", "rolling")
PROCESS = (*RESTART, "stop", "kill client", "stop client")
CLOCK = ("clock", "clock client")
DISK = ("full", "fsync", "folder")
KINDS = NETWORK + PROCESS + CLOCK + DISK
WEIGHTS = {"kill": 8, "term": 4, "early": 4, "stop": 3, "partition": 2, "clock": 2, "loss": 2, "full": 2,
           "fsync": 2, "folder": 3}
LONGEST_S = {"kill": 1.5, "term": 4.5, "early": 1.5, "kill client": 1, "cable": 2, "fsync": 8}
LAST_S = {"full": 3, "fsync": 3, "folder": 3, "early": 3, "rolling": 3, "kill": 1, "term": 1}  # to heal
HOUR = 3600
TRIES = 2  # to find a fault that is possible at a moment


@dataclass
class Fault:
    kind: str
    begin: float  # seconds after the beginning
    end: float
    node: str = ""
    pairs: list = field(default_factory=list)
    percent: int = 0
    ahead: int = 0  # seconds
    how: str = ""   # early: the first signal; folder: the folder at the place of the server's own
    again: list = field(default_factory=list)  # early: more stops, as (seconds after the start, signal)
    away: float = 0  # rolling: the time between the stop and the start of each server
    order: list = field(default_factory=list)  # rolling: the servers
    free: int = 0   # full: bytes that remain on the disk
    delay: int = 0  # fsync: ms


def pairs_of(one, other, both=True):
    return [(a, b) for a in one for b in other if a != b] + ([(b, a) for a in one for b in other if a != b]
                                                              if both else [])


def jump(rng, client):
    """Seconds by which a clock jumps. A server's clock may be days off. A client's jump is less than a day:
    servers reject tokens that are more than a day ahead, so the client would get no lock."""
    sign = rng.choice((-1, 1))
    return sign * rng.choice((1, 60, HOUR, 9 * HOUR) if client else (1, 60, HOUR, 20 * HOUR, 72 * HOUR))


def choose_kinds(seed, kinds):
    """A random part of the kinds: so rare combinations are frequent, as few other faults disturb them."""
    rng = random.Random(f"kinds {seed}")
    least = rng.sample(list(kinds), min(3, len(kinds)))
    return [kind for kind in kinds if rng.random() < 0.5 or kind in least]


def early_stops(rng):
    """More stops after the first: while the server loads its folder, or during its recovery wait."""
    return [(rng.uniform(0, rng.choice((0.2, 0.6, 3))), rng.choice(("kill", "term")))
            for _ in range(rng.randint(1, 4))]


def make_disk_fault(rng, fault, servers):
    fault.node = rng.choice(servers)
    if fault.kind == "full":
        fault.free = rng.choice((0, rng.randrange(1, 4096), rng.randrange(1 << 14)))
    elif fault.kind == "fsync":
        fault.delay = rng.choice((100, 500, 2000))
    else:
        others = [server for server in servers if server != fault.node]
        fault.how = rng.choice(HOWS if others else HOWS[:-1])
        fault.order = [rng.choice(others)] if fault.how == "foreign" else []


def make_fault(rng, kind, begin, servers, clients):
    nodes = servers + clients
    fault = Fault(kind, begin, begin + rng.uniform(0.1, LONGEST_S.get(kind, 4)))
    if kind in ("term", "kill") and rng.random() < 0.5:  # holds outlive a short restart
        fault.end = begin + rng.uniform(0.01, 0.3)
    if kind == "rolling":
        fault.order = rng.sample(servers, len(servers))
        fault.away = rng.choice((rng.uniform(0, 0.5), rng.uniform(0, 0.5), rng.uniform(3, 4)))
        fault.end = begin + len(servers) * (fault.away + 0.3)
    elif kind in DISK:
        make_disk_fault(rng, fault, servers)
    elif kind == "early":
        fault.node, fault.how = rng.choice(servers), rng.choice(("kill", "term"))
        fault.again = early_stops(rng)
        fault.end += sum(after for after, _ in fault.again)
    elif kind in PROCESS + CLOCK:
        fault.node = rng.choice(clients if "client" in kind else servers)
        fault.ahead = jump(rng, "client" in kind) if kind in CLOCK else 0
    elif kind == "partition":
        server = rng.choice(servers)
        fault.pairs = pairs_of([server], nodes)
    elif kind == "split":
        some = rng.sample(nodes, len(nodes) // 2)
        fault.pairs = pairs_of(some, [node for node in nodes if node not in some])
    elif kind == "oneway":
        fault.pairs = pairs_of([rng.choice(nodes)], nodes, both=False)
        if rng.random() < 0.5:
            fault.pairs = [(b, a) for a, b in fault.pairs]
    elif kind == "loss":
        fault.percent = rng.choice((5, 20, 50))
        fault.pairs = pairs_of(rng.sample(nodes, 2), nodes, both=rng.random() < 0.5)
    else:
        fault.node = rng.choice(nodes)
    return fault


def make_schedule(seed, seconds, servers, clients, kinds):
    """The faults in order of their begin. Faults of one process do not overlap, and faults of one kind at a
    node do not overlap."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS if kind in kinds]
    weights = [WEIGHTS.get(kind, 1) for kind in kinds]
    busy = {}
    faults = []
    at = 0.0
    while kinds and (at := at + rng.uniform(0.05, 1.0)) < seconds:
        for kind in rng.choices(kinds, weights, k=TRIES):
            fault = make_fault(rng, kind, at, servers, clients)
            fault.end = min(fault.end, seconds - LAST_S.get(kind, 0))
            about = (fault.node, "process" if kind in PROCESS else kind)
            alone = fault.node or kind == "rolling"
            if fault.end > at and (not alone or busy.get(about, 0) < at):
                faults.append(fault)
                busy[about] = fault.end + 0.5
                break
    return faults

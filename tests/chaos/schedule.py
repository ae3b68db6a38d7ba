"""The faults and their times, drawn from a seed before the run begins. So a seed always gives the same
faults at the same moments, independent of the servers and clients."""
import random
from dataclasses import dataclass, field

NETWORK = ("partition", "oneway", "split", "loss", "cable", "delay", "slow")
PROCESS = ("kill", "stop", "kill client", "stop client")
CLOCK = ("clock", "clock client")
KINDS = NETWORK + PROCESS + CLOCK
WEIGHTS = {"kill": 8, "stop": 3, "partition": 2, "clock": 2, "loss": 2}
LONGEST_S = {"kill": 1.5, "kill client": 1, "cable": 2}
HOUR = 3600


@dataclass
class Fault:
    kind: str
    begin: float  # seconds after the beginning
    end: float
    node: str = ""
    pairs: list = field(default_factory=list)
    percent: int = 0
    ahead: int = 0  # seconds


def pairs_of(one, other, both=True):
    return [(a, b) for a in one for b in other if a != b] + ([(b, a) for a in one for b in other if a != b]
                                                              if both else [])


def jump(rng, client):
    """Seconds by which a clock jumps. A server's clock may be days off. A client's jump is less than a day:
    servers reject tokens that are more than a day ahead, so the client would get no lock."""
    sign = rng.choice((-1, 1))
    return sign * rng.choice((1, 60, HOUR, 9 * HOUR) if client else (1, 60, HOUR, 20 * HOUR, 72 * HOUR))


def make_fault(rng, kind, begin, servers, clients):
    nodes = servers + clients
    fault = Fault(kind, begin, begin + rng.uniform(0.1, LONGEST_S.get(kind, 4)))
    if kind in PROCESS + CLOCK:
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
        kind = rng.choices(kinds, weights)[0]
        fault = make_fault(rng, kind, at, servers, clients)
        fault.end = min(fault.end, seconds)
        about = (fault.node, "process" if kind in PROCESS else kind)
        if not fault.node or busy.get(about, 0) < at:
            faults.append(fault)
            busy[about] = fault.end + 0.5
    return faults

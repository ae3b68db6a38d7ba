"""The patterns of cuts (cuts.py): which packets between groups of clients and servers are lost, and what
happens to the processes meanwhile. All of it follows from a seed. In each pattern the contenders, except
the guests, reach a majority of the servers at any time, so the lock must go on from one to the next."""
import random
from dataclasses import dataclass
from typing import Callable, Optional

BOTH, REQUESTS, ANSWERS = "both", "requests", "answers"  # which way is cut
GROUPS = 3
HALF, THIRD = 1 / 2, 1 / 3
SHIFT = 0.37  # groups change at different moments: of their period


@dataclass
class Scene:
    """The nodes of a run, and how long it lasts after the cut. A guest is a group of its own."""
    servers: list
    clients: list
    guests: list
    seed: int
    seconds: float

    def group(self, client):
        names = self.guests if client in self.guests else self.clients
        return names.index(client) % GROUPS

    def minority(self):
        return (len(self.servers) - 1) // 2


# Which servers a group misses at a time. Each of these makes a function of (scene, group, time).

def each(way=BOTH):
    """Each group misses another minority."""
    def missing(scene, group, _):
        return [((group + i) % len(scene.servers), way) for i in range(scene.minority())]
    return missing


def first(groups):
    """The first groups miss the first server, in whose queue earlier clients waited."""
    return lambda scene, group, _: [(0, BOTH)] if group < groups else []


def flapping(period):
    """Each group misses another random minority in each period."""
    def missing(scene, group, time):
        rng = random.Random(f"{scene.seed} {group} {int(time / period + group * SHIFT)}")
        return [(i, BOTH) for i in rng.sample(range(len(scene.servers)), scene.minority())]
    return missing


def all_but_minority(way=BOTH):
    """Each group reaches another minority only."""
    def missing(scene, group, _):
        reached = [(group + i) % len(scene.servers) for i in range(scene.minority())]
        return [(i, way) for i in range(len(scene.servers)) if i not in reached]
    return missing


def no_answers(scene, *_):
    return [(i, ANSWERS) for i in range(len(scene.servers))]


def by_turns(period, missing):
    """Cut in one period, whole in the next."""
    return lambda scene, group, time: (
        missing(scene, group, time) if int(time / period + group * SHIFT) % 2 == 0 else [])


# What happens to processes: lists of (time after the cut, what Trial does, arguments).

def restarts(scene, period=3.0, away=0.3):
    """The servers restart in turn, with their data, by SIGTERM and by SIGKILL."""
    events, at, number = [], 0.0, 0
    while at + away < scene.seconds:
        server = scene.servers[number % len(scene.servers)]
        events += [(at, "end_server", server, "term" if number % 2 else "kill"),
                   (at + away, "begin_server", server)]
        at, number = at + period, number + 1
    return events


def silences(scene, period=2.0, silent=1.2):
    """The servers stop in turn (SIGSTOP): their connections stay open without an answer."""
    events, at, number = [], 0.0, 0
    while at + silent < scene.seconds:
        server = scene.servers[number % len(scene.servers)]
        events += [(at, "pause", server), (at + silent, "resume", server)]
        at, number = at + period, number + 1
    return events


def silent_servers(scene):
    """A minority of the servers stops for good."""
    return [(0.0, "pause", server) for server in scene.servers[:scene.minority()]]


def vanishing(scene, period=2.5):
    """The guests vanish in turn, with the lock and at a random moment, and others take their places."""
    rng = random.Random(f"vanishing {scene.seed}")
    events, at, number = [], 0.0, 0
    while at + 1.0 < scene.seconds:
        guest = scene.guests[number % len(scene.guests)]
        how = "kill_with_lock" if number % 2 else "kill"
        events += [(at + rng.uniform(0, 0.2), how, guest), (at + 1.5, "replace", guest)]
        at, number = at + period, number + 1
    return events


def pausing(scene, period=2.5):
    """The guests stop in turn (SIGSTOP) for longer than a TTL, with the lock and at a random moment."""
    events, at, number = [], 0.0, 0
    while at + 1.6 < scene.seconds:
        guest = scene.guests[number % len(scene.guests)]
        events += [(at, "pause" if number % 2 else "pause_with_lock", guest), (at + 1.6, "resume", guest)]
        at, number = at + period, number + 1
    return events


def all_guests(event):
    return lambda scene: [(0.0, event, guest) for guest in scene.guests]


def leftovers(scene):
    """A minority of the servers has a hold of a client that does not exist any more."""
    return [(0.0, "leave_hold", server) for server in scene.servers[:scene.minority()]]


def together(*makers):
    return lambda scene: sorted((event for make in makers for event in make(scene)),
                                key=lambda event: event[0])


@dataclass
class Pattern:
    name: str
    text: str                             # of the table
    missing: Optional[Callable] = None    # by the groups, and by guests without `guest_missing`
    guests: int = 0                       # more contenders, whose waits and shares are not judged
    guest_missing: Optional[Callable] = None
    events: Callable = lambda scene: []
    mute: str = ""     # servers or guests: no packet of these that ends a connection gets through
    loss: int = 0      # percent of all packets
    readers: int = 0   # percent of all requests that are for a shared lock
    rate: float = HALF  # the part of the rate before the cut that must remain; 0: only safety is judged
    forgets: bool = False  # the servers keep no data, and wait after a restart until all holds have expired

    def pairs(self, scene, time):
        """The pairs of nodes (from, to) whose packets are lost at this time after the cut."""
        lost = set()
        for client in scene.clients + scene.guests:
            guest = client in scene.guests and self.guest_missing
            missing = self.guest_missing if guest else self.missing
            for number, way in missing(scene, scene.group(client), time) if missing else ():
                server = scene.servers[number]
                lost |= {(client, server)} if way != ANSWERS else set()
                lost |= {(server, client)} if way != REQUESTS else set()
        return lost


PATTERNS = [
    Pattern("none", "no cut"),
    Pattern("each", "each group misses another minority", each()),
    Pattern("two", "two groups miss one server", first(2)),
    Pattern("one", "one group misses one server", first(1)),
    Pattern("requests", "each, only the requests are lost", each(REQUESTS)),
    Pattern("answers", "each, only the answers are lost", each(ANSWERS)),
    Pattern("flap-3", "other servers missing every 3 s", flapping(3.0)),
    Pattern("flap-0.7", "other servers missing every 0.7 s", flapping(0.7)),
    Pattern("flap-0.3", "other servers missing every 0.3 s", flapping(0.3)),
    Pattern("flap-0.15", "other servers missing every 0.15 s", flapping(0.15), rate=THIRD),
    Pattern("minority", "three guests reach a minority only", guests=3, guest_missing=all_but_minority()),
    Pattern("each-minority", "each, and such guests", each(), 3, all_but_minority()),
    Pattern("each-flapping", "each, and guests flap between minority and all", each(), 3,
            by_turns(0.35, all_but_minority())),
    Pattern("deaf", "four guests get no answer", guests=4, guest_missing=no_answers),
    Pattern("leftover", "dead holds on a minority", events=leftovers),
    Pattern("restarts", "each, servers restart in turn", each(), events=restarts),
    Pattern("restarts-mute", "restarts, connections stay open", events=restarts, mute="servers"),
    Pattern("restarts-empty", "restarts without memory", events=restarts, forgets=True),
    Pattern("silent", "a minority of servers stops for good", events=silent_servers),
    Pattern("silences", "servers stop in turn for 1.2 s", events=silences),
    Pattern("vanish", "each, guests vanish with the lock", each(), 3, events=vanishing, mute="guests"),
    Pattern("pause", "each, guests stop with the lock", each(), 3, events=pausing),
    Pattern("half-vanish", "half of the clients vanish at once", guests=6, events=all_guests("kill"),
            mute="guests"),
    Pattern("half-stop", "half of the clients stop at once", guests=6, events=all_guests("pause")),
    Pattern("each-readers", "each, half of the requests are shared", each(), readers=50),
    Pattern("each-loss", "each, and 2 % of all packets are lost", each(), loss=2, rate=THIRD),
    Pattern("all", "flaps, loss, restarts, guests vanish: safety", flapping(0.9), 3,
            events=together(restarts, vanishing), mute="guests", loss=2, readers=20, rate=0),
]

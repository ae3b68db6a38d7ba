"""Operations of clients and their outcomes, as JSON lines: one at the invocation of an operation, one at
its return. The process and the id join them. An operation of a killed process has no line for its return.
Times are nanoseconds of CLOCK_MONOTONIC, which all processes of the machine share and no test sets.

    {"process": "c0.1", "id": 7, "op": "lock", "place": "s0", "key": "x0", "owner": "c0.1-7", "capacity": 1,
     "wait": 500, "ttl": 80, "invoked": 10}           capacity 0: shared; wait in ms, -1: no limit
    {"process": "c0.1", "id": 7, "queued": 12}        optional: the server replied that the request waits
    {"process": "c0.1", "id": 7, "returned": 20, "outcome": "ok", "token": 5, "valid": 90}

`op` is lock, renew, check (asks the server for the hold), valid (the client's own state) or unlock. `place`
is a server, or "quorum". `valid` is the time until which the client may rely on the hold. Outcomes:
- "ok"
- "refused". For a lock `why` has the reason; "busy": other owners hold the lock, or the wait ended.
- "failed": the request was never sent.
- "unknown", also for an operation without a return: it may have taken effect, or may still take effect.
The test's own operations are the faults of a server:
- "kill" and "term", from before the signal until the server has read its folder again; `launched` is the
  time of its start. `why` is "loses" if the server may have lost data, by the promises of its settings.
- "stop", from before SIGSTOP until SIGCONT.
- "disk", while the server cannot save its data, or must save them in another folder.
- "fsync", while each sync takes `delay` ms longer. `why` is "beside" if no answer need wait for syncs,
  except after a start, after a token above the reserve, and while the server saves its data in another
  folder.

The prober (prober.py) records "ping", a PING, and "late", a span in which the prober itself did not run.
`stalled` is the time for which the server waited for a processor during the PING.
"reserve" asks a server for its token reserve, and `token` is the answer.
The place of a PING is a server, or "null", the null server. Outcomes: "ok", any answer; "sent", no answer;
"closed", "down" or "full": the server closed the connection, did not listen, or did not accept it."""
import json
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Optional

NEVER = 1 << 62
FAULTS = ("kill", "term", "stop", "disk", "fsync")
PROBES = ("ping", "reserve", "late")


@dataclass
class Op:
    process: str
    id: int
    op: str
    place: str
    key: str = ""
    owner: str = ""
    capacity: int = 1
    wait: Optional[int] = None
    ttl: int = 0  # ms
    invoked: int = 0
    queued: Optional[int] = None
    returned: int = NEVER
    outcome: str = "unknown"
    why: str = ""
    token: int = 0
    valid: int = 0
    launched: int = NEVER
    delay: int = 0  # ms
    stalled: int = 0

    def __str__(self):
        end = "?" if self.returned == NEVER else f"{self.returned / 1e9:.6f}"
        return (f"{self.op} {self.key} by {self.owner} at {self.place}: {self.invoked / 1e9:.6f} to {end} "
                f"{self.outcome} {self.why} token {self.token} valid until {self.valid / 1e9:.6f}")


@dataclass
class History:
    ops: list = field(default_factory=list)      # of clients, in order of their invocation
    faults: list = field(default_factory=list)   # of servers
    probes: list = field(default_factory=list)   # of the prober, in order of their invocation

    @staticmethod
    def of(ops):
        ops = sorted(ops, key=lambda op: op.invoked)
        return History([op for op in ops if op.op not in FAULTS + PROBES],
                       [op for op in ops if op.op in FAULTS], [op for op in ops if op.op in PROBES])


class Recorder:
    """Writes each line to the file at once, so that a killed process loses no line."""

    def __init__(self, path, process):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.process = process
        self.number = 0
        self.lock = threading.Lock()

    def write(self, **event):
        os.write(self.file, (json.dumps({"process": self.process, **event}) + "\n").encode())

    def invoke(self, **event):
        """Records the begin of an operation. Returns its id and the time."""
        with self.lock:
            self.number += 1
            number = self.number
        now = time.monotonic_ns()
        self.write(id=number, invoked=now, **event)
        return number, now

    def returned(self, number, outcome, **event):
        self.write(id=number, returned=time.monotonic_ns(), outcome=outcome, **event)


def load(paths):
    """Reads a history. Ignores an incomplete line, which a kill has cut."""
    joined = {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    event = json.loads(line)
                    joined.setdefault((event["process"], event["id"]), {}).update(event)
    return History.of([Op(**event) for event in joined.values()])

#!/usr/bin/env python3
"""hand_overs.py RIVAL PORT CLIENTS SECONDS: clients of a rival, a thread and a connection each, that take
one lock and give it back in turn. Prints how often it changed hands a second, how often the clients that
were served least and most had it, and what share of a core all this took here. A wrong reply ends it."""
import json
import os
import sys
import threading
import time
import traceback

import etcd
import zookeeper
from servers import until

CLIENTS = {"etcd": etcd.Client, "ZooKeeper": zookeeper.Client}
WARM_S = 2


def take_turns(client, shares, number, held):
    while True:
        ticket = client.lock()
        if not held.acquire(blocking=False):
            raise RuntimeError("two clients hold the lock at the same time")
        shares[number] += 1
        time.sleep(0)  # so that a second holder, if there is one, comes to run
        held.release()
        client.unlock(ticket)


def work(*args):
    try:
        take_turns(*args)
    except BaseException:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
        os._exit(1)


def main():
    kind, port, clients, seconds = sys.argv[1], *map(int, sys.argv[2:])
    shares, held = [0] * clients, threading.Lock()
    for number in range(clients):
        client = CLIENTS[kind](port)
        threading.Thread(target=work, args=(client, shares, number, held), daemon=True).start()
    until(lambda: sum(shares) >= clients)
    time.sleep(WARM_S)
    before, began, busy = list(shares), time.monotonic(), time.process_time()
    time.sleep(seconds)
    gained = [now - then for now, then in zip(shares, before)]
    took, busy = time.monotonic() - began, time.process_time() - busy
    print(json.dumps({"rate": sum(gained) / took, "least": min(gained), "most": max(gained),
                      "busy": busy / took}), flush=True)
    os._exit(0)  # with threads that wait


if __name__ == "__main__":
    main()

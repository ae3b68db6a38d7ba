#!/usr/bin/env python3
"""hand_overs.py RIVAL PORT CLIENTS SECONDS: clients of a rival, each with a thread and a connection,
acquire and release one lock in turn. Prints the hand-overs a second, the fewest and the most grants of a
client, and the share of a core that the clients used. A wrong reply ends the program."""
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
        time.sleep(0)  # lets a second holder run, if there is one
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
    os._exit(0)  # ends threads that wait, too


if __name__ == "__main__":
    main()

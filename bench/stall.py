#!/usr/bin/env python3
"""Sends PINGs to SOCKET, half a millisecond apart, for as long as a snapshot is being made; prints the
longest wait for an answer in milliseconds, and which share took longer than one."""
import os
import socket
import sys
import time

try:  # it measures the server, not its own wait for a core
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
except PermissionError:
    pass
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])


def ask(words):
    client.sendall(words + b"\r\n")
    answer = client.recv(1 << 16)
    if not answer:
        sys.exit("the server has gone")
    return answer


waits = []
while b"rdb_bgsave_in_progress:1" in ask(b"INFO persistence"):
    for _ in range(20):
        began = time.perf_counter()
        ask(b"PING")
        waits.append(time.perf_counter() - began)
        time.sleep(0.0005)
print(f"{max(waits) * 1000:.2f} {sum(wait > 0.001 for wait in waits) * 100 / len(waits):.1f}%")

#!/usr/bin/env python3
"""Sends PINGs to SOCKET, a millisecond apart, for as long as a snapshot is being made; prints the longest
wait for an answer in milliseconds."""
import socket
import sys
import time

client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])


def ask(words):
    client.sendall(words + b"\r\n")
    answer = client.recv(1 << 16)
    if not answer:
        sys.exit("the server has gone")
    return answer


longest = 0.0
while b"rdb_bgsave_in_progress:1" in ask(b"INFO persistence"):
    for _ in range(20):
        began = time.perf_counter()
        ask(b"PING")
        longest = max(longest, time.perf_counter() - began)
        time.sleep(0.001)
print(f"{longest * 1000:.2f}")

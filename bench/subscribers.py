#!/usr/bin/env python3
"""subscribers.py SOCKET CLIENTS MESSAGES: subscribers that read and count messages. Prints "ready" when all
have subscribed to the channel `c`. Ends when each has received MESSAGES messages, or with an error after 20
s without a message."""
import selectors
import socket
import sys

path, clients, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SUBSCRIBED = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
MESSAGE = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"

selector = selectors.DefaultSelector()
missing = {}
for _ in range(clients):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n")
    if client.recv(len(SUBSCRIBED), socket.MSG_WAITALL) != SUBSCRIBED:
        sys.exit("a subscription failed")
    selector.register(client, selectors.EVENT_READ)
    missing[client] = messages * len(MESSAGE)
print("ready", flush=True)
while missing:
    ready = selector.select(20)
    if not ready:
        sys.exit(f"{len(missing)} subscribers of {clients} still miss messages")
    for key, _ in ready:
        data = key.fileobj.recv(1 << 20)
        missing[key.fileobj] -= len(data)
        if not data or missing[key.fileobj] < 0:
            sys.exit("a subscriber got less or more than was published")
        if missing[key.fileobj] == 0:
            del missing[key.fileobj]
            selector.unregister(key.fileobj)

#!/usr/bin/env python3
"""RESTORE of a small payload with a large value: the server answers other clients meanwhile. Prints each
failed test; the last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import select

from harness import SANITIZED, Client, Server, equal, run_tests, test, until

ELEMENTS = 500_000 if SANITIZED else 5_000_000
LEAST_PINGS = 20


def crc64(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x95AC9329AC4BC9B5 if n & 1 else 0)
        table.append(n)
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


def long_length(n):
    return b"\x80" + n.to_bytes(4, "big")


def list_of_equal_elements(number):
    """The payload of a list of the elements "a": one listpack, compressed by LZF to 1/88."""
    element = b"\x81a\x02"
    size = 6 + len(element) * number + 1
    head = size.to_bytes(4, "little") + b"\xff\xff" + element
    longest, rest = divmod(len(element) * (number - 1), 264)
    again = b"\xe0\xff\x02" * longest  # 264 bytes that repeat those 3 bytes before
    if rest:  # a multiple of 3; from 9 bytes on the length has a byte of its own
        again += bytes([0xE0, rest - 9, 2]) if rest >= 9 else bytes([rest - 2 << 5, 2])
    packed = bytes([len(head) - 1]) + head + again + b"\x00\xff"
    text = b"\xc3" + long_length(len(packed)) + long_length(size) + packed
    payload = b"\x12\x01\x02" + text + b"\x0a\x00"
    return payload + crc64(payload).to_bytes(8, "little")


def used_memory(client):
    return int(client.info("used_memory", "memory"))


@test
def other_clients_get_replies_meanwhile(folder):
    with Server(folder) as server:
        other = Client(server.path)
        payload = list_of_equal_elements(ELEMENTS)
        equal(len(payload) < ELEMENTS // 25, True)
        server.send(("RESTORE", "list", 0, payload), ("LLEN", "list"))
        pings = 0
        while not select.select([server.socket], [], [], 0)[0]:
            equal(other.ask_all([("PING",), ("EXISTS", "list")])[0], "PONG")
            pings += 1
        equal([server.reply(), server.reply()], ["OK", ELEMENTS])
        equal(pings >= LEAST_PINGS, True)
        other.close()
        server.kill()
    with Server(folder) as server:
        equal(server.ask_all([("LLEN", "list"), ("LINDEX", "list", -1)]), [ELEMENTS, b"a"])


@test
def a_killed_client_leaves_no_key_and_no_memory(folder):
    with Server(folder) as server:
        before = used_memory(server)
        restoring = Client(server.path)
        number = restoring.ask("CLIENT", "ID")
        restoring.send(("RESTORE", "list", 0, list_of_equal_elements(ELEMENTS)))
        until(lambda: used_memory(server) > before + 3 * ELEMENTS)
        equal(server.ask("CLIENT", "KILL", "ID", number), 1)
        until(lambda: used_memory(server) < before + (3 << 20))
        equal(server.ask("DBSIZE"), 0)
        restoring.close()


if __name__ == "__main__":
    run_tests()

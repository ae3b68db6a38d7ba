#!/usr/bin/env python3
"""Plays the transcripts of lock libraries (wire/*.txt) over sockets: against Holdfast, and stock Redis.

On both servers each reply must have the bytes of the transcript. Prints a table. The last line is
"N passed, N failed", counted in scenarios on each server. HOLDFAST_SERVER and REDIS_SERVER name the two
binaries.
    wire_test.py [--only NAME]... [--server redis|holdfast] [--rewrite]
"""
import argparse
import concurrent.futures
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from run import Server
from wire.player import Player, Wrong, reply_text
from wire.transcript import Transcript, matches

FOLDER = pathlib.Path(__file__).resolve().parent / "wire"
SERVERS = ("redis", "holdfast")
# Test data for the comparison itself: bytes and their text, texts that match and texts that do not.
PARSED = {b"$2\r\n\r\n\r\n": '"\\r\\n"', b"$-1\r\n": "nil", b"*-1\r\n": "nil-array",
          b"_\r\n": "null", b"=5\r\ntxt:x\r\n": 'txt"x"', b"$1\r\n\xff\r\n": r'"\xff"',
          b"*2\r\n:1\r\n>0\r\n": "[1, >[]]", b"%1\r\n+a\r\n#t\r\n": "{+a: true}"}
NOT_RESP = (b":01\r\n", b"*01\r\n:1\r\n", b"$02\r\nab\r\n")
ALIKE = [("5..9", "5"), ("5..9", "9"), ("[1, 5..9]", "[1, 7]"), ("-2..1", "-1"), ("-ERR ...", "-ERR no"),
         ('{..., "proto": 3, ...}', '{"a": 1, "proto": 3, "b": 2}')]
UNLIKE = [("5..9", "4"), ("5..9", "10"), ("5..9", '"7"'), ("5..9", "+7"), ("1", "11"),
          ("-ERR ...", '"-ERR no"'), ("nil", "nil-array"), ("a.c", "abc"), ("", "1"), ("[1]", "[1, 2]")]


class Result:
    """The result of one file on one server."""

    def __init__(self):
        self.passed, self.steps, self.faults = 0, 0, []

    def text(self):
        if self.faults:
            return f"{len(self.faults)} failed"
        return "ok" if self.steps else "not played"


def play_file(player, transcript, rewrite=None):
    result = Result()
    before = player.steps_played
    for scenario in transcript.scenarios:
        try:
            player.play(transcript, scenario, rewrite)
            result.passed += 1
        except Wrong as wrong:
            result.faults.append(f"{player.server}: {scenario.name}\n  {wrong}")
    result.steps = player.steps_played - before
    return result


def play_all(server_name, transcripts):
    """The results of all files on one server. If the server ends with an error, the last file fails."""
    results = []
    try:
        with Server(server_name == "holdfast") as server:
            for transcript in transcripts:
                player = Player(int(server.port), "H" if server.is_holdfast else "R")
                player.server = server.name
                results.append(play_file(player, transcript))
                player.looker.socket.close()
    except (RuntimeError, OSError, Wrong) as failure:
        results += [Result() for _ in range(len(transcripts) - len(results))]
        results[-1].faults.append(f"{server_name}: {failure}")
    return results


def rewrite_file(player, transcript):
    """Replaces the lines that do not match by the replies of stock Redis. Review each of them."""
    def rewrite(step, heard):
        line = transcript.lines[step.number - 1]
        transcript.lines[step.number - 1] = re.sub(r"<.*", lambda _: "< " + heard, line, count=1)
    result = play_file(player, transcript, rewrite)
    transcript.path.write_text("\n".join(transcript.lines) + "\n", encoding="ascii")
    return result.faults


def rewrite_all(transcripts):
    with Server(False) as server:
        for transcript in transcripts:
            player = Player(int(server.port), "R")
            player.server = server.name
            print("\n".join([f"{transcript.path.name}: written", *rewrite_file(player, transcript)]))


def comparison_faults():
    """The faults of the comparison itself: one that accepts everything would pass every server."""
    faults = [f"{raw!r} is not read as {text}" for raw, text in PARSED.items() if reply_text(raw) != text]
    faults += [f"{raw!r} is taken for RESP" for raw in NOT_RESP if reply_text(raw)[:3] != "not"]
    faults += [f"{text} should match {heard}" for text, heard in ALIKE if not matches(text, heard)]
    return faults + [f"{text} should not match {heard}" for text, heard in UNLIKE if matches(text, heard)]


def print_table(transcripts, results):
    rows = [("library", "scenarios", *(f"{name}: steps, result" for name in results))]
    for at, transcript in enumerate(transcripts):
        sides = [f"{side[at].steps:3}, {side[at].text()}" for side in results.values()]
        rows.append((transcript.path.stem, str(len(transcript.scenarios)), *sides))
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")


def test(transcripts, servers):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = dict(zip(servers, pool.map(lambda name: play_all(name, transcripts), servers)))
    everything = [result for side in results.values() for result in side]
    faults = comparison_faults() + [fault for result in everything for fault in result.faults]
    print("".join(f"FAILED {fault}\n" for fault in faults), end="")
    print_table(transcripts, results)
    print(f"{sum(result.passed for result in everything)} passed, {len(faults)} failed")
    return 1 if faults else 0


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", metavar="NAME", action="append", help="files with NAME in their name")
    options.add_argument("--server", choices=SERVERS, action="append", help="only this server")
    options.add_argument("--rewrite", action="store_true",
                         help="replace lines that differ by the replies of Redis")
    chosen = options.parse_args()
    names = chosen.only or [""]
    paths = [path for path in sorted(FOLDER.glob("*.txt")) if any(name in path.name for name in names)]
    if not paths:
        sys.exit(f"no transcript's name contains any of {chosen.only}")
    transcripts = [Transcript(path) for path in paths]
    return rewrite_all(transcripts) if chosen.rewrite else test(transcripts, chosen.server or SERVERS)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Cache lines that the core touches for each unit of work and that no cache has. cachegrind simulates a
cache of 512 KiB for 50,000 keys, which need 7 MiB. It counts the misses of a case of build/bench/micro with
N and 2 N repetitions, and the difference excludes the preparation. A line that the server prefetches counts
too: prefetching saves the wait, not the access. MICRO names the program."""
import os
import re
import subprocess

MICRO = os.environ.get("MICRO", "build/bench/micro")
TIMES = 20_000
CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=524288,8,64"]
CASES = ["lock", "renew", "renew-shorter", "unlock", "get", "expiry"]


def misses(name, times):
    """The data misses of the first cache and of the last."""
    command = ["valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null", *CACHES, MICRO,
               "--count", name, str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(re.search(rf"{cache}\s*misses:\s*([\d,]+)", done.stderr).group(1).replace(",", ""))
            for cache in ("D1", "LLd")]


def main():
    print(f"{'case':<14} {'lines not in 32 KiB':>20} {'not in 512 KiB':>16}")
    for name in CASES:
        once, twice = misses(name, TIMES), misses(name, 2 * TIMES)
        first, last = ((more - less) / TIMES for more, less in zip(twice, once))
        print(f"{name:<14} {first:>20.1f} {last:>16.1f}", flush=True)


if __name__ == "__main__":
    main()

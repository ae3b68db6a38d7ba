"""Requests on keys that no cache holds: a million or ten million random keys, over TCP on 50 connections.
Measures the CPU time of the server for each request, which hardly depends on the generator, beside requests
a second. The generators are load/ and redis-benchmark. Keys have 35 or 36 bytes, owners 40."""
import functools
import subprocess

from lines import DELETE, OWNER, TTL_MS, Line, Shared
from servers import LIMIT_S, LOAD_CORE, PROGRAMS, Server

PIPELINE = 64
RANDOM_KEY = "key-of-36-bytes-and-no-__rand_int__0"  # redis-benchmark replaces 12 of its bytes
# What is measured, with the least ratio to each rival: CPU, requests a second. The pipeline is 64 if none
# is named.
BUDGETS = {
    "LOCK": (3, None),
    "GET": (2, None),
    "EVAL": (2, None),
    "LOCK, pipeline 1": (1.15, 1.05),
    "SET NX PX": (3, None),
}


def by_load(server, words, requests, pipeline, keys):
    """Sends so many requests, each with a random key, and returns how many a second."""
    # No blanks, because a script must be one word.
    words = [word.replace(" ", "\t") for word in words]
    done = server.load("closed", (" ".join(words), ""), connections=50, pipeline=pipeline, keys=keys,
                       requests=requests)
    return done["rate"]


def by_redis_benchmark(server, words, requests, pipeline, keys):
    words = [RANDOM_KEY if word == "{key}" else OWNER if word == "{owner}" else word for word in words]
    command = [*LOAD_CORE, "redis-benchmark", "-p", str(server.port), "-c", "50", "-P", str(pipeline), "-r",
               str(keys), "-n", str(requests), "--csv", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    # Requests a second and six latencies follow the request, whose quotes are not escaped.
    return float(done.stdout.splitlines()[-1].split(",")[-7].strip('"'))


GENERATORS = {"load": by_load, "redis-benchmark": by_redis_benchmark}


def measured(server, generator, words, requests, pipeline, keys):
    before_s = server.cpu_s()
    rate = GENERATORS[generator](server, words, requests, pipeline, keys)
    return {"ns": (server.cpu_s() - before_s) * 1e9 / requests, "rate": rate}


def session(kind, generator, keys):
    """All measurements of BUDGETS once. The keys are random, so that some occur several times: the same
    owner then acquires the lock again, and SET NX is refused."""
    lock = ["LOCK", "{key}", "{owner}", str(TTL_MS)]
    set_nx = ["SET", "{key}", "{owner}", "NX", "PX", str(TTL_MS)]
    if kind != "Holdfast":
        lock = set_nx
    some = min(keys, 2_000_000)
    with Server(kind, tcp=True) as server:
        measure = functools.partial(measured, server, generator, keys=keys)
        found = {"LOCK": measure(lock, keys, PIPELINE)}
        expect_keys(server, keys)
        found["GET"] = measure(["GET", "{key}"], some, PIPELINE)
        release = ["EVAL", DELETE, "1", "{key}", "{owner}"]
        found["EVAL"] = measure(release, some // 2, PIPELINE)
        found["LOCK, pipeline 1"] = measure(lock, some // 10, 1)
    with Server(kind, tcp=True) as server:
        found["SET NX PX"] = measured(server, generator, set_nx, keys, PIPELINE, keys)
        expect_keys(server, keys)
    return found


def expect_keys(server, keys):
    """After as many random choices as there are keys, 63 % of them have been chosen."""
    share = server.ask("DBSIZE") / keys
    if not 0.6 < share < 0.66:
        raise RuntimeError(f"{share:.0%} of the keys exist")
    if "errorstat" in server.ask("INFO", "errorstats").decode():
        raise RuntimeError(f"{server.kind} has sent errors")


def lines_of(generator, keys, once):
    """The lines of one generator and one number of keys. All lines share the runs of Holdfast and of each
    rival."""
    rivals = [kind for kind in ("Redis", "Valkey") if PROGRAMS[kind]]
    runs = {kind: Shared(session, kind, generator, keys) for kind in ("Holdfast", *rivals)}
    by = "" if generator == "load" else ", redis-benchmark"

    def sides(work, field, rival):
        return {"ours": lambda: runs["Holdfast"](work, field, line=rival),
                "theirs": lambda: runs[rival](work, field)}

    found = []
    for work, (cpu, rate) in BUDGETS.items():
        name = f"cold {keys // 1_000_000}M: {work}{by}"
        for rival in rivals:
            found.append(Line(f"{name}: CPU", rival, "ns", at_least=cpu, less=True, once=once,
                              **sides(work, "ns", rival)))
            found.append(Line(f"{name}: rate", rival, "/s", at_least=rate, once=once,
                              **sides(work, "rate", rival)))
    return found


def cold_lines(millions):
    """A million keys with both generators, and `millions` million with the first."""
    return [*lines_of("load", 1_000_000, False), *lines_of("redis-benchmark", 1_000_000, False),
            *(lines_of("load", millions * 1_000_000, True) if millions > 1 else [])]

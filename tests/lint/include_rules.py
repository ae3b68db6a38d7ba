#!/usr/bin/env python3
"""Checks the includes of each file. The core (src/core) does not depend on the operating system, nor on the
shell (src/io). Each room (folder) of the core, the shell and the client may include only itself and the
rooms before it.

Prints `file:line: ...` for each forbidden include, and fails if there is one. A header that no rule of the
room names is an error, so that each new dependency is a decision.
"""
import pathlib
import re
import sys

STD = r"<[a-z0-9_]+>"  # a C++ standard header has no dot and no slash
POSIX = r"<([a-z0-9_]+/)*[a-z0-9_]+\.h>"
PUBLIC = r'"holdfast/[^"]+"'
CORE = r'"core/[^"]+"'
TLS = r'"tls/[^"]+"'
IO = r'"io/[^"]+"'
CLIENT = r'"client/[^"]+"'
CLI = r'"cli/[^"]+"'
PROXY = r'"proxy/[^"]+"'

# The rooms, in their order. A file may include its own room and the rooms before it.
ROOMS = {
    "core": ["base", "keyspace", "codec", "command", "state", "events", "lock", "values", "persist",
             "script", "engine", "handlers"],
    "io": ["os", "config", "disk", "net", "http", "program"],
    "client": ["base", "algorithm", "transport", "api"],
}

# The file that reports the versions of the libraries may include the headers that have these versions.
VERSIONS = (r"src/io/os/build_info\.cc$",
            r"<(hiredis/hiredis|openssl/opensslv|lua|xxhash|boost/version)\.h(pp)?>")

# The first row that matches a file applies to it: the permitted includes, and the message for any other.
AREAS = [
    (r"include/holdfast/format\.h", [STD, PUBLIC, r"<fmt/format\.h>"],
     "the formatters include the public API, std and fmt"),
    (r"include/", [STD, PUBLIC],
     "the public API includes only the standard library and itself"),
    (r"src/core/base/page_pool\.cc", [STD, CORE, r"<sys/mman\.h>"],
     "the pages include the core, std, and sys/mman.h for huge ones"),
    (r"src/core/", [STD, PUBLIC, CORE, r"<absl/.*>", r"<sanitizer/.*>"],
     "the core includes only itself, include/, std and Abseil"),
    (r"src/tls/", [STD, CORE, TLS], "TLS includes itself, the core, std and OpenSSL"),
    (r"src/io/", [STD, POSIX, PUBLIC, CORE, TLS, IO, r"<absl/.*>", r"<(spdlog|fmt)/.*>"],
     "the shell includes itself, the core, TLS, std, POSIX, uv.h and spdlog"),
    (r"src/client/", [STD, POSIX, PUBLIC, CORE, TLS, CLIENT],
     "the client includes itself, include/, the core, TLS and std"),
    (r"src/cli/(check|backup_file|restore)", [STD, POSIX, CORE, IO, CLI, r"<(nlohmann|fmt)/.*>"],
     "the check of a data folder, and its backup, include the shell, the core, std, fmt and nlohmann"),
    (r"src/cli/holdfast\.cc",
     [STD, CLI, r'"proxy/program\.h"', r'"io/os/(build_info|standard_streams)\.h"', r"<fmt/.*>"],
     "the command's main file includes the verbs, the proxy, the version, the standard streams and std"),
    (r"src/cli/", [STD, POSIX, PUBLIC, CLIENT, CLI, r"<(nlohmann|fmt)/.*>"],
     "the command includes itself, the client, include/, std, fmt, nlohmann and Boost"),
    (r"src/proxy/program\.cc", [STD, CORE, IO, PROXY],
     "the proxy's main file includes the shell, the core, the proxy and std"),
    (r"src/proxy/", [STD, PUBLIC, CORE, CLIENT, PROXY],
     "the proxy includes itself, the client, include/, the core and std"),
    (r"src/precompiled\.h", [STD, CORE, r"<absl/.*>"],
     "the precompiled header includes the core, std and Abseil"),
    (r"src/[^/]+$", [STD, POSIX, PUBLIC, CORE, TLS, IO],
     "a main file includes the shell, the core, TLS and std"),
]

# Headers that only certain files may include, in any room.
ONLY_IN = [
    (r"<boost/context/.*>", r"src/core/base/fiber\.cc$", "Boost.Context belongs to src/core/base/fiber.cc"),
    (r"<openssl/sha\.h>", r"src/core/base/sha(1|256)\.cc$", "SHA belongs to src/core/base/sha*.cc"),
    (r"<uv(/.*)?\.h>", r"src/io/|src/client/transport/",
     "uv.h belongs to src/io and the client's transport"),
    (r"<hiredis/.*>", r"src/client/transport/", "hiredis belongs to the client's transport"),
    (r"<boost/beast/.*>", r"src/io/http/request_parser\.cc$",
     "Boost.Beast belongs to src/io/http/request_parser.cc"),
    (r"<boost/.*>", r"src/io/config/options|src/cli/",
     "Boost belongs to src/io/config/options* and the command"),
    (r"<(ncurses|term)\.h>", r"src/cli/top_screen\.cc$", "ncurses belongs to src/cli/top_screen.cc"),
    (r"<openssl/.*>", r"src/tls/", "OpenSSL belongs to src/tls"),
    (r"<xxh.*>", r"src/core/base/hash\.h$", "xxHash belongs to src/core/base/hash.h"),
    (r"<(lua|lauxlib).*>", r"src/core/script/[^/]*\.cc$", "Lua belongs to src/core/script"),
    (r"<isa-l/crc.*>", r"src/core/base/checksum\.cc$",
     "ISA-L's checksums belong to src/core/base/checksum.cc"),
    (r'"core/state/context\.h"', r"src/core/|src/precompiled\.h$",
     "the state of an engine belongs to the core: the shell asks the functions of core/engine"),
    (r"<isa-l/igzip.*>", r"src/io/disk/(gunzip|snapshot_writer)\.(h|cc)$",
     "gzip belongs to src/io/disk/gunzip and snapshot_writer"),
]
# Headers of clocks, files, threads and random numbers: with them the same input could give other bytes.
WORLD = (r"<(chrono|ctime|random|thread|mutex|shared_mutex|condition_variable|future|fstream|iostream"
         r"|filesystem)>")

INCLUDE = re.compile(r'\s*#\s*include\s*(<[^>]+>|"[^"]+")')
PLACE = re.compile(r'(?:src/|")(core|io|client)/(?:([^/"]+)/)?[^/"]+"?$')


def room_fault(path, header):
    """The reason why the room of the file may not include the room of the header, or None if it may."""
    place = PLACE.match(path)
    if not place:
        return None
    area, room = place.groups()
    if room not in ROOMS[area]:
        return f"src/{area} has the rooms {', '.join(ROOMS[area])}: move the file into one of them"
    other = PLACE.match(header)
    if not other or other.group(1) != area:
        return None
    before = ROOMS[area][:ROOMS[area].index(room) + 1]
    if other.group(2) in before:
        return None
    return f"src/{area}/{room} includes only itself and the rooms before it ({', '.join(before)})"


def fault(path, header):
    """The reason why the file may not include the header, or None if it may."""
    if re.match(VERSIONS[0], path) and re.fullmatch(VERSIONS[1], header):
        return None
    for pattern, files, why in ONLY_IN:
        if re.fullmatch(pattern, header):
            return None if re.match(files, path) else why
    if path.startswith("src/core/") and re.fullmatch(WORLD, header):
        return "the core has no clock, files, threads or random numbers of its own"
    for files, allowed, why in AREAS:
        if re.match(files, path):
            return room_fault(path, header) if any(re.fullmatch(a, header) for a in allowed) else why
    return None


def faults_in(root):
    """The faults of all files below a folder that has include/ and src/: (file, line, header, why)."""
    for area in ("include", "src"):
        for path in sorted((root / area).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            name = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                why = match and fault(name, match.group(1))
                if why:
                    yield name, number, match.group(1), why


def main():
    failed = False
    for name, number, header, why in faults_in(pathlib.Path(".")):
        print(f"{name}:{number}: may not include {header}: {why}")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

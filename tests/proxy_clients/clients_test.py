#!/usr/bin/python3
"""Lock libraries and clients of Debian's packages, unchanged, through two proxies for three servers. One
server and then one proxy are killed while each client works. The last line is "N passed, N failed".
HOLDFAST_SERVER names the server; the command is in the same folder."""
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(1, str(ROOT / "tests/integration"))
from harness import LIMIT_S, end_with_parent, equal, has, run_tests, test
from proxy_rig import rig

GO_PROGRAM = ROOT / "build/proxy_clients/redigo"
BEFORE = ["held true", "other false"]
MEANWHILE = ["extended true", "other false", "released true"]
AFTER = ["other true", "released true"]


def compiled_go():
    """Debian's Go packages are in /usr/share/gocode. Go's cache saves later builds."""
    environment = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "CGO_ENABLED": "0",
                   "GOCACHE": str(ROOT / "build/go-cache")}
    subprocess.run(["go", "build", "-o", GO_PROGRAM, HERE / "lock.go"], check=True,
                   env=os.environ | environment, timeout=5 * LIMIT_S)
    return [GO_PROGRAM]


def lines_until_ready(process):
    lines = []
    while (line := process.stdout.readline().strip()) not in ("ready", ""):
        lines.append(line)
    return lines


def goes_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def check_client(the, command, more):
    one, two = the.proxy(), the.proxy()
    process = subprocess.Popen([*command, str(one.port), str(two.port), *more], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               preexec_fn=end_with_parent)
    try:
        equal(lines_until_ready(process), BEFORE)
        the.servers[0].kill()
        goes_on(process)
        equal(lines_until_ready(process), MEANWHILE)
        one.process.kill()
        goes_on(process)
        equal(process.communicate(timeout=LIMIT_S)[0].split("\n")[:-1], AFTER)
        equal(process.returncode, 0)
    finally:
        process.kill()
        process.wait()


def with_client(name, command, *more):
    def run(the):
        check_client(the, command() if callable(command) else command, more)
    run.__name__ = name
    test(run)


PYTHON = ["/usr/bin/python3", "-B", HERE / "lock_py.py"]  # only Debian's Python finds Debian's modules
with_client("redis-py's Lock", PYTHON, "sync")
with_client("redis-py's Lock with asyncio", PYTHON, "async")
# A node that is not Debian's does not look where Debian has its modules.
with_client("node-redis by hand", ["env", "NODE_PATH=/usr/share/nodejs", "node", HERE / "lock.js"])
for kind in "laravel-predis", "laravel-phpredis", "predis", "phpredis":
    with_client(f"PHP: {kind}", ["php", HERE / "lock.php"], kind)
with_client("redis-rb by hand", ["ruby", HERE / "lock.rb"])
with_client("redigo by hand", compiled_go)


@test
def a_library_that_needs_more_than_a_key_gets_an_error(the):
    """symfony/lock keeps its locks in sorted sets."""
    program = """require 'Symfony/Component/Lock/autoload.php'; require 'Predis/autoload.php';
        $redis = new Predis\\Client(['host' => '127.0.0.1', 'port' => (int) $argv[1]]);
        $store = new Symfony\\Component\\Lock\\Store\\RedisStore($redis);
        (new Symfony\\Component\\Lock\\LockFactory($store))->createLock('job', 30)->acquire();"""
    done = subprocess.run(["php", "-r", program, str(the.proxy().port)], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    has(done.stdout, "holdfast-proxy", "cannot call 'zremrangebyscore'")


if __name__ == "__main__":
    run_tests(rig)

#!/usr/bin/env bash
# Holdfast beside stock Redis at what has to do with the disk: grants that are journalled, saving and
# loading a snapshot, and how long others wait meanwhile. Each on servers just started, in a temporary
# folder. HOLDFAST_SERVER and REDIS_SERVER name the binaries.
# Usage: bench/disk.sh [keys]
set -euo pipefail

readonly kKeys=${1:-2000000}
readonly kRequests=1000000
readonly kHoldfast=${HOLDFAST_SERVER:-build/holdfast-server}
readonly kRedis=${REDIS_SERVER:-redis-server}
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT

server_core=()
client_core=()
if [ "$(nproc)" -gt 1 ]; then
  server_core=(taskset -c 0)
  client_core=(taskset -c 1)
fi

cli() { redis-cli -s "$folder/socket" "$@"; }
now_ms() { date +%s%3N; }

# start COMMAND...: comes back when the server serves.
start() {
  rm -f "$folder/socket"
  mkdir -p "$folder/data"
  "$@" --port 0 --unixsocket "$folder/socket" --dir "$folder/data" --save '' >"$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 3000); do
    [ "$(cli ping 2>/dev/null || true)" != PONG ] || return 0
    sleep 0.01
  done
  cat "$folder/log" >&2
  exit 1
}

stop() {
  kill -9 "$server"
  wait "$server" 2>/dev/null || true
  server=
}

clean() { rm -rf "$folder/data"; }

# run PIPELINE COMMAND...: requests per second.
run() {
  local pipeline=$1 requests=$kRequests out
  shift
  [ "$pipeline" != 1 ] || requests=$((requests / 10))
  out=$("${client_core[@]}" redis-benchmark -s "$folder/socket" -c 50 -n "$requests" -P "$pipeline" \
    -r 1000000 --csv "$@" | tail -n 1)
  [[ $out =~ ^\"[^\"]*\",\"([0-9]+) ]] || exit 1
  echo "${BASH_REMATCH[1]}"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

line() { printf '%-44s %14s %14s %8s\n' "$@"; }

line 'requests a second' Holdfast Redis ratio
for policy in always everysec no; do
  for pipeline in 1 64; do
    start "${server_core[@]}" "$kHoldfast" --appendfsync "$policy" --loglevel warning
    ours=$(run "$pipeline" LOCK key:__rand_int__ o 300000)
    stop
    clean
    start "${server_core[@]}" "$kRedis" --appendonly yes --appendfsync "$policy"
    theirs=$(run "$pipeline" SET key:__rand_int__ o NX PX 300000)
    stop
    clean
    line "LOCK | SET NX PX, fsync $policy, pipeline $pipeline" "$ours" "$theirs" \
      "$(ratio "$ours" "$theirs")"
  done
done

# fill: so many locks of a 35-byte key and a 40-byte owner.
fill() {
  seq "$kKeys" |
    awk '{ printf "SET key-of-35-bytes-----%014d owner-of-forty-bytes-%019d PX 3600000\r\n", $1, $1 }' |
    redis-cli -s "$folder/socket" --pipe >/dev/null
}
memory_kb() { awk '/VmHWM/ { print $2 }' "/proc/$server/status"; }

line "$kKeys locks" Holdfast Redis ratio
start "$kHoldfast" --loglevel warning --journal-max 0
fill
before_kb=$(memory_kb)
began=$(now_ms)
cli bgsave >/dev/null
read -r stall late < <(python3 "${BASH_SOURCE%/*}/stall.py" "$folder/socket")
ours=$(($(now_ms) - began))
grew=$((($(memory_kb) - before_kb) / 1024))
stop
size=$(stat -c %s "$folder/data/dump.rdb.gz")
began=$(now_ms)
start "$kHoldfast" --loglevel warning
load=$(($(now_ms) - began))
[ "$(cli dbsize)" = "$kKeys" ] || exit 1
stop
clean
start "$kRedis" --appendonly no
fill
began=$(now_ms)
cli save >/dev/null
gzip -1 -k "$folder/data/dump.rdb"
theirs=$(($(now_ms) - began))
their_size=$(stat -c %s "$folder/data/dump.rdb.gz")
rm "$folder/data/dump.rdb.gz"
stop
began=$(now_ms)
start "$kRedis" --appendonly no
their_load=$(($(now_ms) - began))
[ "$(cli dbsize)" = "$kKeys" ] || exit 1
stop
line 'save and compress, ms: BGSAVE | SAVE; gzip -1' "$ours" "$theirs" "$(ratio "$ours" "$theirs")"
line 'its size, bytes' "$size" "$their_size" "$(ratio "$size" "$their_size")"
line 'memory it took, MiB' "$grew" - -
line 'longest wait for a PING meanwhile, ms' "$stall" - -
line 'PINGs that waited more than a millisecond' "$late" - -
line 'load it, ms: gzip | plain' "$load" "$their_load" "$(ratio "$load" "$their_load")"

#!/usr/bin/env bash
# Holdfast beside stock Redis at the same lock work, by redis-benchmark: pairs of runs, A B A B, each on
# servers that have just been started; prints requests per second of each run and the medians' ratio. On two
# cores or more the servers have one core to themselves. HOLDFAST_SERVER and REDIS_SERVER name the binaries.
# Usage: bench/run.sh [pairs] [requests]
set -euo pipefail

readonly kPairs=${1:-3}
readonly kRequests=${2:-1000000}
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

# start COMMAND...: on a Unix socket in the temporary folder, so that no port is taken.
start() {
  rm -f "$folder/socket"
  "${server_core[@]}" "$@" >"$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 200); do
    redis-cli -s "$folder/socket" ping >/dev/null 2>&1 && return
    sleep 0.05
  done
  echo "the server did not start:" >&2
  cat "$folder/log" >&2
  exit 1
}

stop() {
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
}

# run PIPELINE CONNECTIONS COMMAND...: requests per second.
run() {
  local pipeline=$1 connections=$2 out
  shift 2
  out=$("${client_core[@]}" timeout 120 redis-benchmark -s "$folder/socket" -c "$connections" \
    -n "$kRequests" -P "$pipeline" -r 1000000 --csv "$@" 2>"$folder/benchmark" | tail -n 1)
  echo "$out" | sed 's/^"[^"]*","\([0-9]*\).*/\1/'
}

median() { sort -n | sed -n "$(((kPairs + 1) / 2))p"; }

# compare NAME PIPELINE -- HOLDFAST COMMAND -- REDIS COMMAND
compare() {
  local name=$1 pipeline=$2 ours=() theirs=() side=0
  shift 2
  : >"$folder/ours"
  : >"$folder/theirs"
  for word in "$@"; do
    if [ "$word" = -- ]; then
      side=$((side + 1))
    elif [ "$side" = 1 ]; then
      ours+=("$word")
    else
      theirs+=("$word")
    fi
  done
  for _ in $(seq "$kPairs"); do
    start "$kHoldfast" --port 0 --unixsocket "$folder/socket" --loglevel warning
    run "$pipeline" 50 "${ours[@]}" >>"$folder/ours"
    stop
    start "$kRedis" --port 0 --unixsocket "$folder/socket" --save '' --appendonly no --dir "$folder"
    run "$pipeline" 50 "${theirs[@]}" >>"$folder/theirs"
    stop
  done
  local a b
  a=$(median <"$folder/ours")
  b=$(median <"$folder/theirs")
  printf '%-28s %9s %12d %12d %8s   %s | %s\n' "$name" "$pipeline" "$a" "$b" \
    "$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", a / b }')" "$(tr '\n' ' ' <"$folder/ours")" \
    "$(tr '\n' ' ' <"$folder/theirs")"
}

printf '%-28s %9s %12s %12s %8s   %s\n' work pipeline Holdfast/s Redis/s ratio \
  'each run: Holdfast | Redis'
for pipeline in 1 16 64; do
  compare 'LOCK | SET NX PX' "$pipeline" -- LOCK key:__rand_int__ o 30000 \
    -- SET key:__rand_int__ o NX PX 30000
done
compare 'SET NX PX' 64 -- SET key:__rand_int__ o NX PX 30000 -- SET key:__rand_int__ o NX PX 30000
compare 'GET' 64 -- GET key:__rand_int__ -- GET key:__rand_int__
compare 'PING' 64 -- PING -- PING

#!/usr/bin/env bash
# Holdfast beside stock Redis at the same lock work, by redis-benchmark: pairs of runs, A B A B, each on
# servers that have just been started; prints requests per second of each run and the medians' ratio. On two
# cores or more the servers have one core to themselves. HOLDFAST_SERVER and REDIS_SERVER name the binaries.
# Usage: bench/run.sh [pairs] [requests; a fifth of them at pipeline 1] [part of a line's name]
set -euo pipefail

readonly kPairs=${1:-3}
readonly kRequests=${2:-1000000}
readonly kOnly=${3:-}
readonly kHoldfast=${HOLDFAST_SERVER:-build/holdfast-server}
readonly kRedis=${REDIS_SERVER:-redis-server}
readonly kHere=${BASH_SOURCE%/*}
readonly kKeys=1000000
readonly kSubscribers=100
# What redlock, redsync, redis-py's Lock and their like run; compat transcripts have each one's own words.
readonly kDelete='if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("del", KEYS[1]) else return 0 end'
readonly kExtend='if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end'
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$folder"' EXIT

server_core=()
client_core=()
if [ "$(nproc)" -gt 1 ]; then
  server_core=(taskset -c 0)
  client_core=(taskset -c 1)
fi

fail() {
  echo "$1:" >&2
  cat "$2" >&2
  exit 1
}

cli() { redis-cli -s "$folder/socket" "$@"; }

# start COMMAND...: on a Unix socket in the temporary folder, so that no port is taken; with the scripts.
start() {
  rm -f "$folder/socket"
  "${server_core[@]}" "$@" >"$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 200); do
    if cli ping >/dev/null 2>&1; then
      delete=$(cli script load "$kDelete")
      extend=$(cli script load "$kExtend")
      return
    fi
    sleep 0.05
  done
  fail "the server did not start" "$folder/log"
}

stop() {
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
}

# hold: all of redis-benchmark's keys, by the owner `o`.
hold() {
  seq 0 $((kKeys - 1)) | awk '{ printf "SET key:%012d o PX 600000\r\n", $1 }' |
    "${client_core[@]}" redis-cli -s "$folder/socket" --pipe >"$folder/pipe" 2>&1
  [ "$(cli dbsize)" = "$kKeys" ] || fail "not all keys could be set" "$folder/pipe"
}

# run PIPELINE COMMAND...: requests per second. `@delete` and `@extend` stand for the scripts' digests.
run() {
  local pipeline=$1 requests=$kRequests subscribers= out words=()
  shift
  [ "$pipeline" != 1 ] || requests=$((requests / 5))
  for word in "$@"; do
    case $word in
      @delete) words+=("$delete") ;;
      @extend) words+=("$extend") ;;
      *) words+=("$word") ;;
    esac
  done
  if [ "$1" = PUBLISH ]; then
    requests=$((requests / 20 / 64 * 64))  # whole pipelines: redis-benchmark rounds up
    "${client_core[@]}" "$kHere/subscribers.py" "$folder/socket" "$kSubscribers" "$requests" \
      >"$folder/subscribers" 2>&1 &
    subscribers=$!
    until grep -q ready "$folder/subscribers"; do
      kill -0 "$subscribers" 2>/dev/null || fail "no subscribers" "$folder/subscribers"
      sleep 0.05
    done
  fi
  out=$("${client_core[@]}" timeout 120 redis-benchmark -s "$folder/socket" -c 50 -n "$requests" \
    -P "$pipeline" -r "$kKeys" --csv "${words[@]}" 2>"$folder/benchmark" | tail -n 1)
  [ -z "$subscribers" ] || wait "$subscribers" || fail "messages got lost" "$folder/subscribers"
  [[ $out =~ ^\"[^\"]*\",\"([0-9]+) ]] || fail "redis-benchmark failed" "$folder/benchmark"
  echo "${BASH_REMATCH[1]}"
}

median() { sort -n | sed -n "$(((kPairs + 1) / 2))p"; }

# compare NAME PIPELINE PREPARE HOLDFAST-COMMAND [REDIS-COMMAND]: the words of a command parted by blanks.
compare() {
  local name=$1 pipeline=$2 prepare=$3 ours theirs a b
  [[ $name == *"$kOnly"* ]] || return 0
  read -ra ours <<<"$4"
  read -ra theirs <<<"${5:-$4}"
  : >"$folder/ours"
  : >"$folder/theirs"
  for _ in $(seq "$kPairs"); do
    start "$kHoldfast" --port 0 --unixsocket "$folder/socket" --loglevel warning
    $prepare
    run "$pipeline" "${ours[@]}" >>"$folder/ours"
    stop
    start "$kRedis" --port 0 --unixsocket "$folder/socket" --save '' --appendonly no --dir "$folder"
    $prepare
    run "$pipeline" "${theirs[@]}" >>"$folder/theirs"
    stop
  done
  a=$(median <"$folder/ours")
  b=$(median <"$folder/theirs")
  printf '%-28s %9s %12d %12d %8s   %s | %s\n' "$name" "$pipeline" "$a" "$b" \
    "$(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", a / b }')" "$(tr '\n' ' ' <"$folder/ours")" \
    "$(tr '\n' ' ' <"$folder/theirs")"
}

printf '%-28s %9s %12s %12s %8s   %s\n' work pipeline Holdfast/s Redis/s ratio \
  'each run: Holdfast | Redis'
readonly kKey=key:__rand_int__
for pipeline in 1 16 64; do
  compare 'LOCK | SET NX PX' "$pipeline" true "LOCK $kKey o 30000" "SET $kKey o NX PX 30000"
done
for pipeline in 1 64; do
  compare 'SET NX PX' "$pipeline" true "SET $kKey o NX PX 30000"
  compare 'SET NX PX, key is held' "$pipeline" hold "SET $kKey another NX PX 30000"
  compare 'GET' "$pipeline" hold "GET $kKey"
  compare 'compare-and-delete' "$pipeline" hold "EVALSHA @delete 1 $kKey o"
  compare 'compare-and-delete -> 0' "$pipeline" hold "EVALSHA @delete 1 $kKey another"
  compare 'compare-and-pexpire' "$pipeline" hold "EVALSHA @extend 1 $kKey o 30000"
  compare 'compare-and-pexpire -> 0' "$pipeline" hold "EVALSHA @extend 1 $kKey another 30000"
  compare "PUBLISH to $kSubscribers" "$pipeline" true 'PUBLISH c m'
  compare 'PING' "$pipeline" true 'PING'
done

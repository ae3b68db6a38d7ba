#!/usr/bin/env bash
# Runs the doctest programs given (options for them stand after --), then every executable script in
# tests/integration, compat and conformance, the tests of tests/chaos, and with TEST_PACKAGES those of
# tests/packaging: LANES suites at once (default: one for each processor). Prints the output of each suite
# when the suite ends, and how long it took. Repeats at the end what failed or was skipped, and closes with
# "N passed, N failed" summed over all suites, and ", N skipped" if tests could not run on this machine.
# Fails if a test failed, or if a suite ended without its sum (a crash, or its time limit).
set -uo pipefail
cd "$(dirname "$0")/.." || exit

readonly kLimitSeconds=1800
readonly kLogs=build/tests
readonly kLanes=${LANES:-$(nproc)}
readonly kDoctestSum='s/^\[doctest\] test cases: .*| *\([0-9]*\) passed | *\([0-9]*\) failed.*/\1 \2/p'
readonly kFailure='^(FAILED|.*(ERROR|Assertion .* failed|runtime error):)'
readonly kScriptSum='s/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)\{0,1\}$/\1 \2 \4/p'
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
passed=0
failed=0
failures=''
skipped=0
skips=''

# what_failed NAME: the lines of the suite's log that name what failed, each with the two after it, and the
# test cases that they belong to; of a suite that names nothing, its last words.
what_failed() {
  local lines
  lines=$(LC_ALL=C awk -v failure="$kFailure" '
    /^TEST CASE:/ { name = $0 "\n" }
    $0 ~ failure { left = 3; printf "%s", name; name = "" }
    left-- > 0' "$kLogs/$1.log" | head -n 60)
  printf '== failed in %s\n%s\n' "$1" "${lines:-$(tail -n 12 "$kLogs/$1.log")}" | cut -c 1-240
}

# run_suite NAME COMMAND...: runs the command, and keeps its output, exit status and seconds. SIGTERM ends
# the command too.
run_suite() {
  local log=$kLogs/$1.log began=$SECONDS child
  shift
  timeout --kill-after=10 "$kLimitSeconds" "$@" </dev/null >"$log" 2>&1 &
  child=$!
  trap 'kill "$child"' TERM
  wait "$child"
  echo "$? $((SECONDS - began))" >"$log.end"
}

# report NAME SUM: prints the output of a suite that ended, and adds up its tests. SUM is the sed expression
# that makes "passed failed skipped" of the suite's closing line. A script's own closing line is not
# printed: only the sum over all suites may stand alone on a line.
report() {
  local name=$1 sum=$2 log=$kLogs/$1.log status took counts ok bad left
  read -r status took <"$log.end"
  grep -avxE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?' "$log"
  counts=$(sed -n "$sum" "$log" | tail -n 1)
  if [ -z "$counts" ]; then
    printf '%s: ended with status %s and did not print its sum\n' "$name" "$status"
    counts='0 1'
  fi
  read -r ok bad left <<<"$counts"
  if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    printf '%s: every test passed, but it ended with status %s\n' "$name" "$status"
    bad=1
  fi
  printf '== %s: %s passed, %s failed, %s s\n' "$name" "$ok" "$bad" "$took"
  [ "$bad" = 0 ] || failures+=$(what_failed "$name")$'\n'
  passed=$((passed + ok))
  failed=$((failed + bad))
  if [ "${left:-0}" != 0 ]; then
    skipped=$((skipped + left))
    skips+="== skipped in $name"$'\n'$(grep -a '^SKIPPED' "$log" | head -n 20)$'\n'
  fi
}

# await_fewer_than N: waits until fewer than N suites run, and reports each one that ended.
await_fewer_than() {
  local pid name sum
  while [ "${#running[@]}" -ge "$1" ]; do
    wait -n -p pid
    IFS=$'\t' read -r name sum <<<"${running[$pid]}"
    unset "running[$pid]"
    report "$name" "$sum"
  done
}

# start NAME SUM COMMAND...: runs the suite beside the others, as soon as a lane is free.
start() {
  local name=$1 sum=$2
  shift 2
  await_fewer_than "$kLanes"
  printf '== %s: started\n' "$name"
  run_suite "$name" "$@" &
  running[$!]=$name$'\t'$sum
}

programs=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  programs+=("$1")
  shift
done
[ $# -gt 0 ] && shift

mkdir -p "$kLogs"
declare -A running=()
trap 'kill "${!running[@]}"; wait; exit 130' INT TERM
for program in "${programs[@]}"; do
  start "${program##*/}" "$kDoctestSum" "$program" "$@"
done
for script in tests/integration/*.sh tests/{integration,compat,conformance}/*.py tests/chaos/*_test.py \
  ${TEST_PACKAGES:+tests/packaging/*_test.py}; do
  [ -x "$script" ] || continue
  start "$(basename "$script")" "$kScriptSum" "$script"
done
await_fewer_than 1

printf '%s%s%s passed, %s failed' "$skips" "$failures" "$passed" "$failed"
[ "$skipped" = 0 ] && printf '\n' || printf ', %s skipped\n' "$skipped"
[ "$failed" = 0 ]

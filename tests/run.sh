#!/usr/bin/env bash
# Runs the doctest programs given (what stands after -- are options for them), then every executable script
# in tests/integration, compat and conformance, and the tests of tests/chaos. Tells again what failed, and
# closes with "N passed, N failed", summed over all. Fails when a test failed, or when a suite ended without
# telling its sum (a crash, or its time limit).
set -uo pipefail
cd "$(dirname "$0")/.." || exit

readonly kLimitSeconds=900
readonly kLogs=build/tests
readonly kDoctestSum='s/^\[doctest\] test cases: .*| *\([0-9]*\) passed | *\([0-9]*\) failed.*/\1 \2/p'
readonly kFailure='^(FAILED|TEST CASE:|.*(ERROR|Assertion .* failed|runtime error):)'
readonly kScriptSum='s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p'
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
passed=0
failed=0
failures=''

# what_failed NAME: the lines of the suite's log that name what failed, each with the two after it; of a
# suite that names nothing, its last words.
what_failed() {
  local lines
  lines=$(grep -aE -A 2 "$kFailure" "$kLogs/$1.log" | grep -v '^--$' | head -n 20)
  printf '== failed in %s\n%s\n' "$1" "${lines:-$(tail -n 12 "$kLogs/$1.log")}" | cut -c 1-240
}

# run_suite NAME SUM COMMAND...: runs the command, its output shown and kept. SUM is the sed expression that
# makes "passed failed" of the suite's closing line. A script's own closing line is not shown: only the sum
# over all suites may stand alone on a line.
run_suite() {
  local name=$1 sum=$2 status counts began=$SECONDS
  shift 2
  printf '== %s\n' "$name"
  timeout --foreground --kill-after=10 "$kLimitSeconds" "$@" </dev/null 2>&1 | tee "$kLogs/$name.log" |
    grep --line-buffered -vxE '[0-9]+ passed, [0-9]+ failed'
  status=${PIPESTATUS[0]}
  counts=$(sed -n "$sum" "$kLogs/$name.log" | tail -n 1)
  if [ -z "$counts" ]; then
    printf '%s: ended with status %s and did not tell its sum\n' "$name" "$status"
    counts='0 1'
  elif [ "$status" != 0 ] && [ "${counts#* }" = 0 ]; then
    printf '%s: every test passed, but it ended with status %s\n' "$name" "$status"
    counts="${counts% *} 1"
  fi
  printf '== %s: %s passed, %s failed, %s s\n' "$name" "${counts% *}" "${counts#* }" $((SECONDS - began))
  [ "${counts#* }" = 0 ] || failures+=$(what_failed "$name")$'\n'
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
}

programs=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  programs+=("$1")
  shift
done
[ $# -gt 0 ] && shift

# All programs but the last run beside that, as one computes where the other waits, and are told after it.
mkdir -p "$kLogs"
last=${programs[-1]}
unset 'programs[-1]'
for program in "${programs[@]}"; do
  {
    out=$kLogs/${program##*/}.out
    timeout --kill-after=10 "$kLimitSeconds" "$program" "$@" </dev/null >"$out" 2>&1
    echo $? >"$out.status"
  } &
done
run_suite "${last##*/}" "$kDoctestSum" "$last" "$@"
wait
for program in "${programs[@]}"; do
  name=${program##*/}
  run_suite "$name" "$kDoctestSum" bash -c 'cat "$0" && exit "$(cat "$0.status")"' "$kLogs/$name.out"
done
for script in tests/integration/*.sh tests/{integration,compat,conformance}/*.py tests/chaos/*_test.py; do
  [ -x "$script" ] || continue
  run_suite "$(basename "$script")" "$kScriptSum" "$script"
done

printf '%s%s passed, %s failed\n' "$failures" "$passed" "$failed"
[ "$failed" = 0 ]

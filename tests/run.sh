#!/usr/bin/env bash
# Runs the doctest programs given (options for them stand after --), then every executable script in
# tests/integration, compat and conformance, and the tests of tests/chaos. Prints after each suite how long
# it took, repeats at the end what failed or was skipped, and closes with "N passed, N failed" summed over
# all, and ", N skipped" if tests could not run on this machine. Fails if a test failed, or if a suite ended
# without its sum (a crash, or its time limit).
set -uo pipefail
cd "$(dirname "$0")/.." || exit

readonly kLimitSeconds=900
readonly kLogs=build/tests
readonly kDoctestSum='s/^\[doctest\] test cases: .*| *\([0-9]*\) passed | *\([0-9]*\) failed.*/\1 \2/p'
readonly kFailure='^(FAILED|TEST CASE:|.*(ERROR|Assertion .* failed|runtime error):)'
readonly kScriptSum='s/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)\{0,1\}$/\1 \2 \4/p'
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
passed=0
failed=0
failures=''
skipped=0
skips=''

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
  local name=$1 sum=$2 status counts ok bad left began=$SECONDS
  shift 2
  printf '== %s\n' "$name"
  timeout --foreground --kill-after=10 "$kLimitSeconds" "$@" </dev/null 2>&1 | tee "$kLogs/$name.log" |
    grep --line-buffered -vxE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?'
  status=${PIPESTATUS[0]}
  counts=$(sed -n "$sum" "$kLogs/$name.log" | tail -n 1)
  if [ -z "$counts" ]; then
    printf '%s: ended with status %s and did not tell its sum\n' "$name" "$status"
    counts='0 1'
  fi
  read -r ok bad left <<<"$counts"
  if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    printf '%s: every test passed, but it ended with status %s\n' "$name" "$status"
    bad=1
  fi
  printf '== %s: %s passed, %s failed, %s s\n' "$name" "$ok" "$bad" "${took:-$((SECONDS - began))}"
  [ "$bad" = 0 ] || failures+=$(what_failed "$name")$'\n'
  passed=$((passed + ok))
  failed=$((failed + bad))
  if [ "${left:-0}" != 0 ]; then
    skipped=$((skipped + left))
    skips+="== skipped in $name"$'\n'$(grep -a '^SKIPPED' "$kLogs/$name.log" | head -n 20)$'\n'
  fi
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
    echo $SECONDS >"$out.seconds"
  } &
done
run_suite "${last##*/}" "$kDoctestSum" "$last" "$@"
wait
for program in "${programs[@]}"; do
  name=${program##*/}
  took=$(cat "$kLogs/$name.out.seconds") run_suite "$name" "$kDoctestSum" \
    bash -c 'cat "$0" && exit "$(cat "$0.status")"' "$kLogs/$name.out"
done
for script in tests/integration/*.sh tests/{integration,compat,conformance}/*.py tests/chaos/*_test.py; do
  [ -x "$script" ] || continue
  run_suite "$(basename "$script")" "$kScriptSum" "$script"
done

printf '%s%s%s passed, %s failed' "$skips" "$failures" "$passed" "$failed"
[ "$skipped" = 0 ] && printf '\n' || printf ', %s skipped\n' "$skipped"
[ "$failed" = 0 ]

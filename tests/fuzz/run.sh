#!/usr/bin/env bash
# Fuzzes the given targets, or all, one after another for FUZZ_SECONDS each. New inputs are in
# build/fuzz/corpus. An input that finds a fault is kept in tests/fuzz/TARGET: `make test` runs it from then
# on, and the status is 1. --merge does not fuzz: it adds the fewest inputs of build/fuzz/corpus to
# tests/fuzz/TARGET that reach code which the kept inputs do not reach.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

readonly kSeconds=${FUZZ_SECONDS:-60}
readonly kLimits=(-len_control=0 -timeout=20 -report_slow_units=20 -rss_limit_mb=2048 -malloc_limit_mb=256)
export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}

# The longest input of a target: longer ones only cost time.
longest() {
  case $1 in
    engine) echo 600 ;;
    *) echo 2000 ;;
  esac
}

# fuzz_target NAME: prints executions, edges and inputs, and keeps the log.
fuzz_target() {
  local name=$1 log=build/fuzz/$1.log status
  "build/fuzz/$name" "${kLimits[@]}" -max_len="$(longest "$name")" -max_total_time="$kSeconds" \
    -print_final_stats=1 -artifact_prefix="tests/fuzz/$name/" \
    "build/fuzz/corpus/$name" "tests/fuzz/$name" >"$log" 2>&1
  status=$?
  awk -v name="$name" '
    / cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") edges = $(i + 1)
                                          if ($i == "corp:") inputs = $(i + 1) } }
    /^stat::number_of_executed_units:/ { runs = $2 }
    /^Done / { seconds = $5 }
    END { sub("/.*", "", inputs)
          printf "  %-9s %9d executions in %4d s, %6d edges, %5d inputs\n",
            name, runs, seconds, edges, inputs }' "$log"
  [ "$status" = 0 ] || { tail -n 40 "$log" && echo "$name broke; the whole log is $log"; }
  return "$status"
}

merge_target() {
  local name=$1 before
  before=$(find "tests/fuzz/$name" -type f | wc -l)
  "build/fuzz/$name" "${kLimits[@]}" -set_cover_merge=1 -use_counters=0 -max_len="$(longest "$name")" \
    "tests/fuzz/$name" "build/fuzz/corpus/$name" >"build/fuzz/$name.merge.log" 2>&1 || return
  printf '  %-9s %d files before, %d now\n' "$name" "$before" "$(find "tests/fuzz/$name" -type f | wc -l)"
}

work=fuzz_target
[ "${1:-}" = --merge ] && work=merge_target && shift
targets=("$@")
[ $# = 0 ] && targets=(acl backup engine http journal lua meta options rdb replies requests scripts)
passed=0
failed=0
for name in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$name"
  ln -sf fuzz "build/fuzz/$name"
  if "$work" "$name"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]

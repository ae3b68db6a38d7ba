#!/usr/bin/env bash
# Checks redlock.pml with spin: the model holds in every state, and each flaw breaks it. Prints states and
# depth of each run, and closes with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

readonly kFolder=build/model
readonly kMemoryMb=1900
passed=0
failed=0
mkdir -p "$kFolder"

# check NAME EXPECTED PAN-FLAGS MODEL-FLAGS...: EXPECTED is the number of errors.
check() {
  local name=$1 expected=$2 how=$3 log errors
  shift 3
  log=$kFolder/$(tr ' ,' '-_' <<<"$name").log
  (
    cd "$kFolder" && spin "$@" -a ../../tests/model/redlock.pml &&
      gcc -w -O2 -DSAFETY "$how" -DMEMLIM=$kMemoryMb -o pan pan.c && ./pan -m100000
  ) >"$log" 2>&1
  errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$log")
  # A search that has not ended has seen no error, and proves nothing.
  grep -Eq 'max search depth too small|Search not completed' "$log" && [ "$expected" = 0 ] && errors=unknown
  awk -v name="$name" '/depth reached/ { depth = $6 + 0 } / states, stored/ { states = $1 }
    END { printf "  %-44s %9d states, depth %4d: ", name, states, depth }' "$log"
  if [ "$errors" = "$expected" ]; then
    passed=$((passed + 1))
    [ "$expected" = 0 ] && echo holds || echo "is found: $(grep -m 1 -o 'assertion violated.*' "$log")"
  else
    failed=$((failed + 1))
    echo "expected $expected errors, got ${errors:-none}; see $log"
  fi
}

readonly kAll=-DCOLLAPSE # every state, without loss
check 'two attempts, a LOCK that arrives twice' 0 $kAll -DATTEMPTS=2 -DRESENT=1
check 'two attempts, a counter that jumps ahead' 0 $kAll -DATTEMPTS=2 -DRESENT=0 -DJUMPS
check 'flaw: a counter is reset' 1 $kAll -DATTEMPTS=2 -DRESENT=0 -DCOUNTER_RESET
check 'flaw: a larger FENCE reply counts' 1 $kAll -DATTEMPTS=2 -DRESENT=1 -DLARGER_FENCE_COUNTS
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]

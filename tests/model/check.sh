#!/usr/bin/env bash
# Checks the models here with spin: each holds in every state, and each flaw breaks it.
# Prints states and depth of each run. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

readonly kFolder=build/model
readonly kMemoryMb=1900
passed=0
failed=0
mkdir -p "$kFolder"

# check MODEL NAME EXPECTED MODEL-FLAGS...: EXPECTED is the number of errors: violated assertions and runs that end
# before the goal of the model.
check() { search SAFETY '' "$@"; }

# cycles MODEL NAME EXPECTED MODEL-FLAGS...: the errors are runs without an end.
cycles() { search NP -l "$@"; }

search() {
  local kind=$1 run=$2 model=$3 name=$4 expected=$5 log errors level=-O2
  shift 5
  log=$kFolder/$model-$(tr ' ,:' '-_-' <<<"$name").log
  [ "$expected" = 1 ] && level=-O0 # a short search
  (
    cd "$kFolder" && spin "$@" -a "../../tests/model/$model.pml" &&
      gcc -w $level -D"$kind" -DNOREDUCE -DMEMLIM=$kMemoryMb -o pan pan.c && ./pan -m100000 $run
  ) >"$log" 2>&1
  errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' "$log")
  # A search that was cut short proves nothing, even if it found no error.
  grep -Eq 'max search depth too small|Search not completed' "$log" && [ "$expected" = 0 ] && errors=unknown
  awk -v name="$name" '/depth reached/ { depth = $6 + 0 } / states, stored/ { states = $1 }
    END { printf "  %-52s %9d states, depth %5d: ", name, states, depth }' "$log"
  if [ "$errors" = "$expected" ]; then
    passed=$((passed + 1))
    [ "$expected" = 0 ] && echo holds || echo "is found: $(sed -n 's/^pan:1: //p' "$log")"
  else
    failed=$((failed + 1))
    echo "expected $expected errors, got ${errors:-none}; see $log"
  fi
}

check redlock 'two attempts, a LOCK that arrives twice' 0 -DATTEMPTS=2 -DRESENT=1
check redlock 'two attempts, a counter that jumps ahead' 0 -DATTEMPTS=2 -DRESENT=0 -DJUMPS
check redlock 'two attempts, LOCKs of renewals' 0 -DATTEMPTS=2 -DRESENT=0 -DHEALS=2
check redlock 'two next waiters, different hints' 0 -DATTEMPTS=2 -DRESENT=0 -DWAITS
check redlock 'flaw: a counter is reset' 1 -DATTEMPTS=2 -DRESENT=0 -DCOUNTER_RESET
check redlock 'flaw: a larger FENCE reply counts' 1 -DATTEMPTS=2 -DRESENT=1 -DLARGER_FENCE_COUNTS
check healing 'servers forget, a quorum remembers' 0
check healing 'servers forget, and are RECOVERING' 0 -DRECOVERS
check healing 'waits on all servers' 0 -DWAITS
check healing 'waits on all servers, RECOVERING' 0 -DWAITS -DRECOVERS
check healing 'flaw: old grants of a wait count' 1 -DWAITS -DOLD_ROUND_COUNTS
check healing 'flaw: a majority forgets at once' 1 -DFORGETS
check healing 'flaw: answers of another round count' 1 -DOLD_ROUND_COUNTS
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]

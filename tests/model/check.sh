#!/usr/bin/env bash
# Checks the models here with spin: each holds in every state, and each flaw breaks it.
# Prints states and depth of each run. The last line is "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

readonly kFolder=build/model
readonly kMemoryMb=1000
passed=0
failed=0
mkdir -p "$kFolder"

# check MODEL NAME EXPECTED MODEL-FLAGS...: EXPECTED is the number of errors: violated assertions and runs
# that end before the goal of the model.
check() { search -DSAFETY '' "$@"; }

# cycles MODEL NAME EXPECTED MODEL-FLAGS...: the errors are runs without an end.
cycles() { search -DNP -l "$@"; }

search() {
  local kind=$1 run=$2 model=$3 name=$4 expected=$5 log errors level=-O1
  shift 5
  log=$kFolder/$model-$(tr ' ,:' '-_-' <<<"$name").log
  [ "$expected" = 1 ] && level=-O0 # a short search
  (
    cd "$kFolder" && spin "$@" -a "../../tests/model/$model.pml" &&
      gcc -w $level $kind -DNOREDUCE -DMEMLIM=$kMemoryMb -o pan pan.c && ./pan -m100000 $run
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
check redlock 'two attempts, some LOCKs without a hint' 0 -DATTEMPTS=2 -DRESENT=0 -DSOME_WITHOUT_HINT
check redlock 'flaw: a counter is reset' 1 -DATTEMPTS=2 -DRESENT=0 -DCOUNTER_RESET
check redlock 'flaw: a larger FENCE reply counts' 1 -DATTEMPTS=2 -DRESENT=1 -DLARGER_FENCE_COUNTS
check healing 'servers forget, a quorum remembers' 0
check healing 'servers forget, and are RECOVERING' 0 -DRECOVERS
check healing 'flaw: a majority forgets at once' 1 -DFORGETS
check healing 'flaw: answers of another round count' 1 -DOLD_ROUND_COUNTS

# The wait by ticket, its order: three servers.
check waiting 'three clients, each cut' 0
cycles waiting 'three clients, each cut: no cycle' 0
check waiting 'three clients, the first may vanish' 0 -DHERMITS=1
check waiting 'two clients, a cut at any moment, a late LOCK' 0 -DCLIENTS=2 -DCUTS=1 -DLATES=1
cycles waiting 'two clients, a cut at any moment: no cycle' 0 -DCLIENTS=2 -DCUTS=1
check waiting 'two clients, a cut at any moment, one may vanish' 0 -DCLIENTS=2 -DCUTS=1 -DHERMITS=1
cycles waiting 'two clients, the first may vanish: no cycle' 0 -DCLIENTS=2 -DHERMITS=1
check waiting 'two clients, holds end by words only' 0 -DCLIENTS=2 -DCUTS=1 -DWORDS_ONLY
check waiting 'two clients, tickets from clocks and floors' 0 -DCLIENTS=2 -DCLOCKS
check waiting 'flaw: a vote is not asked back' 1 -DCLIENTS=2 -DNO_INQUIRE
cycles waiting 'flaw: a vote for the largest ticket' 1 -DCLIENTS=2 -DLAST_COME
check waiting 'flaw: a server changes tickets' 1 -DCLIENTS=2 -DOWN_ORDER
cycles waiting 'flaw: a silent client gets votes' 1 -DCLIENTS=2 -DHERMITS=1 -DSILENT_ELIGIBLE
cycles waiting 'flaw: a deaf client gets votes' 1 -DCLIENTS=2 -DHERMITS=1 -DDEAF_ELIGIBLE
check waiting 'flaw: LOCK without HAS extends the vote' 1 -DCLIENTS=2 -DHERMITS=1 -DEXTENDS_UNKNOWN
check waiting 'flaw: a client without majority keeps votes' 1 -DCLIENTS=2 -DHERMITS=1 -DNO_PARKING
check waiting 'flaw: confirmed votes without majority are kept' 1 -DCLIENTS=2 -DCUTS=1 -DKEEPS_HOLDS
check waiting 'flaw: nobody relays UNLOCK' 1 -DCLIENTS=2 -DCUTS=1 -DWORDS_ONLY -DNO_RELAY
check waiting 'flaw: a later attempt ends no earlier one' 1 -DCLIENTS=2 -DCUTS=1 -DWORDS_ONLY -DNO_SLOT_RULE
check waiting 'flaw: the ticket is that of the clock' 1 -DCLIENTS=2 -DCLOCKS -DNO_RAISE
check waiting 'flaw: one floor fixes the ticket' 1 -DCLIENTS=2 -DCLOCKS -DONE_FLOOR
check waiting 'flaw: a final ticket stays provisional' 1 -DCLIENTS=2 -DCLOCKS -DSTAYS_PROVISIONAL

# The wait by ticket, its votes: messages that are late or lost, and tokens.
check votes 'two clients' 0 -DATTEMPTS=1
check votes 'two clients, two attempts, fewer tokens' 0 -DTOKENS=2
check votes 'three clients, fewer tokens' 0 -DATTEMPTS=1 -DCLIENTS=3 -DTOKENS=2
check votes 'two clients, the server of two quorums' 0 -DSERVERS=1 -DKEEPS
check votes 'three clients, the server of two quorums' 0 -DSERVERS=1 -DKEEPS -DCLIENTS=3 -DATTEMPTS=1
check votes 'flaw: a yielded vote counts again' 1 -DSERVERS=1 -DKEEPS -DYIELDED_COUNTS
check votes 'flaw: YIELD without token' 1 -DSERVERS=1 -DKEEPS -DYIELD_WITHOUT_TOKEN
check votes 'flaw: a vote after YIELD has the token before' 1 -DSERVERS=1 -DKEEPS -DTOKEN_AGAIN
check votes 'flaw: a server takes a vote back' 1 -DSERVERS=1 -DKEEPS -DTAKEN_BACK
check votes 'flaw: OVER ends a later attempt' 1 -DSERVERS=1 -DKEEPS -DRELAY_OF_SLOT
check votes 'flaw: the same number after UNLOCK' 1 -DSERVERS=1 -DKEEPS -DSAME_ATTEMPT
check votes 'flaw: LOCK of the next attempt too early' 1 -DSERVERS=1 -DKEEPS -DEARLY_ATTEMPT
check votes 'flaw: a vote dated by its arrival' 1 -DSERVERS=1 -DKEEPS -DDATED_BY_ARRIVAL
check votes 'flaw: a majority of different tokens' 1 -DATTEMPTS=1 -DANY_TOKENS
check votes 'flaw: a larger reply to RENEW counts' 1 -DSERVERS=1 -DKEEPS -DLARGER_COUNTS
check votes 'flaw: a larger reply to RENEW dates the vote' 1 -DSERVERS=1 -DKEEPS -DLARGER_DATES
check votes 'flaw: RENEW lowers the token of a hold' 1 -DSERVERS=1 -DKEEPS -DLOWERS
check votes 'flaw: RENEW does not raise the counter' 1 -DSERVERS=1 -DKEEPS -DCOUNTER_STAYS
printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" = 0 ]

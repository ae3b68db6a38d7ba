/* Fencing tokens of a lock on several servers that do not agree among themselves: what src/client/algorithm/redlock.h
 * says of tokens, for every order of events. All attempts are for one key; each has an owner of its own, and
 * any of them may be of one client or of several, at once or one after the other.
 *
 * Nothing here keeps a holder alone in time, and nothing has to. Holds end when a server likes: early, late, or
 * by an UNLOCK. Servers crash and lose all holds, which is no more than that as long as the counter stays:
 * which it does, or jumps ahead (JUMPS). A message that is on its way may never arrive, or after any other,
 * also when its attempt is long over; a LOCK may arrive twice. A client may take any part of the answers for
 * all that it has heard. Whatever happens:
 *   unique    two acquisitions never have one token
 *   ordered   an acquisition that began after another had succeeded has a larger token
 *
 * Flaws, which the check must find:
 *   COUNTER_RESET         a server that crashes forgets its counter
 *   LARGER_FENCE_COUNTS   a reply to FENCE counts that is larger than what was asked for
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#ifndef HINT
#define HINT 2 /* what a clock that is right says; another says 0 */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RESENT
#define RESENT 1 /* LOCKs that arrive twice */
#endif
#ifndef HEALS
#define HEALS 0 /* LOCKs of renewals, at any time after the acquisition, also long after the hold's end */
#endif
#define QUORUM (SERVERS / 2 + 1)
#define NOBODY ATTEMPTS
#define AT(a, s) ((a) * SERVERS + (s))

/* Servers. */
byte owner[SERVERS]; /* the attempt that holds the key here */
byte token[SERVERS]; /* of that hold */
byte counter[SERVERS];

/* Attempts. */
byte begun = 0;
byte hint[ATTEMPTS];
byte above[ATTEMPTS]; /* the largest token that had been acquired when it began */
byte fence[ATTEMPTS]; /* what its FENCE asks for; 0: none yet */
bool over[ATTEMPTS];  /* it has acquired the lock */

/* What has passed between an attempt and a server. */
bool arrived[ATTEMPTS * SERVERS]; /* its LOCK */
byte granted[ATTEMPTS * SERVERS]; /* the token in the reply to that; 0: none */
byte fenced[ATTEMPTS * SERVERS];  /* the token in the reply to FENCE */

/* The world. */
#if defined(COUNTER_RESET) || defined(JUMPS)
byte crashes = CRASHES;
#endif
byte resent = RESENT;
#if HEALS > 0
byte heals = HEALS;
byte own[ATTEMPTS]; /* the token that was acquired */
#endif
byte largest = 0;
int taken = 0; /* tokens that were acquired, a bit each */

#define LARGER(x, y) ((x) > (y) -> (x) : (y))

inline lock_arrives(a, s, known) {
  known = 0;
  if
  :: owner[s] == a -> known = token[s]
  :: owner[s] == NOBODY ->
    known = LARGER(counter[s] + 1, hint[a]);
    owner[s] = a;
    token[s] = known;
    counter[s] = known
  :: else
  fi
}

inline fence_arrives(a, s) {
  token[s] = LARGER(token[s], fence[a]);
  counter[s] = LARGER(counter[s], token[s]);
  if
  :: !over[a] -> fenced[AT(a, s)] = token[s]
  :: else
  fi
}

/* The grants of an attempt that are no larger than m. */
inline count_grants(a, m) {
  n = 0;
  for (i : 0 .. SERVERS - 1) {
    n = n + (granted[AT(a, i)] > 0 && granted[AT(a, i)] <= m)
  };
  i = 0
}

inline count_same(a, m) {
  n = 0;
  for (i : 0 .. SERVERS - 1) {
    n = n + (granted[AT(a, i)] == m)
  };
  i = 0
}

inline count_confirmed(a) {
  n = 0;
  for (i : 0 .. SERVERS - 1) {
#ifdef LARGER_FENCE_COUNTS
    n = n + (fenced[AT(a, i)] >= fence[a])
#else
    n = n + (fenced[AT(a, i)] == fence[a])
#endif
  };
  i = 0
}

inline acquire(a, t) {
  assert(t < 31); /* room for a bit */
  assert(!(taken & (1 << (t)))); /* unique */
  assert(t > above[a]);          /* ordered */
  taken = taken | (1 << (t));
  above[a] = 0;
  largest = LARGER(largest, t);
  over[a] = true;
#if HEALS > 0
  own[a] = t;
#endif
  for (i : 0 .. SERVERS - 1) { /* nobody looks at them any more */
    granted[AT(a, i)] = 0;
    fenced[AT(a, i)] = 0
  };
  i = 0
}

/* A reply that is larger tells of a grant that the client did not know. */
inline begin_fencing(a, m) {
  fence[a] = m;
  for (i : 0 .. SERVERS - 1) {
    fenced[AT(a, i)] = 0;
    if /* from now on it only counts that there is one */
    :: granted[AT(a, i)] > 0 && granted[AT(a, i)] <= m -> granted[AT(a, i)] = 1
    :: else
    fi
  };
  i = 0
}

/* Servers are alike: those worlds are one that differ in the order of the servers only. */
#define SWAP(x, y) n = x; x = y; y = n

inline sort_servers() {
  s = 1;
  do
  :: s < SERVERS ->
    key = 0;
    last = 0;
    for (a : 0 .. ATTEMPTS - 1) {
      key = key * 512 + arrived[AT(a, s)] * 256 + granted[AT(a, s)] * 16 + fenced[AT(a, s)];
      last = last * 512 + arrived[AT(a, s - 1)] * 256 + granted[AT(a, s - 1)] * 16 + fenced[AT(a, s - 1)]
    };
    if
    :: key < last || (key == last && (counter[s] < counter[s - 1] ||
         (counter[s] == counter[s - 1] && owner[s] < owner[s - 1]))) ->
      SWAP(owner[s], owner[s - 1]);
      SWAP(token[s], token[s - 1]);
      SWAP(counter[s], counter[s - 1]);
      for (a : 0 .. ATTEMPTS - 1) {
        SWAP(arrived[AT(a, s)], arrived[AT(a, s - 1)]);
        SWAP(granted[AT(a, s)], granted[AT(a, s - 1)]);
        SWAP(fenced[AT(a, s)], fenced[AT(a, s - 1)])
      };
      s = 1
    :: else -> s++
    fi
  :: else -> break
  od;
  a = 0;
  s = 0;
  n = 0;
  key = 0;
  last = 0
}

active proctype World() {
  byte a, s, i, n, m;
  int key, last;

  d_step {
    for (i : 0 .. SERVERS - 1) { owner[i] = NOBODY }
    i = 0
  }
end:
  do
  :: begun < ATTEMPTS -> atomic {
      if
      :: hint[begun] = 0
      :: hint[begun] = HINT
      fi;
      above[begun] = largest;
      begun++
    }
  :: begun > 0 -> atomic {
      select(a : 0 .. begun - 1);
      select(s : 0 .. SERVERS - 1);
      if
      :: !arrived[AT(a, s)] -> d_step {
          arrived[AT(a, s)] = true;
          lock_arrives(a, s, m);
          granted[AT(a, s)] = (over[a] -> 0 : m)
        }
      :: arrived[AT(a, s)] && resent > 0 ->
        resent--;
        d_step { lock_arrives(a, s, m) };
        if /* one of the two replies is heard */
        :: m > 0 && !over[a] -> granted[AT(a, s)] = m
        :: true
        fi
#if HEALS > 0
      :: over[a] && heals > 0 && owner[s] == NOBODY -> /* its client does not look at the token */
        heals--;
        d_step {
          owner[s] = a;
          token[s] = LARGER(counter[s] + 1, own[a]);
          counter[s] = token[s]
        }
#endif
      :: owner[s] == a && fence[a] > 0 -> d_step { fence_arrives(a, s) }
      :: owner[s] == a -> owner[s] = NOBODY; token[s] = 0 /* expiry, UNLOCK, or a crash */
      :: !over[a] && fence[a] == 0 && granted[AT(a, s)] > 0 -> /* a quorum of one token */
        m = granted[AT(a, s)];
        d_step { count_same(a, m) };
        if
        :: n >= QUORUM -> d_step { acquire(a, m) }
        :: else
        fi
      :: !over[a] && granted[AT(a, s)] > fence[a] -> /* the largest of those heard */
        m = granted[AT(a, s)];
        d_step { count_grants(a, m) };
        if
        :: n >= QUORUM -> d_step { begin_fencing(a, m) }
        :: else
        fi
      :: !over[a] && fenced[AT(a, s)] > fence[a] -> /* again, with the larger one */
        m = fenced[AT(a, s)];
        d_step { begin_fencing(a, m) }
      :: !over[a] && fence[a] > 0 && fenced[AT(a, s)] == fence[a] ->
        d_step { count_confirmed(a) };
        if
        :: n >= QUORUM -> d_step { acquire(a, fence[a]) }
        :: else
        fi
#ifdef COUNTER_RESET
      :: crashes > 0 -> crashes--; owner[s] = NOBODY; token[s] = 0; counter[s] = 0
#endif
#ifdef JUMPS /* a crash that is not clean: the counter goes on from what was kept in reserve */
      :: crashes > 0 -> crashes--; owner[s] = NOBODY; token[s] = 0; counter[s] = counter[s] + 2
#endif
      :: else /* nothing of this pair can happen now */
      fi;
      m = 0;
      d_step { sort_servers() }
    }
  od
}

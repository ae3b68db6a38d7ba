/* Fencing tokens of a lock on several independent servers: the rules of src/client/algorithm/redlock.h for
 * tokens, in every order of events. All attempts are for one key, and each has its own owner. They may be of one
 * client or of several, concurrent or in sequence.
 *
 * With SOME_WITHOUT_HINT a LOCK of an attempt may have no hint, beside others that have it: a server whose clock is
 * far behind refuses the hint, and the client asks it again without one.
 *
 * The model does not keep a holder alone in time, and the tokens do not need that. A server may end a hold at any
 * moment: early, late, or by an UNLOCK. A crash that loses all holds has the same effect if the counter stays. The
 * counter stays, or jumps ahead (JUMPS). A message may never arrive, or arrive after any other, also long after the
 * end of its attempt. A LOCK may arrive twice. A client may act on any subset of the replies. In every order:
 *   unique    two acquisitions never have one token
 *   ordered   an acquisition that began after another had succeeded has a larger token
 *
 * Flaws, which the check must find:
 *   COUNTER_RESET         a crash resets the counter of a server
 *   LARGER_FENCE_COUNTS   a client counts a reply to FENCE that is larger than its request
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#ifndef HINT
#define HINT 2 /* the hint of a correct clock; another clock gives 0 */
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
byte fence[ATTEMPTS]; /* the token in its FENCE; 0: no FENCE yet */
bool over[ATTEMPTS];  /* it has acquired the lock */

/* The messages between an attempt and a server. */
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

inline lock_arrives(a, s, asks, known) {
  known = 0;
  if
  :: owner[s] == a -> known = token[s]
  :: owner[s] == NOBODY ->
    known = LARGER(counter[s] + 1, asks);
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
  for (i : 0 .. SERVERS - 1) { /* no attempt reads them any more */
    granted[AT(a, i)] = 0;
    fenced[AT(a, i)] = 0
  };
  i = 0
}

/* A larger reply shows a grant that the client did not know. */
inline begin_fencing(a, m) {
  fence[a] = m;
  for (i : 0 .. SERVERS - 1) {
    fenced[AT(a, i)] = 0;
    if /* from now on only its existence counts */
    :: granted[AT(a, i)] > 0 && granted[AT(a, i)] <= m -> granted[AT(a, i)] = 1
    :: else
    fi
  };
  i = 0
}

/* Servers are interchangeable: states that differ only in the order of the servers are one state. */
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
          lock_arrives(a, s, hint[a], m);
          granted[AT(a, s)] = (over[a] -> 0 : m)
        }
#ifdef SOME_WITHOUT_HINT
      :: !arrived[AT(a, s)] && hint[a] > 0 -> d_step {
          arrived[AT(a, s)] = true;
          lock_arrives(a, s, 0, m);
          granted[AT(a, s)] = (over[a] -> 0 : m)
        }
#endif
      :: arrived[AT(a, s)] && resent > 0 ->
        resent--;
        d_step { lock_arrives(a, s, hint[a], m) };
        if /* one of the two replies arrives */
        :: m > 0 && !over[a] -> granted[AT(a, s)] = m
        :: true
        fi
#if HEALS > 0
      :: over[a] && heals > 0 && owner[s] == NOBODY -> /* its client ignores the token */
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
      :: !over[a] && granted[AT(a, s)] > fence[a] -> /* the largest of the received tokens */
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
#ifdef JUMPS /* after an unclean crash the counter continues from its reserve */
      :: crashes > 0 -> crashes--; owner[s] = NOBODY; token[s] = 0; counter[s] = counter[s] + 2
#endif
      :: else /* nothing of this pair can happen now */
      fi;
      m = 0;
      d_step { sort_servers() }
    }
  od
}

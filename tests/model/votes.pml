/* The wait by ticket, its votes: no two clients are inside at once, and tokens of entries rise. The rules are those
 * of docs/safety.md. Every order of events is checked, without clocks and without tickets: a server may vote for any
 * wait, and may inquire any vote at any time. The order of tickets matters only for waiting.pml.
 *
 * A message may be lost, or arrive later than any other, also long after the end of its attempt. LOCK ... TICKET of
 * the present attempt and of earlier ones, UNLOCK, and the relay (OVER) of an attempt that is over may arrive at any
 * time and any number of times. So may the last YIELD and a RENEW. Of the votes and confirmations of a server for a
 * client, one may be late by any time. A server may forget which attempts are over at any time.
 *
 * The model has no clock, only a consequence of time. A client dates a vote no later than its grant or extension.
 * So a vote or hold expires only if its client does not count it, and then the client cannot count it any more.
 * A client may stop to count a vote at any time. It is inside while it counts a quorum.
 *
 * With SERVERS=1 this server is the one that any two quorums share, of any number of servers: QUORUM is 1, and the
 * tokens of the other votes are any.
 *
 * Messages that a correct client and server would not act on any more are dropped at once, but not with KEEPS: some
 * flaws need them. A hint for the token needs no event: it is like grants that nobody got.
 *
 * Flaws, which the check must find:
 *   YIELDED_COUNTS        a yielded vote counts again when its message arrives once more (C4)
 *   YIELD_WITHOUT_TOKEN   YIELD ends a later vote of the same owner (S5)
 *   TOKEN_AGAIN           a vote after YIELD has the token of the one before (S1)
 *   TAKEN_BACK            a server takes a vote back before its expiry (S4)
 *   RELAY_OF_SLOT         the relay of an attempt ends a later attempt of its slot (S7)
 *   SAME_ATTEMPT          a client that has given up goes on under the same number (S8)
 *   EARLY_ATTEMPT         a client sends LOCK of the next attempt while it is inside (S8)
 *   DATED_BY_ARRIVAL      a vote counts from the arrival of its message (C2)
 *   ANY_TOKENS            a majority with different tokens is a quorum (C3)
 *   LARGER_COUNTS         a reply to RENEW that is larger than its request counts (C3)
 *   LARGER_DATES          such a reply dates the vote, although the server has changed nothing (C3)
 *   LOWERS                RENEW with a smaller token lowers the token of the hold (S5)
 *   COUNTER_STAYS         RENEW raises the token of the hold, but not the counter (S5)
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#ifndef CLIENTS
#define CLIENTS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2 /* of each client */
#endif
#ifndef TOKENS
#define TOKENS 3 /* a server gives no larger token */
#endif
#define QUORUM (SERVERS / 2 + 1)
#define NOBODY CLIENTS
#define AT(c, s) ((c) * SERVERS + (s))
#define LARGER(x, y) ((x) > (y) -> (x) : (y))

/* Servers. */
byte owner[SERVERS];
byte attempt[SERVERS]; /* of the owner */
byte token[SERVERS];
byte counter[SERVERS];

/* Clients. */
byte number[CLIENTS]; /* of the present or last attempt; 0: none yet */
bool alive[CLIENTS];  /* that attempt is not over */
byte inside[CLIENTS]; /* the token of the entry; 0: outside */

/* A client and a server; all for the present attempt. */
byte counts[CLIENTS * SERVERS];  /* the token of the vote that the client counts; 0: none */
byte yielded[CLIENTS * SERVERS]; /* it has yielded votes up to this token */
byte expired[CLIENTS * SERVERS]; /* the time of votes up to this token is over */
byte late[CLIENTS * SERVERS];    /* a vote or confirmation that has not arrived: its token */
byte asks[CLIENTS * SERVERS];    /* RENEW ... TOKEN that was sent: its token */

#ifdef SAME_ATTEMPT
bool again[CLIENTS]; /* UNLOCK of the present attempt was sent */
#endif
byte largest = 0; /* token of an entry */

#ifdef YIELDED_COUNTS
#define NOT_YIELDED(c, s, t) 1
#else
#define NOT_YIELDED(c, s, t) ((t) > yielded[AT(c, s)])
#endif
#ifdef DATED_BY_ARRIVAL
#define NOT_EXPIRED(c, s, t) 1
#else
#define NOT_EXPIRED(c, s, t) ((t) > expired[AT(c, s)])
#endif
#ifdef YIELD_WITHOUT_TOKEN
#define YIELDED(c, s) (yielded[AT(c, s)] > 0)
#else
#define YIELDED(c, s) (yielded[AT(c, s)] > 0 && token[s] == yielded[AT(c, s)])
#endif
#ifdef LOWERS
#define MAY_SET(s, t) 1
#else
#define MAY_SET(s, t) (token[s] <= (t))
#endif

#ifdef LARGER_DATES
bool misdated[CLIENTS * SERVERS];
#define MISDATED(c, s) misdated[AT(c, s)]
#else
#define MISDATED(c, s) 0
#endif

#define OWN(c, s) (owner[s] == (c) && attempt[s] == number[c] && alive[c])

/* The quorum of client c with token t, or with any tokens if t is 0: n is its size. */
inline count_votes(c, t) {
  n = 0;
  for (i : 0 .. SERVERS - 1) {
    n = n + (counts[AT(c, i)] > 0 && (t == 0 || counts[AT(c, i)] == t))
  };
  i = 0
}

inline largest_counted(c) {
  m = 0;
  for (i : 0 .. SERVERS - 1) { m = LARGER(m, counts[AT(c, i)]) };
  i = 0
}

inline forget(c) {
  inside[c] = 0;
  for (i : 0 .. SERVERS - 1) {
#ifdef LARGER_DATES
    misdated[AT(c, i)] = false;
#endif
    counts[AT(c, i)] = 0;
    yielded[AT(c, i)] = 0;
    expired[AT(c, i)] = 0;
    late[AT(c, i)] = 0;
    asks[AT(c, i)] = 0
  };
  i = 0
}

inline end_vote(s) {
  owner[s] = NOBODY;
  attempt[s] = 0;
  token[s] = 0
}

inline grant(c, a, s) {
  owner[s] = c;
  attempt[s] = a;
#ifdef TOKEN_AGAIN
  token[s] = LARGER(counter[s], 1);
#else
  token[s] = counter[s] + 1;
#endif
  counter[s] = LARGER(counter[s], token[s])
}

/* The client hears from s that it has a vote with token t. While it is inside, only the fact counts. */
inline hear(c, s, t) {
  if
  :: NOT_YIELDED(c, s, t) && NOT_EXPIRED(c, s, t) -> counts[AT(c, s)] = (inside[c] > 0 -> inside[c] : t)
  :: else
  fi
}

inline enter(c, t) {
  for (i : 0 .. CLIENTS - 1) { assert(i == c || inside[i] == 0) }; /* alone */
  assert(t > largest);                                             /* rising */
  largest = t;
  inside[c] = t;
  for (i : 0 .. SERVERS - 1) {
    counts[AT(c, i)] = (counts[AT(c, i)] == t -> t : 0)
  };
  i = 0
}

/* Messages that cannot have an effect any more are as good as lost. */
inline drop_messages() {
  for (c : 0 .. CLIENTS - 1) {
    for (s : 0 .. SERVERS - 1) {
      if
      :: late[AT(c, s)] <= yielded[AT(c, s)] || late[AT(c, s)] <= expired[AT(c, s)] -> late[AT(c, s)] = 0
      :: else
      fi;
      if /* later tokens are larger */
      :: late[AT(c, s)] == 0 && !(OWN(c, s) && token[s] <= yielded[AT(c, s)]) -> yielded[AT(c, s)] = 0
      :: else
      fi;
      if
      :: late[AT(c, s)] == 0 -> expired[AT(c, s)] = 0
      :: else
      fi;
      if
      :: asks[AT(c, s)] <= counter[s] -> asks[AT(c, s)] = 0
      :: else
      fi
    }
  }
}

/* Servers are interchangeable: states that differ only in the order of the servers are one state. */
#define SWAP(x, y) n = x; x = y; y = n
#define PAIR(c, s) (counts[AT(c, s)] + 8 * (yielded[AT(c, s)] + 8 * (expired[AT(c, s)] + 8 * (late[AT(c, s)] + 8 * asks[AT(c, s)]))))

inline sort_servers() {
  s = 1;
  do
  :: s < SERVERS ->
    x = owner[s] + 8 * (token[s] + 8 * (counter[s] + 8 * attempt[s]));
    y = owner[s - 1] + 8 * (token[s - 1] + 8 * (counter[s - 1] + 8 * attempt[s - 1]));
    for (c : 0 .. CLIENTS - 1) {
      if
      :: x == y -> x = PAIR(c, s); y = PAIR(c, s - 1)
      :: else
      fi
    };
    if
    :: x < y ->
      SWAP(owner[s], owner[s - 1]);
      SWAP(attempt[s], attempt[s - 1]);
      SWAP(token[s], token[s - 1]);
      SWAP(counter[s], counter[s - 1]);
      for (c : 0 .. CLIENTS - 1) {
        SWAP(counts[AT(c, s)], counts[AT(c, s - 1)]);
#ifdef LARGER_DATES
        SWAP(misdated[AT(c, s)], misdated[AT(c, s - 1)]);
#endif
        SWAP(yielded[AT(c, s)], yielded[AT(c, s - 1)]);
        SWAP(expired[AT(c, s)], expired[AT(c, s - 1)]);
        SWAP(late[AT(c, s)], late[AT(c, s - 1)]);
        SWAP(asks[AT(c, s)], asks[AT(c, s - 1)])
      };
      s = 1
    :: else -> s++
    fi
  :: else -> break
  od;
  x = 0;
  y = 0
}

active proctype World() {
  byte c, s, i, n, m;
  int x, y;

  d_step {
    for (i : 0 .. SERVERS - 1) { owner[i] = NOBODY }
    i = 0
  }
end:
  do
  :: atomic {
      select(c : 0 .. CLIENTS - 1);
      select(s : 0 .. SERVERS - 1);
      if
      /* the client: a new attempt; its end: the client leaves, gives up, or parks */
      :: !alive[c] && number[c] < ATTEMPTS ->
        alive[c] = true;
        number[c]++
#ifdef SAME_ATTEMPT
      :: !alive[c] && number[c] > 0 && !again[c] ->
        alive[c] = true;
        again[c] = true
      :: owner[s] == c && again[c] -> d_step { end_vote(s) }
#endif
      :: alive[c] -> d_step {
          alive[c] = false;
          forget(c)
        }
      /* LOCK ... TICKET of an attempt arrives: a vote, and an attempt before it is over */
      :: number[c] > 0 && (owner[s] == NOBODY || owner[s] == c) && counter[s] < TOKENS ->
        if
        :: m = number[c]
        :: number[c] > 1 -> m = number[c] - 1
#ifdef EARLY_ATTEMPT
        :: number[c] < ATTEMPTS -> m = number[c] + 1
#endif
        fi;
        if
        :: owner[s] == NOBODY || attempt[s] < m -> d_step { grant(c, m, s) }
        :: else
        fi
      /* the vote arrives, or it is late: then an earlier one does not arrive */
      :: OWN(c, s) -> d_step { hear(c, s, token[s]) }
      :: OWN(c, s) && inside[c] == 0 -> late[AT(c, s)] = token[s]
      :: late[AT(c, s)] > 0 -> d_step {
          hear(c, s, late[AT(c, s)]);
          late[AT(c, s)] = 0
        }
      /* the time of a vote ends at the client; then at the server */
      :: counts[AT(c, s)] > 0 ->
        counts[AT(c, s)] = 0;
#ifdef LARGER_DATES
        misdated[AT(c, s)] = false;
#endif
        d_step { count_votes(c, 0) };
        if
        :: inside[c] > 0 && n < QUORUM -> d_step { alive[c] = false; forget(c) }
        :: else
        fi
      :: owner[s] == c && (!OWN(c, s) || counts[AT(c, s)] == 0 || MISDATED(c, s)) -> d_step {
          if
          :: OWN(c, s) -> expired[AT(c, s)] = token[s]
          :: else
          fi;
          end_vote(s)
        }
#ifdef TAKEN_BACK
      :: owner[s] == c && inside[c] == 0 -> d_step { end_vote(s) }
#endif
      /* INQUIRE arrives, and the client yields */
      :: OWN(c, s) && inside[c] == 0 -> d_step {
          yielded[AT(c, s)] = (counts[AT(c, s)] > 0 -> counts[AT(c, s)] : token[s]);
          counts[AT(c, s)] = 0
        }
      /* YIELD arrives */
      :: OWN(c, s) && YIELDED(c, s) -> d_step { end_vote(s) }
      /* UNLOCK arrives, or the relay of an attempt that is over */
      :: owner[s] == c && (attempt[s] < number[c] || (attempt[s] == number[c] && !alive[c])) ->
        d_step { end_vote(s) }
#ifdef RELAY_OF_SLOT
      :: owner[s] == c && number[c] > 1 -> d_step { end_vote(s) }
#endif
      /* the client confirms: with a majority of different tokens, or inside */
#if SERVERS == 1
      :: alive[c] && inside[c] == 0 ->
        select(m : 1 .. TOKENS);
        if
        :: counts[AT(c, s)] < m -> asks[AT(c, s)] = m
        :: else
        fi
#else
      :: alive[c] && inside[c] == 0 ->
        d_step { count_votes(c, 0); largest_counted(c) };
        if
        :: n >= QUORUM && counts[AT(c, s)] < m -> asks[AT(c, s)] = m
        :: else
        fi
#endif
      :: inside[c] > 0 -> asks[AT(c, s)] = inside[c]
      /* RENEW ... TOKEN arrives, and its answer does, or it is late */
      :: OWN(c, s) && asks[AT(c, s)] > 0 && MAY_SET(s, asks[AT(c, s)]) ->
        d_step {
          m = asks[AT(c, s)];
          token[s] = m;
#ifndef COUNTER_STAYS
          counter[s] = LARGER(counter[s], m)
#endif
        };
        if
        :: d_step { hear(c, s, m) }
        :: inside[c] == 0 -> late[AT(c, s)] = m
        fi
      /* the same, but the server has a larger token: it changes nothing */
      :: OWN(c, s) && asks[AT(c, s)] > 0 && !MAY_SET(s, asks[AT(c, s)]) -> d_step {
#if defined(LARGER_COUNTS)
          hear(c, s, asks[AT(c, s)]);
#elif defined(LARGER_DATES)
          hear(c, s, token[s]);
          misdated[AT(c, s)] = true;
#else
          counts[AT(c, s)] = (counts[AT(c, s)] > 0 && inside[c] == 0 -> token[s] : counts[AT(c, s)]);
#endif
          asks[AT(c, s)] = token[s]
        }
      /* the client enters */
      :: alive[c] && inside[c] == 0 && counts[AT(c, s)] > 0 ->
        m = counts[AT(c, s)];
#ifdef ANY_TOKENS
        d_step { count_votes(c, 0) };
#else
        d_step { count_votes(c, m) };
#endif
        if
        :: n >= QUORUM -> d_step { enter(c, m) }
        :: else
        fi
      :: else
      fi;
      d_step {
#ifndef KEEPS
        drop_messages();
#endif
        sort_servers();
        c = 0;
        s = 0;
        n = 0;
        m = 0
      }
    }
  od
}

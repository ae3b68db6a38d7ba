/* The wait by ticket, its order: each client that reaches a majority enters, whatever links break. The rules are
 * those of docs/safety.md; votes.pml has tokens and late messages.
 *
 * A link of a client and a server carries requests and answers, or only one of them, or nothing. The cut, the state
 * of all links, is there from the start, or changes CUTS times at any moment. HERMITS is a mask of the
 * clients that may lose all links, as a client that vanishes does; the others always reach a majority. LATES requests of old connections
 * arrive at any time, whatever the links.
 *
 * A request and its answer are one step, and so are INQUIRE and its answer. There is no clock, only consequences of
 * time. Where a link works in both directions, no time ends. Otherwise the client stops to count its vote there, then
 * the vote or hold expires, and the wait is not eligible any more.
 *
 * The check: at most one client is inside. Each run ends (no cycle), and at its end each client that reaches a
 * majority has entered (no invalid end state). So no fairness is assumed: an event that stays possible happens.
 *
 * With WORDS_ONLY time ends less: the vote or hold of an attempt that is over does not expire while its client reaches
 * a majority. Only UNLOCK, a later attempt or the relay end it. With CLOCKS tickets come from clocks and floors (C1),
 * and a ticket that is fixed at a majority is smaller than each one that begins later. Without CLOCKS the order of
 * the tickets is that of the clients.
 *
 * Flaws, which the check must find:
 *   NO_INQUIRE        a vote is not asked back (S4)
 *   LAST_COME         a server votes for the largest ticket (S1)
 *   OWN_ORDER         a server changes tickets (S9)
 *   SILENT_ELIGIBLE   the wait of a silent client stays eligible (S2, S6)
 *   DEAF_ELIGIBLE     a client need not show that it hears the server (S2)
 *   EXTENDS_UNKNOWN   LOCK without HAS extends the vote (S3)
 *   NO_PARKING        a client that reaches a minority keeps its votes (C6)
 *   KEEPS_HOLDS       a client that loses its majority after RENEW keeps what RENEW has confirmed (C4)
 *   NO_RELAY          a server hears of the end of an attempt by its own client only (S7; with WORDS_ONLY)
 *   NO_SLOT_RULE      a later attempt does not end an earlier one (S8; with WORDS_ONLY)
 *   NO_RAISE          the ticket is that of the clock (C1)
 *   ONE_FLOOR         the floor of one server fixes the ticket (C1)
 *   STAYS_PROVISIONAL a ticket that was there at once is not sent again as final (C1)
 */
#define SERVERS 3
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef HERMITS
#define HERMITS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef LATES
#define LATES 0
#endif
#define QUORUM 2
#define NOBODY CLIENTS
#define AT(c, s) ((c) * SERVERS + (s))
#define LARGER(x, y) ((x) > (y) -> (x) : (y))

/* Links. */
#define REQUESTS 1
#define ANSWERS 2
#define BOTH 3
byte link[CLIENTS * SERVERS];
byte cuts = CUTS; /* changes that may come */
#if LATES > 0
byte lates = LATES;
#endif

/* Servers. */
byte owner[SERVERS];
byte attempt[SERVERS];         /* of the owner */
bool firm[SERVERS];            /* confirmed: a hold, not a vote */
byte wait[CLIENTS * SERVERS];  /* the attempt that waits; 0: none */
bool fresh[CLIENTS * SERVERS]; /* this wait is eligible */
byte over[CLIENTS * SERVERS];  /* the newest attempt that is known to be over */

/* Clients. */
#define WAITING 0
#define INSIDE 1
#define PARKED 2
#define DONE 3
#define OUTSIDE 4
byte phase[CLIENTS];
byte number[CLIENTS];            /* of the attempt */
bool counts[CLIENTS * SERVERS];  /* the vote of this server */
bool refuses[CLIENTS * SERVERS]; /* the present vote was yielded, but YIELD was lost */

#ifdef CLOCKS
byte ticket[CLIENTS];
byte most[CLIENTS];  /* the largest floor in an answer */
byte above[CLIENTS]; /* the largest ticket that was fixed at a majority when this client began */
bool fixed[CLIENTS];
#ifdef STAYS_PROVISIONAL
bool raised[CLIENTS]; /* the ticket has changed */
#endif
bool told[CLIENTS * SERVERS];  /* the client has heard the floor of this server */
byte known[CLIENTS * SERVERS]; /* the ticket at the server */
bool final[CLIENTS * SERVERS]; /* the server knows that this ticket is fixed */
byte floor[SERVERS];
#endif

hidden byte i, x, y; /* for one step only */
hidden int here, there;

#define SENDS(c, s) ((link[AT(c, s)] & REQUESTS) > 0)
#define HEARS(c, s) ((link[AT(c, s)] & ANSWERS) > 0)
#define WORKS(c, s) (link[AT(c, s)] == BOTH)
#define REACHES(c) (WORKS(c, 0) + WORKS(c, 1) + WORKS(c, 2))
#define VOTES(c) (counts[AT(c, 0)] + counts[AT(c, 1)] + counts[AT(c, 2)])
#define ALIVE(c) (phase[c] <= INSIDE)
#define HAS(c, s) (owner[s] == (c) && attempt[s] == number[c] && ALIVE(c))

/* The order of tickets. */
#ifdef CLOCKS
#define LESS(d, c, s) (known[AT(d, s)] < known[AT(c, s)] || (known[AT(d, s)] == known[AT(c, s)] && (d) < (c)))
#define INQUIRES(d, s) final[AT(d, s)]
#else
#ifdef OWN_ORDER
#define LESS(d, c, s) (((d) + (s)) % CLIENTS < ((c) + (s)) % CLIENTS)
#else
#define LESS(d, c, s) ((d) < (c))
#endif
#define INQUIRES(d, s) 1
#endif
#ifdef LAST_COME
#define BEFORE(d, c, s) LESS(c, d, s)
#else
#define BEFORE(d, c, s) LESS(d, c, s)
#endif

inline grant(s) {
  if
  :: owner[s] == NOBODY ->
    x = NOBODY;
    for (i : 0 .. CLIENTS - 1) {
      if
      :: wait[AT(i, s)] > 0 && fresh[AT(i, s)] && (x == NOBODY || BEFORE(i, x, s)) -> x = i
      :: else
      fi
    };
    if
    :: x != NOBODY ->
      owner[s] = x;
      attempt[s] = wait[AT(x, s)];
      firm[s] = false;
      refuses[AT(x, s)] = false;
      counts[AT(x, s)] = HEARS(x, s) && HAS(x, s)
    :: else
    fi
  :: else
  fi
}

inline end_vote(s) {
  owner[s] = NOBODY;
  attempt[s] = 0;
  firm[s] = false
}

inline end_wait(c, s) {
  wait[AT(c, s)] = 0;
  fresh[AT(c, s)] = false
}

/* Server s learns that attempt a of client d is over (S7). */
inline learn(d, s, a) {
  over[AT(d, s)] = LARGER(over[AT(d, s)], a);
  if
  :: wait[AT(d, s)] > 0 && wait[AT(d, s)] <= a -> end_wait(d, s)
  :: else
  fi;
  if
  :: owner[s] == d && attempt[s] <= a -> end_vote(s)
  :: else
  fi
}

/* LOCK ... TICKET of attempt a. */
inline wait_arrives(c, s, a, shows) {
#ifndef NO_SLOT_RULE
  learn(c, s, a - 1);
#endif
  fresh[AT(c, s)] = fresh[AT(c, s)] || wait[AT(c, s)] != a || shows;
  wait[AT(c, s)] = a;
  grant(s)
}

#ifdef CLOCKS
#ifdef STAYS_PROVISIONAL
#define SENDS_FINAL(c) (fixed[c] && raised[c])
#else
#define SENDS_FINAL(c) fixed[c]
#endif

inline ticket_arrives(c, s) {
  y = floor[s];
  floor[s] = LARGER(floor[s], ticket[c]);
  known[AT(c, s)] = LARGER(known[AT(c, s)], ticket[c]);
  final[AT(c, s)] = SENDS_FINAL(c)
}

/* The answer: the floor before the request. */
inline floor_arrives(c, s) {
  if
  :: HEARS(c, s) && !fixed[c] ->
    told[AT(c, s)] = true;
    most[c] = LARGER(most[c], y);
    if
#ifdef ONE_FLOOR
    :: true ->
#else
    :: told[AT(c, 0)] + told[AT(c, 1)] + told[AT(c, 2)] >= QUORUM ->
#endif
      fixed[c] = true;
#ifdef STAYS_PROVISIONAL
      raised[c] = ticket[c] <= most[c];
#endif
#ifndef NO_RAISE
      ticket[c] = LARGER(ticket[c], most[c] + 1);
#endif
      assert(ticket[c] > above[c])
    :: else
    fi
  :: else
  fi
}

/* The ticket of c is fixed, and a majority of servers has it. */
#define HAS_FIXED(c, s) (wait[AT(c, s)] > 0 && final[AT(c, s)] && known[AT(c, s)] == ticket[c])
#define FIXED(c) (phase[c] == WAITING && HAS_FIXED(c, 0) + HAS_FIXED(c, 1) + HAS_FIXED(c, 2) >= QUORUM)
#define TICKET_NEWS(c, s) (known[AT(c, s)] != ticket[c] || (SENDS_FINAL(c) && !final[AT(c, s)]) || (WORKS(c, s) && !fixed[c] && !told[AT(c, s)]))
#else
#define TICKET_NEWS(c, s) 0
#endif

inline forget(c) {
  for (y : 0 .. SERVERS - 1) {
    counts[AT(c, y)] = false;
    refuses[AT(c, y)] = false
  }
}

/* The attempt is over: UNLOCK to all servers. */
inline end_attempt(c) {
  forget(c);
  for (y : 0 .. SERVERS - 1) {
    if
    :: SENDS(c, y) ->
      learn(c, y, number[c]);
      grant(y)
    :: else
    fi
  }
}

/* Servers are interchangeable: states that differ only in the order of the servers are one state. */
#define SWAP(a, b) x = a; a = b; b = x
#define PAIR(c, s) (link[AT(c, s)] + 4 * (wait[AT(c, s)] + 4 * (over[AT(c, s)] + 4 * (fresh[AT(c, s)] + 2 * (counts[AT(c, s)] + 2 * refuses[AT(c, s)])))))

inline order(a, b) {
  here = owner[a] + 4 * (attempt[a] + 4 * firm[a]);
  there = owner[b] + 4 * (attempt[b] + 4 * firm[b]);
  for (i : 0 .. CLIENTS - 1) {
    if
    :: here == there -> here = PAIR(i, a); there = PAIR(i, b)
    :: else
    fi
  };
#ifdef CLOCKS
  for (i : 0 .. CLIENTS - 1) {
    if
    :: here == there ->
      here = known[AT(i, a)] * 4 + told[AT(i, a)] * 2 + final[AT(i, a)];
      there = known[AT(i, b)] * 4 + told[AT(i, b)] * 2 + final[AT(i, b)]
    :: else
    fi
  };
#endif
  if
  :: here > there ->
    SWAP(owner[a], owner[b]);
    SWAP(attempt[a], attempt[b]);
    SWAP(firm[a], firm[b]);
#ifdef CLOCKS
    SWAP(floor[a], floor[b]);
#endif
    for (i : 0 .. CLIENTS - 1) {
      SWAP(link[AT(i, a)], link[AT(i, b)]);
      SWAP(wait[AT(i, a)], wait[AT(i, b)]);
      SWAP(fresh[AT(i, a)], fresh[AT(i, b)]);
      SWAP(over[AT(i, a)], over[AT(i, b)]);
      SWAP(counts[AT(i, a)], counts[AT(i, b)]);
#ifdef CLOCKS
      SWAP(told[AT(i, a)], told[AT(i, b)]);
      SWAP(known[AT(i, a)], known[AT(i, b)]);
      SWAP(final[AT(i, a)], final[AT(i, b)]);
#endif
      SWAP(refuses[AT(i, a)], refuses[AT(i, b)])
    }
  :: else
  fi
}

inline sort_servers() {
#ifndef OWN_ORDER
  order(0, 1);
  order(1, 2);
  order(0, 1)
#else
  skip
#endif
}

/* Guards. */

/* The client sends LOCK ... TICKET to a server that lacks something, or whose answer it lacks. */
#ifdef DEAF_ELIGIBLE
#define SHOWS(c, s) SENDS(c, s)
#else
#define SHOWS(c, s) WORKS(c, s)
#endif
#define NEWS(c, s) ((wait[AT(c, s)] != number[c] && !HAS(c, s)) || \
  (SHOWS(c, s) && wait[AT(c, s)] > 0 && !fresh[AT(c, s)]) || \
  (WORKS(c, s) && HAS(c, s) && !counts[AT(c, s)] && !refuses[AT(c, s)]) || TICKET_NEWS(c, s))

/* An older wait is behind the vote of c. Inside, the answer changes nothing. */
#define OLDER(d, c, s) (d != c && wait[AT(d, s)] > 0 && fresh[AT(d, s)] && LESS(d, c, s) && INQUIRES(d, s))
#ifdef NO_INQUIRE
#define INQUIRED(c, s) 0
#else
#define INQUIRED(c, s) (phase[c] == WAITING && HAS(c, s) && !firm[s] && (OLDER(0, c, s) || OLDER(1, c, s) || OLDER((CLIENTS - 1), c, s)))
#endif
#define CONFIRMS(c) (VOTES(c) >= QUORUM)

/* Client c hears from server t that the owner at server s is over. */
#define RELAYS(c, s, t) (t != s && WORKS(c, t) && owner[s] != NOBODY && attempt[s] <= over[AT(owner[s], t)])

/* The vote or hold of client c at server s can expire. */
#ifdef WORDS_ONLY
#define OVER_EXPIRES(c) (REACHES(c) < QUORUM)
#else
#define OVER_EXPIRES(c) 1
#endif
#ifdef EXTENDS_UNKNOWN
#define EXTENDS(c, s) SENDS(c, s)
#else
#define EXTENDS(c, s) WORKS(c, s)
#endif
#define EXPIRES(c, s) (owner[s] == c && (HAS(c, s) -> !counts[AT(c, s)] && !EXTENDS(c, s) : OVER_EXPIRES(c)))

proctype Pair(byte c; byte s) {
end:
  do
#if LATES > 0
  :: atomic { lates > 0 && phase[c] != OUTSIDE && number[c] > over[AT(c, s)] && !HAS(c, s) ->
      lates--;
      if
      :: x = number[c]
      :: number[c] > over[AT(c, s)] + 1 -> x = number[c] - 1
      fi;
      d_step { y = x; wait_arrives(c, s, y, 0); sort_servers() }
    }
#endif
  /* LOCK ... TICKET, and its answer */
  :: d_step { phase[c] == WAITING && SENDS(c, s) && NEWS(c, s) ->
#ifdef CLOCKS
      ticket_arrives(c, s);
      floor_arrives(c, s);
#endif
      wait_arrives(c, s, number[c], SHOWS(c, s));
      if
      :: HAS(c, s) && HEARS(c, s) && !refuses[AT(c, s)] -> counts[AT(c, s)] = true
      :: else
      fi;
      sort_servers()
    }
  /* INQUIRE, and its answer: RENEW with a quorum or in C3, otherwise YIELD (C4) */
  :: d_step { INQUIRED(c, s) && WORKS(c, s) ->
      if
      :: CONFIRMS(c) ->
        firm[s] = true;
        end_wait(c, s)
      :: else ->
        counts[AT(c, s)] = false;
        end_vote(s);
        grant(s)
      fi;
      sort_servers()
    }
  /* the same, but YIELD is lost */
  :: d_step { INQUIRED(c, s) && link[AT(c, s)] == ANSWERS && !CONFIRMS(c) && counts[AT(c, s)] ->
      counts[AT(c, s)] = false;
      refuses[AT(c, s)] = true;
      sort_servers()
    }
  /* YIELD again */
  :: d_step { HAS(c, s) && refuses[AT(c, s)] && WORKS(c, s) ->
      refuses[AT(c, s)] = false;
      end_vote(s);
      grant(s);
      sort_servers()
    }
  /* UNLOCK again, over a link that works again */
  :: d_step { !ALIVE(c) && phase[c] != OUTSIDE && SENDS(c, s) && over[AT(c, s)] < number[c] ->
      learn(c, s, number[c]);
      grant(s);
      sort_servers()
    }
#ifndef NO_RELAY
  :: d_step { phase[c] == WAITING && SENDS(c, s) && (RELAYS(c, s, 0) || RELAYS(c, s, 1) || RELAYS(c, s, 2)) ->
      x = owner[s];
      y = attempt[s];
      learn(x, s, y);
      grant(s);
      sort_servers()
    }
#endif
  /* time: at the client, at the server, and the server's patience */
  :: d_step { counts[AT(c, s)] && !WORKS(c, s) ->
      counts[AT(c, s)] = false;
      if
      :: phase[c] == INSIDE && VOTES(c) < QUORUM ->
        phase[c] = DONE;
        end_attempt(c)
      :: else
      fi;
      sort_servers()
    }
  :: d_step { EXPIRES(c, s) ->
      end_vote(s);
#ifndef SILENT_ELIGIBLE
      fresh[AT(c, s)] = false;
#endif
      grant(s);
      sort_servers()
    }
#ifndef SILENT_ELIGIBLE
  :: d_step { fresh[AT(c, s)] && !SHOWS(c, s) ->
      fresh[AT(c, s)] = false;
      sort_servers()
    }
#endif
  od
}

proctype Client(byte c) {
end:
  do
#ifdef CLOCKS
  :: atomic { phase[c] == OUTSIDE ->
      if
      :: ticket[c] = 1
      :: ticket[c] = 2
      fi;
      d_step {
        for (i : 0 .. CLIENTS - 1) {
          above[c] = (FIXED(i) -> LARGER(above[c], ticket[i]) : above[c])
        };
        phase[c] = WAITING
      }
    }
#endif
  :: d_step { phase[c] == WAITING && VOTES(c) >= QUORUM ->
      for (i : 0 .. CLIENTS - 1) { assert(phase[i] != INSIDE) };
      phase[c] = INSIDE
    }
  :: d_step { phase[c] == INSIDE ->
      phase[c] = DONE;
      end_attempt(c);
      sort_servers()
    }
#ifndef KEEPS_HOLDS
  /* after RENEW the majority is lost: the next attempt. UNLOCK may be lost, too */
  :: atomic { phase[c] == WAITING && VOTES(c) < QUORUM &&
      ((HAS(c, 0) && firm[0]) || (HAS(c, 1) && firm[1]) || (HAS(c, 2) && firm[2])) ->
      if
      :: d_step { end_attempt(c); skip }
      :: d_step { forget(c); skip }
      fi;
      d_step {
        number[c]++;
        sort_servers()
      }
    }
#endif
#ifndef NO_PARKING
  :: d_step { phase[c] == WAITING && REACHES(c) < QUORUM ->
      phase[c] = PARKED;
      end_attempt(c);
      sort_servers()
    }
  :: d_step { phase[c] == PARKED && REACHES(c) >= QUORUM ->
      phase[c] = WAITING;
      number[c]++
    }
#endif
  od
}

#define IS_HERMIT(c) (((HERMITS >> (c)) & 1) > 0)
#define GOAL(c) (phase[c] == DONE || REACHES(c) < QUORUM)

inline break_link(c, s) {
  if
  :: link[AT(c, s)] = REQUESTS
  :: link[AT(c, s)] = ANSWERS
  :: link[AT(c, s)] = 0
  fi
}

inline cut() {
  for (c : 0 .. CLIENTS - 1) {
    for (s : 0 .. SERVERS - 1) {
      link[AT(c, s)] = BOTH;
      if
      :: IS_HERMIT(c) -> break_link(c, s)
      :: true
      fi
    };
    if
    :: !IS_HERMIT(c) ->
      select(s : 0 .. SERVERS - 1);
      break_link(c, s)
    :: true
    fi
  };
  skip;
  d_step {
    sort_servers();
    c = 0;
    s = 0
  }
}

init {
  byte c, s;
  atomic {
    for (s : 0 .. SERVERS - 1) { owner[s] = NOBODY };
    for (c : 0 .. CLIENTS - 1) {
      number[c] = 1;
#ifdef CLOCKS
      phase[c] = OUTSIDE;
#endif
      run Client(c);
      for (s : 0 .. SERVERS - 1) {
        link[AT(c, s)] = BOTH;
        run Pair(c, s)
      }
    };
#if CUTS == 0
    cut();
#endif
    c = 0;
    s = 0
  };
  do
  :: atomic { cuts > 0 ->
      cuts--;
      cut()
    }
  :: atomic { cuts > 0 -> cuts = 0 }
  :: cuts == 0 -> break
  od;
  (GOAL(0) && GOAL(1) && GOAL(CLIENTS - 1));
end:
progress:
  false
}

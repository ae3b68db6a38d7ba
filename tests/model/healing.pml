/* The holders of a lock on several servers, while servers lose holds and renewals restore them: the rules of
 * src/client/algorithm/redlock_renewal.cc, in every order of events. The model has no clock, only two consequences
 * of time. A server keeps a hold at least as long as the validity of the round in which the hold was last set. A
 * client's validity is that of its last confirmed round. So a hold may expire only if its client has no validity
 * from that round or a later one.
 *
 * A server may restart without its holds if afterwards a quorum of servers still has each valid hold, each set in
 * the confirmed round or a later one. With RECOVERS a server may restart so at any time, but grants nothing while a
 * hold that it lost is valid. In every order, two clients are never valid at once.
 *
 * Flaws, which the check must find:
 *   OLD_ROUND_COUNTS   answers of an earlier round count for a later one
 *   FORGETS            a server loses its holds at any time and grants at once
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#define CLIENTS 2
#define ROUNDS 3 /* of each client, with its acquisition as the first */
#define QUORUM (SERVERS / 2 + 1)
#define NOBODY CLIENTS
#define AT(c, s) ((c) * SERVERS + (s))

/* Servers. */
byte owner[SERVERS];
byte set_in[SERVERS]; /* the round of that hold */
bool recovering[SERVERS];
byte lost_owner[SERVERS];
byte lost_round[SERVERS];

/* Clients. A round: answers to it, by server. */
byte round[CLIENTS]; /* the present round, or the last one; 0: none yet */
bool open[CLIENTS];
byte valid[CLIENTS]; /* the last confirmed round while its validity runs; 0: the client does not hold */
bool acquires[CLIENTS]; /* it has never held the lock: its rounds send LOCK */
bool over[CLIENTS];  /* it has given up or released: nothing more is sent */
bool asked[CLIENTS * SERVERS];    /* in this round, by a request that has arrived */
bool had[CLIENTS * SERVERS];      /* the answer is yes */
bool without[CLIENTS * SERVERS];  /* the answer to RENEW was no */
bool healed[CLIENTS * SERVERS];   /* LOCK has arrived after that */

byte restarts = 3;

inline count_yes(c) {
  n = 0;
  for (i : 0 .. SERVERS - 1) { n = n + had[AT(c, i)] };
  i = 0
}

inline count_without(c) {
  n = 0;
  for (i : 0 .. SERVERS - 1) { n = n + without[AT(c, i)] };
  i = 0
}

inline begin_round(c) {
  round[c]++;
  open[c] = true;
  for (i : 0 .. SERVERS - 1) {
#ifndef OLD_ROUND_COUNTS
    had[AT(c, i)] = false;
#endif
    asked[AT(c, i)] = false;
    without[AT(c, i)] = false;
    healed[AT(c, i)] = false
  };
  i = 0
}

inline end_of(c) {
  over[c] = true;
  open[c] = false;
  valid[c] = 0;
  for (i : 0 .. SERVERS - 1) {
    asked[AT(c, i)] = false;
    had[AT(c, i)] = false;
    without[AT(c, i)] = false;
    healed[AT(c, i)] = false
  };
  i = 0
}

/* A hold that was set in round r may have expired: its client does not rely on that round, and cannot later. */
#define MAY_BE_OVER(c, r) ((valid[c] == 0 || r < valid[c]) && !(open[c] && r == round[c]))
#define GRANTS(s) (!recovering[s] || MAY_BE_OVER(lost_owner[s], lost_round[s]))

/* LOCK. */

inline lock_arrives(c, s, yes) {
  if
  :: (owner[s] == NOBODY && GRANTS(s)) || owner[s] == c ->
    owner[s] = c;
    set_in[s] = round[c];
    yes = true
  :: else -> yes = false
  fi
}

/* Whether a quorum still has each valid hold after server s loses its holds: n is 0 if not. An acquisition or a
 * renewal in progress counts as a hold in its round if s has granted it. */
inline quorum_remembers(s) {
  n = 1;
  for (c : 0 .. CLIENTS - 1) {
    m = 0;
    for (i : 0 .. SERVERS - 1) {
      m = m + (i != s && owner[i] == c && set_in[i] >= (open[c] && had[AT(c, s)] -> round[c] : valid[c]))
    };
    if
    :: (valid[c] > 0 || (open[c] && had[AT(c, s)])) && m < QUORUM -> n = 0
    :: else
    fi
  };
  c = 0;
  i = 0;
  m = 0
}

active proctype World() {
  byte c, s, i, n, m;
  bool yes;

  d_step {
    for (i : 0 .. SERVERS - 1) { owner[i] = NOBODY; lost_owner[i] = 0 };
    i = 0
  }
end:
  do
  :: atomic {
      select(c : 0 .. CLIENTS - 1);
      select(s : 0 .. SERVERS - 1);
      if
      /* a client: begins to acquire, or a renewal, also while another is unanswered */
      :: !over[c] && round[c] == 0 -> d_step { acquires[c] = true; begin_round(c) }
      :: !over[c] && valid[c] > 0 && round[c] < ROUNDS -> d_step { begin_round(c) }
      /* a request arrives and is answered; a lost one is one that never does */
      :: open[c] && acquires[c] && !asked[AT(c, s)] -> d_step {
          asked[AT(c, s)] = true;
          lock_arrives(c, s, yes);
          had[AT(c, s)] = yes
        }
      :: open[c] && !acquires[c] && !asked[AT(c, s)] -> d_step {
          asked[AT(c, s)] = true;
          if
          :: owner[s] == c -> set_in[s] = round[c]; had[AT(c, s)] = true
          :: else -> without[AT(c, s)] = true
          fi
        }
      :: open[c] && without[AT(c, s)] && !healed[AT(c, s)] -> d_step {
          healed[AT(c, s)] = true;
          lock_arrives(c, s, yes);
          if
          :: yes -> had[AT(c, s)] = true
          :: else
          fi
        }
      /* the client looks at the answers */
      :: open[c] ->
        d_step { count_without(c) };
        if
        :: n > SERVERS - QUORUM -> d_step { end_of(c) }
        :: else ->
          d_step { count_yes(c) };
          if
          :: n >= QUORUM && (acquires[c] || valid[c] > 0) -> valid[c] = round[c]; acquires[c] = false
          :: else
          fi
        fi
      /* the validity ends, or the client releases the lock or gives up */
      :: !over[c] && round[c] > 0 -> d_step { end_of(c) }
      /* its UNLOCK arrives, or a hold that no client relies on expires */
      :: owner[s] != NOBODY && MAY_BE_OVER(owner[s], set_in[s]) -> owner[s] = NOBODY; set_in[s] = 0
      /* a restart without memory */
      :: restarts > 0 && owner[s] != NOBODY ->
#ifdef RECOVERS
        restarts--;
        d_step {
          lost_owner[s] = owner[s];
          lost_round[s] = set_in[s];
          recovering[s] = true;
          owner[s] = NOBODY;
          set_in[s] = 0
        }
#else
#ifdef FORGETS
        n = 1;
#else
        d_step { quorum_remembers(s) };
#endif
        if
        :: n == 1 -> restarts--; owner[s] = NOBODY; set_in[s] = 0
        :: else
        fi
#endif
      :: else
      fi;
      assert(valid[0] == 0 || valid[1] == 0); /* alone */
      c = 0;
      s = 0;
      n = 0;
      m = 0;
      yes = false
    }
  od
}

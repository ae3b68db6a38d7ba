// Locks: who holds a key, who may join, who waits, and what the end of a hold sets off. The functions here
// are the only ones that make, change or end holds; commands call them. Split by meaning over holds.cc (a
// hold's life), acquire.cc (admission), waiting.cc (waiting), deadlock.cc and sessions.cc.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "core/state/state.h"

namespace holdfast {

// Why a hold ends. A lock-delay follows the middle three; nobody is told of a loss after kReleased.
enum class End : uint8_t { kReleased, kExpired, kDisconnected, kBroken, kDeleted, kOverwritten };

struct LockRequest {
  Key key;
  std::string_view owner;
  DurationMs ttl;  // 0: until released
  Capacity capacity = kExclusive;
  std::optional<DurationMs> wait;  // nullopt: do not wait; 0: for ever
  DurationMs delay;
  uint64_t hint = 0;
  bool session = false;
  bool async = false;
};

enum class Admission : uint8_t {
  kGranted,
  kBusy,          // not admitted, and not to wait
  kWaiting,       // queued; the answer comes later
  kDeadlock,      // waiting would close a cycle
  kTooMany,       // the limit of waiters in all
  kTooManyOnKey,  // the limit of waiters of one key
  kWrongType,     // the key holds neither a string nor a lock
};
struct Acquisition {
  Admission outcome = Admission::kBusy;
  Token token;  // of a grant
};

// holds.cc
// -----------------------------------------------------------------------------------------------------

// Ends all holds of a key and removes it; its queue, if any, stays and is served before the turn ends.
// `at` is when its holds ended, which may have been before now.
void remove_key(Turn& t, DbIndex db, Keyspace::Found& f, End why, TimeMs at);
inline void remove_key(Turn& t, DbIndex db, Keyspace::Found& f, End why) {
  remove_key(t, db, f, why, t.due);
}
// Ends what is due of a key that is due.
void expire_key(Turn& t, DbIndex db, Keyspace::Found& f);

// The entry of a key, never a due one: what was due is ended first. May be a placeholder.
inline Keyspace::Found find_any(Turn& t, DbIndex db, const Key& key) {
  Keyspace::Found f = t.keys(db).find(key);
  if (f && is_due(*f, t.due)) [[unlikely]]
    expire_key(t, db, f);
  return f;
}
// The same, but nothing where nobody holds the key.
inline Keyspace::Found find_live(Turn& t, DbIndex db, const Key& key) {
  Keyspace::Found f = find_any(t, db, key);
  if (f && type_of(*f) == EntryType::kNone) f = {};
  return f;
}

// Ends one hold of a lock with several; the key goes with the last.
void end_holder(Turn& t, DbIndex db, Keyspace::Found& f, const Holder* holder, End why, TimeMs at);

// Gives the key a value of a type that has no holders of its own, as put_string() does; `bytes` is what the
// entry is to hold. What was there before is overwritten.
void put_value(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, EntryType type,
               std::string_view bytes, ConnId client);
// A value was changed within its entry, or rewritten there.
void note_value_change(Turn& t, DbIndex db, const Keyspace::Found& f, ConnId client);
// The same, where the journal has been told already of the part that changed.
void note_part_change(Turn& t, DbIndex db, const Keyspace::Found& f, ConnId client);

// Makes the key a string, with `client` as the one who set it. Another value than before is another hold;
// the same value keeps token and attachment. The deadline stays; a new key has none. `f` must be
// find_any()'s for the key.
// `token` is the new hold's where it is given.
void put_string(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, std::string_view value,
                ConnId client, Token token = {});

// The same for a string that is there and changes from place `at` on: a large one is changed where it is.
// Between its end and `at` come zeros.
void put_string_part(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, size_t at,
                     std::string_view part, ConnId client);

// Sets the deadline of the key and of all its holds.
void set_key_deadline(Turn& t, DbIndex db, Keyspace::Found& f, TimeMs deadline, ConnId client);
// When the key will be gone: the latest deadline of its holds.
TimeMs key_deadline(const Entry& e);

// Sets a lock's deadline to that of the holder that ends first.
void follow_holders(Turn& t, DbIndex db, Keyspace::Found& f);

// The key changed in a way that may let a waiter in, or that moves its next change.
void touch(Turn& t, DbIndex db, const Entry& e);

// One hold's ttl, renewed by its owner. nullopt: for the ttl last given.
void renew_hold(Turn& t, DbIndex db, Keyspace::Found& f, const Holder* holder,
                std::optional<DurationMs> given, ConnId client);
// The token of an exclusive hold, assigned now where the key was made by SET.
Token exclusive_token(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f);

// Raises the token of a hold, and the counter of its stripe, to `token`, which must be larger than the
// present one.
void raise_token(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f, const Holder* holder,
                 Token token);

// The connection that set an entry last, if it is still there.
const Conn* client_of(const EngineState& s, const Entry& e);
// An exclusive hold's attachment is kept beside its entry, by handle. What is taken is no longer attached.
Attachment take_attachment(Turn& t, DbIndex db, Keyspace::Found& f);
void attach(Turn& t, DbIndex db, Keyspace::Found& f, const Attachment& a);
const Attachment* attachment_of(const EngineState& s, DbIndex db, const Keyspace::Found& f);

// Whether a holder of the key hears of its loss by a push.
bool has_listener(const EngineState& s, DbIndex db, const Keyspace::Found& f);

// Owner and attachment of each hold of a live key. The owners are views into the entry.
std::vector<std::pair<std::string_view, Attachment>> attachments_of_key(const EngineState& s, DbIndex db,
                                                                        const Keyspace::Found& f);

// Empties a database; its queues are served before the turn ends.
void flush_db(Turn& t, DbIndex db);

// acquire.cc
// ---------------------------------------------------------------------------------------------------

Acquisition acquire(Turn& t, Conn& c, const LockRequest& request);
// Whether nothing but the present holders keeps newcomers out: no delay runs and nobody waits.
bool open_to_newcomers(Turn& t, DbIndex db, const Entry& e);

// Grants a waiting request if the holders admit it. The key must have an entry, as one with a queue has.
std::optional<Token> try_admit(Turn& t, DbIndex db, ConnId client, const LockRequest& request);

// waiting.cc
// -----------------------------------------------------------------------------------------------------

// Queues a request that was not admitted. `upgrade`: its owner is a holder.
Acquisition wait_for(Turn& t, Conn& c, const LockRequest& request, Keyspace::Found& f, bool upgrade);
// Lets in whom the changes of this turn admit. Called once a turn, after the request, script or
// transaction.
void serve_queues(Turn& t);
inline void serve_ready_queues(Turn& t) {
  if (t.s.queues.any_ready()) serve_queues(t);
}
// Ends a wait without a grant; the waiter is destroyed. Nothing is written to its connection.
void cancel_wait(Turn& t, Waiter* w);
// Those of a connection, at most so many: the oldest first.
void cancel_waits(Turn& t, Conn& c, size_t most = SIZE_MAX);
void end_wait_by_timeout(Turn& t, Waiter* w);
// Makes sure that the key has a queue; the entry must exist.
WaitQueue* queue_of(Turn& t, DbIndex db, const Key& key, Keyspace::Found& f);

// deadlock.cc
// --------------------------------------------------------------------------------------------------

// Whether `owner`, waiting for the key as described, would wait for itself in the end.
bool would_deadlock(Turn& t, const WaitQueue* q, std::string_view owner, Capacity capacity, bool upgrade);

// sessions.cc
// --------------------------------------------------------------------------------------------------

// Notes a hold's attachment with its connection, or what is left of it when the hold ends.
void join_session(Turn& t, DbIndex db, std::string_view key, std::string_view owner, const Attachment& a);
void leave_session(Turn& t, DbIndex db, std::string_view key, std::string_view owner, const Attachment& a);
// A connection's session is over: its SESSION holds end, now or after the grace; if they are many, some of
// them each millisecond.
void end_session(Turn& t, ConnId conn, uint32_t number, absl::btree_set<HoldName> holds);
// Its timer has fired.
void go_on_ending_session(Turn& t, SessionEnd* end);

}  // namespace holdfast

// What has changed, in the order of the changes, as records with absolute times: doing them again gives the
// same keys, holds and leases, without a clock. Written while requests run; the shell takes the bytes at
// the end of its turn. Nothing is written while `on` is false.
//
// The grammar, in the notation of bytes.h (text, number, u8); a deadline is a number, 0 for none, else the
// wall clock's milliseconds + 1; `hold` and `holder` are those of hold_codec.h:
//   payload = { record }        what one turn changed; done whole or not at all
//   record  = u8 op, u8 db, ...   with a database's number as clients know it:
//     string        key deadline hold value      the key is this, whatever it was
//     hash          key deadline number-of-pairs { field value }
//     lock          key number-of-holders { holder }
//     erase         key
//     set-fields    key number-of-pairs { field value }    of a hash that is there
//     erase-fields  key number { field }
//     put-holder    key holder      of a lock that is there; instead of one with that owner
//     erase-holder  key owner
//     delay         key deadline    the lock-delay
//     flush         -               the database is emptied
//     swap          u8 db           the two databases change places
//     lease         id serial token ttl deadline number { key }
//     lease-end     id u8 state token
//     clock         boot-id ahead   what the deadlines from here on are to be read by: see hold_codec.h
//
// A file begins with a clock before its first record, and has another where the wall clock has moved; a
// server that does not know its boot-id writes none.
#pragma once

#include <absl/container/btree_set.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/types.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/lock_body.h"
#include "core/state/lease_table.h"

namespace holdfast {

struct EngineState;
struct Turn;

enum class Record : uint8_t {
  kString = 1,
  kHash,
  kLock,
  kErase,
  kSetFields,
  kEraseFields,
  kPutHolder,
  kEraseHolder,
  kDelay,
  kFlush,
  kSwap,
  kLease,
  kLeaseEnd,
  kClock,
};

inline constexpr int64_t kNoClock = INT64_MIN;

struct Journal {
  bool on = false;
  std::string out;      // records of this turn
  bool grants = false;  // whether they have anything to rely on, not only ends
  // A key whose record is put off: one change is often several steps, and only the last state counts.
  bool pending = false;
  DbIndex db = 0;
  std::string key;
  // Keys with large values, whose records are put off to the end of the turn: however often a turn changes
  // one, it is written once. The time of the last change.
  absl::btree_set<std::pair<DbIndex, std::string>> large;
  Now changed_at;
  TimeMs latest_deadline{0};    // of all that was ever recorded here; kNever where something has none
  int64_t ahead_ms = kNoClock;  // of the last clock in this file
  // The last clock that was read of this file; no id: none.
  std::string read_boot_id;
  int64_t read_ahead_ms = 0;
};

// The key has another value, deadline or hold, or is gone.
void journal_key(Turn& t, DbIndex db, std::string_view key);
// The same, where only this much of a large value has changed. `pairs` is field, value, field, value ...
void journal_fields(Turn& t, DbIndex db, std::string_view key, std::span<const std::string_view> pairs);
void journal_erased_fields(Turn& t, DbIndex db, std::string_view key,
                           std::span<const std::string_view> fields);
void journal_holder(Turn& t, DbIndex db, std::string_view key, const Holder& h);
void journal_erased_holder(Turn& t, DbIndex db, std::string_view key, std::string_view owner);
void journal_delay(Turn& t, DbIndex db, std::string_view key, TimeMs until);
void journal_flush(Turn& t, DbIndex db);
// `a` and `b` as clients know them.
void journal_swap(Turn& t, DbIndex a, DbIndex b);
void journal_lease(Turn& t, const LiveLease& lease);
void journal_lease_end(Turn& t, std::string_view id, LeaseState state, Token token);

// A request is over: what was put off is written, but for large values.
void finish_journal(Turn& t);
// Writes all that was put off: before the shell takes the records, and before a record that stands for more
// than one key.
void write_large_records(Turn& t);

// For a snapshot: the records of leases, of their fates and of lock-delays, as they are now.
std::string side_records(const EngineState& s, const Now& now);

}  // namespace holdfast

// The writer of records. What reads them is replay_journal.cc.

#include "core/events/record_changes.h"

#include <algorithm>
#include <utility>

#include "core/codec/hold_codec.h"
#include "core/codec/journal_record.h"
#include "core/keyspace/hash_view.h"
#include "core/state/state.h"

namespace holdfast {

namespace {

// A record beyond it is put off to the end of the turn.
constexpr size_t kLargeRecord = size_t{64} << 10U;

void open_record(std::string& out, Record op, DbIndex number) {
  put_u8(out, static_cast<uint8_t>(op));
  put_u8(out, number);
}

// A comparison, where the wall clock has not been moved.
void note_clock(Turn& t) {
  Journal& j = t.s.journal;
  if (j.ahead_ms == t.now.ahead_ms() || t.s.config.boot_id.empty()) return;
  j.ahead_ms = t.now.ahead_ms();
  open_record(j.out, Record::kClock, 0);
  put_clock(j.out, present_clock(t.s.config, t.now));
}

std::string& open_record(Turn& t, Record op, DbIndex db, std::string_view key) {
  note_clock(t);
  std::string& out = t.s.journal.out;
  const bool ends = op == Record::kErase || op == Record::kEraseFields || op == Record::kEraseHolder;
  t.s.journal.grants = t.s.journal.grants || !ends;
  open_record(out, op, t.s.db_name[db]);
  put_text(out, key);
  return out;
}

void put_texts(std::string& out, std::span<const std::string_view> texts) {
  for (const std::string_view text : texts) put_text(out, text);
}

void put_hash_value(std::string& out, const Entry& e) {
  const HashView hash(e);
  put_number(out, hash.size());
  hash.for_each([&](std::string_view field, std::string_view value) {
    put_text(out, field);
    put_text(out, value);
  });
}

void note_deadline(Journal& j, TimeMs deadline) {
  j.latest_deadline = std::max(j.latest_deadline, deadline);
}

void put_lock_value(Turn& t, std::string& out, const Entry& e) {
  const LockBody& body = *lock_body_of(e);
  put_number(out, body.size());
  body.for_each([&](const Holder& h) {
    note_deadline(t.s.journal, h.deadline);
    put_holder(out, saved_holder(h, t.now));
  });
}

void write_key(Turn& t, DbIndex db, std::string_view key, const Keyspace::Found& f) {
  switch (type_of(*f)) {
    case EntryType::kNone:
      break;
    case EntryType::kString: {
      note_deadline(t.s.journal, deadline_of(*f));
      std::string& out = open_record(t, Record::kString, db, key);
      put_deadline(out, saved_deadline(deadline_of(*f), t.now));
      put_hold(out, saved_hold(token_of(*f), ttl_of(*f), held_since(*f), attachment_of(t.s, db, f), t.now));
      return put_text(out, value_of(*f));
    }
    case EntryType::kLock:
      return put_lock_value(t, open_record(t, Record::kLock, db, key), *f);
    case EntryType::kHash:
    case EntryType::kBigHash: {
      note_deadline(t.s.journal, deadline_of(*f));
      std::string& out = open_record(t, Record::kHash, db, key);
      put_deadline(out, saved_deadline(deadline_of(*f), t.now));
      return put_hash_value(out, *f);
    }
  }
  open_record(t, Record::kErase, db, key);
}

void write_found(Turn& t, DbIndex db, std::string_view key, const Keyspace::Found& f) {
  if (f) return write_key(t, db, key, f);
  open_record(t, Record::kErase, db, key);
}

bool is_pending(const Journal& j, DbIndex db, std::string_view key) {
  if (j.pending && j.db == db && j.key == key) return true;
  return !j.large.empty() && j.large.contains(std::pair(db, std::string(key)));
}

// Of a value's record, about.
size_t record_bytes(const Entry& e) {
  constexpr size_t kHolderBytes = 64;
  if (type_of(e) == EntryType::kLock) return lock_body_of(e)->size() * kHolderBytes;
  return type_of(e) == EntryType::kBigHash ? hash_body_of(e)->bytes() : value_of(e).size();
}

// Whether a change of a part needs a record of its own: not while the whole key is about to be written.
bool begins_part(Turn& t, DbIndex db, std::string_view key) {
  if (!t.s.journal.on || is_pending(t.s.journal, db, key)) return false;
  finish_journal(t);
  return true;
}

void write_lease(std::string& out, DbIndex number, const LiveLease& lease, const Now& now) {
  open_record(out, Record::kLease, number);
  put_text(out, lease.id);
  put_number(out, lease.serial);
  put_number(out, lease.token.value);
  put_number(out, static_cast<uint64_t>(lease.ttl.count));
  put_deadline(out, saved_deadline(lease.at(), now));
  put_number(out, lease.keys.size());
  for (const std::string& key : lease.keys) put_text(out, key);
}

void write_lease_end(std::string& out, std::string_view id, LeaseState state, Token token) {
  open_record(out, Record::kLeaseEnd, 0);
  put_text(out, id);
  put_u8(out, static_cast<uint8_t>(state));
  put_number(out, token.value);
}

void write_delay(std::string& out, DbIndex number, std::string_view key, TimeMs until, const Now& now) {
  open_record(out, Record::kDelay, number);
  put_text(out, key);
  put_deadline(out, saved_deadline(until, now));
}

}  // namespace

void journal_key(Turn& t, DbIndex db, std::string_view key) {
  Journal& j = t.s.journal;
  if (!j.on || is_pending(j, db, key)) return;
  finish_journal(t);
  j.pending = true;
  j.db = db;
  j.key = key;
}

void finish_journal(Turn& t) {
  Journal& j = t.s.journal;
  if (!j.pending) return;
  j.pending = false;
  const Keyspace::Found f = t.keys(j.db).find(t.keys(j.db).key(j.key));
  if (f && record_bytes(*f) > kLargeRecord) {
    j.large.emplace(j.db, j.key);
    j.changed_at = t.now;
    j.grants = true;
    return;
  }
  write_found(t, j.db, j.key, f);
}

void write_large_records(Turn& t) {
  finish_journal(t);
  for (const auto& [db, key] : std::exchange(t.s.journal.large, {})) {
    write_found(t, db, key, t.keys(db).find(t.keys(db).key(key)));
  }
}

void journal_fields(Turn& t, DbIndex db, std::string_view key, std::span<const std::string_view> pairs) {
  if (!begins_part(t, db, key)) return;
  std::string& out = open_record(t, Record::kSetFields, db, key);
  put_number(out, pairs.size() / 2);
  put_texts(out, pairs);
}

void journal_erased_fields(Turn& t, DbIndex db, std::string_view key,
                           std::span<const std::string_view> fields) {
  if (!begins_part(t, db, key)) return;
  std::string& out = open_record(t, Record::kEraseFields, db, key);
  put_number(out, fields.size());
  put_texts(out, fields);
}

void journal_holder(Turn& t, DbIndex db, std::string_view key, const Holder& h) {
  note_deadline(t.s.journal, h.deadline);
  if (begins_part(t, db, key))
    put_holder(open_record(t, Record::kPutHolder, db, key), saved_holder(h, t.now));
}

void journal_erased_holder(Turn& t, DbIndex db, std::string_view key, std::string_view owner) {
  if (begins_part(t, db, key)) put_text(open_record(t, Record::kEraseHolder, db, key), owner);
}

void journal_delay(Turn& t, DbIndex db, std::string_view key, TimeMs until) {
  if (!t.s.journal.on) return;
  note_clock(t);
  write_delay(t.s.journal.out, t.s.db_name[db], key, until, t.now);
}

void journal_flush(Turn& t, DbIndex db) {
  if (!t.s.journal.on) return;
  write_large_records(t);
  open_record(t.s.journal.out, Record::kFlush, t.s.db_name[db]);
}

void journal_swap(Turn& t, DbIndex a, DbIndex b) {
  if (!t.s.journal.on) return;
  write_large_records(t);
  t.s.journal.grants = true;
  open_record(t.s.journal.out, Record::kSwap, a);
  put_u8(t.s.journal.out, b);
}

void journal_lease(Turn& t, const LiveLease& lease) {
  if (!t.s.journal.on) return;
  write_large_records(t);
  t.s.journal.grants = true;
  note_clock(t);
  write_lease(t.s.journal.out, t.s.db_name[lease.db], lease, t.now);
}

void journal_lease_end(Turn& t, std::string_view id, LeaseState state, Token token) {
  if (!t.s.journal.on) return;
  write_large_records(t);
  t.s.journal.grants = t.s.journal.grants || state == LeaseState::kConfirmed;
  write_lease_end(t.s.journal.out, id, state, token);
}

std::string side_records(const EngineState& s, const Now& now) {
  std::string out;
  s.leases.for_each_fate([&](const std::string& id, const LeaseFate& fate) {
    write_lease_end(out, id, fate.state, fate.token);
  });
  std::vector<const LiveLease*> leases;
  s.leases.for_each([&](const LiveLease& lease) { leases.push_back(&lease); });
  std::ranges::sort(leases, {}, &LiveLease::serial);
  for (const LiveLease* lease : leases) write_lease(out, s.db_name[lease->db], *lease, now);
  std::vector<const WaitQueue*> delayed;
  s.queues.for_each([&](const WaitQueue& q) {
    if (q.delayed(now.mono)) delayed.push_back(&q);
  });
  std::ranges::sort(delayed, {}, [](const WaitQueue* q) { return std::pair(q->db, q->key_bytes); });
  for (const WaitQueue* q : delayed) write_delay(out, s.db_name[q->db], q->key_bytes, q->delay_until, now);
  return out;
}

}  // namespace holdfast

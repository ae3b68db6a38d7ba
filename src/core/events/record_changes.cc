// The writer of records. replay_journal.cc reads them.

#include "core/events/record_changes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/config.h"
#include "core/codec/hold_codec.h"
#include "core/codec/journal_record.h"
#include "core/keyspace/hash_view.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"
#include "core/state/attachments.h"
#include "core/state/context.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

// A larger record (bytes) is deferred to the end of the loop iteration. A packed hash has up to 64 KiB, and
// an iteration may change it a hundred times.
constexpr size_t kLargeRecord = size_t{4} << 10U;
// A new deadline or token of a string up to this size (bytes) writes the string, too. So several changes in
// an iteration need one record.
constexpr size_t kSmallValue = 128;
// Beyond so many bytes of records in an iteration the values are written instead of further parts.
constexpr size_t kManyBytes = size_t{64} << 20U;

void open_record(std::string& out, Record op, DbIndex number) {
  put_u8(out, static_cast<uint8_t>(op));
  put_u8(out, number);
}

// Writes a clock record if the wall clock was moved; else costs one comparison.
void record_clock(Context& ctx) {
  Journal& j = ctx.s.journal;
  if (j.ahead_ms == ctx.now.ahead_ms() || ctx.s.config.boot_id.empty()) return;
  j.ahead_ms = ctx.now.ahead_ms();
  open_record(j.out, Record::kClock, 0);
  put_clock(j.out, present_clock(ctx.s.config, ctx.now));
}

std::string& open_record(Context& ctx, Record op, DbIndex db, std::string_view key) {
  record_clock(ctx);
  std::string& out = ctx.s.journal.out;
  const bool ends = op == Record::kErase || op == Record::kEraseFields || op == Record::kEraseHolder ||
                    op == Record::kEraseMembers || op == Record::kEraseRanks;
  ctx.s.journal.grants = ctx.s.journal.grants || !ends;
  open_record(out, op, ctx.s.db_name[db]);
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

// Behind the record of a hash.
void write_field_deadlines(Context& ctx, DbIndex db, const Entry& e) {
  const FieldDeadlines* fields = field_deadlines_of(e);
  if (fields == nullptr || fields->empty()) return;
  std::string& out = open_record(ctx, Record::kFieldDeadlines, db, key_of(e));
  put_number(out, fields->size());
  fields->for_each([&](std::string_view field, TimeMs deadline) {
    put_text(out, field);
    put_deadline(out, saved_deadline(deadline, ctx.now));
  });
}

void record_deadline(Journal& j, TimeMs deadline) {
  j.latest_deadline = std::max(j.latest_deadline, deadline);
}

void put_lock_value(Context& ctx, std::string& out, const Entry& e) {
  const LockBody& body = *lock_body_of(e);
  put_number(out, body.size());
  body.for_each([&](const Holder& h) {
    record_deadline(ctx.s.journal, h.deadline);
    put_holder(out, saved_holder(h, ctx.now));
  });
}

// Begins the record of a value without holders.
std::string& open_value(Context& ctx, Record op, DbIndex db, const Keyspace::Found& f) {
  const TimeMs deadline = value_deadline_of(*f);
  record_deadline(ctx.s.journal, deadline);
  std::string& out = open_record(ctx, op, db, key_of(*f));
  put_deadline(out, saved_deadline(deadline, ctx.now));
  return out;
}

void put_deadline_and_hold(Context& ctx, std::string& out, DbIndex db, const Keyspace::Found& f) {
  record_deadline(ctx.s.journal, value_deadline_of(*f));
  put_deadline(out, saved_deadline(value_deadline_of(*f), ctx.now));
  put_hold(out, saved_hold(token_of(*f), ttl_of(*f), held_since(*f),
                           attachment_of(ctx.s.attachments, db, f), ctx.now));
}

// Begins the record of an exclusive hold.
std::string& open_hold(Context& ctx, Record op, DbIndex db, const Keyspace::Found& f) {
  std::string& out = open_record(ctx, op, db, key_of(*f));
  put_deadline_and_hold(ctx, out, db, f);
  return out;
}

void put_set_value(std::string& out, const SetBody& set) {
  put_number(out, set.size());
  set.for_each([&](std::string_view member) { put_text(out, member); });
}

void put_list_value(std::string& out, const ListBody& list) {
  put_number(out, list.size());
  for (auto at = list.first(); at.valid(); at.next()) put_text(out, at.get());
}

void put_score(std::string& out, std::string_view member, double score) {
  put_text(out, member);
  put_fixed(out, std::bit_cast<uint64_t>(score));
}

void put_zset_value(std::string& out, const ZsetBody& zset) {
  put_number(out, zset.size());
  zset.for_each([&](std::string_view member, double score) { put_score(out, member, score); });
}

void write_key(Context& ctx, DbIndex db, std::string_view key, const Keyspace::Found& f) {
  switch (type_of(*f)) {
    case EntryType::kNone:
      break;
    case EntryType::kString:
      return put_text(open_hold(ctx, Record::kString, db, f), value_of(*f));
    case EntryType::kLock:
      return put_lock_value(ctx, open_record(ctx, Record::kLock, db, key), *f);
    case EntryType::kHash:
    case EntryType::kBigHash:
      put_hash_value(open_value(ctx, Record::kHash, db, f), *f);
      return write_field_deadlines(ctx, db, *f);
    case EntryType::kSet:
      return put_set_value(open_value(ctx, Record::kSet, db, f), body_of<SetBody>(*f));
    case EntryType::kList:
      return put_list_value(open_value(ctx, Record::kList, db, f), body_of<ListBody>(*f));
    case EntryType::kZset:
      return put_zset_value(open_value(ctx, Record::kZset, db, f), body_of<ZsetBody>(*f));
  }
  open_record(ctx, Record::kErase, db, key);
}

void write_found(Context& ctx, DbIndex db, std::string_view key, const Keyspace::Found& f) {
  if (f) return write_key(ctx, db, key, f);
  open_record(ctx, Record::kErase, db, key);
}

bool is_pending(const Journal& j, DbIndex db, std::string_view key) {
  if (j.move && j.move->has(db, key)) return true;
  if (j.pending && j.db == db && j.key == key) return true;
  return !j.large.empty() && j.large.contains(std::pair(db, std::string(key)));
}

// The approximate size of a value's record, in bytes.
size_t record_bytes(const Entry& e) {
  constexpr size_t kHolderBytes = 64;
  if (type_of(e) == EntryType::kLock) return lock_body_of(e)->size() * kHolderBytes;
  return has_value_body(e) ? value_body_of(e)->bytes() : value_of(e).size();
}

// Defers the record of the key's value to the end of the loop iteration.
void defer(Context& ctx, DbIndex db, std::string_view key) {
  Journal& j = ctx.s.journal;
  j.large.emplace(db, key);
  j.changed_at = ctx.now;
  j.grants = true;
}

// Whether the records of parts in this iteration are so many bytes that the values are written instead: a
// script may append to a value and delete it very often.
bool has_many_parts(Context& ctx, DbIndex db, std::string_view key) {
  const size_t bytes = ctx.s.journal.out.size();
  if (bytes <= kManyBytes) return false;
  const Keyspace::Found f = ctx.keys(db).find(ctx.keys(db).key(key));
  return !f || record_bytes(*f) <= bytes;
}

// Whether a change of a part needs its own record; writes pending records before it. It needs none while
// the whole key is pending.
bool begins_part(Context& ctx, DbIndex db, std::string_view key) {
  if (!ctx.s.journal.on || is_pending(ctx.s.journal, db, key)) return false;
  finish_journal(ctx);
  if (!has_many_parts(ctx, db, key)) return true;
  defer(ctx, db, key);
  return false;
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

void journal_key(Context& ctx, DbIndex db, std::string_view key) {
  Journal& j = ctx.s.journal;
  if (!j.on || is_pending(j, db, key)) return;
  finish_journal(ctx);
  j.pending = true;
  j.db = db;
  j.key = key;
}

void finish_journal(Context& ctx) {
  Journal& j = ctx.s.journal;
  if (!j.pending) return;
  j.pending = false;
  const Keyspace::Found f = ctx.keys(j.db).find(ctx.keys(j.db).key(j.key));
  if (f && record_bytes(*f) > kLargeRecord) {
    return defer(ctx, j.db, j.key);
  }
  write_found(ctx, j.db, j.key, f);
}

void write_large_records(Context& ctx) {
  finish_journal(ctx);
  for (const auto& [db, key] : std::exchange(ctx.s.journal.large, {})) {
    write_found(ctx, db, key, ctx.keys(db).find(ctx.keys(db).key(key)));
  }
}

void journal_fields(Context& ctx, DbIndex db, std::string_view key,
                    std::span<const std::string_view> pairs) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kSetFields, db, key);
  put_number(out, pairs.size() / 2);
  put_texts(out, pairs);
}

void journal_erased_fields(Context& ctx, DbIndex db, std::string_view key,
                           std::span<const std::string_view> fields) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kEraseFields, db, key);
  put_number(out, fields.size());
  put_texts(out, fields);
}

void journal_field_deadlines(Context& ctx, DbIndex db, std::string_view key,
                             std::span<const std::string_view> fields, TimeMs deadline) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kFieldDeadlines, db, key);
  put_number(out, fields.size());
  for (const std::string_view field : fields) {
    put_text(out, field);
    put_deadline(out, saved_deadline(deadline, ctx.now));
  }
}

void journal_members(Context& ctx, Record op, DbIndex db, std::string_view key,
                     std::span<const std::string_view> members) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, op, db, key);
  put_number(out, members.size());
  put_texts(out, members);
}

void journal_pushed_elements(Context& ctx, DbIndex db, std::string_view key, ListEnd end,
                             std::span<const std::string_view> elements) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kPushElements, db, key);
  put_u8(out, static_cast<uint8_t>(end));
  put_number(out, elements.size());
  put_texts(out, elements);
}

void journal_element(Context& ctx, Record op, DbIndex db, std::string_view key, size_t index,
                     std::string_view element) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, op, db, key);
  put_number(out, index);
  put_text(out, element);
}

void journal_erased_elements(Context& ctx, DbIndex db, std::string_view key, size_t index, size_t count) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kEraseElements, db, key);
  put_number(out, index);
  put_number(out, count);
}

void journal_erased_equal_elements(Context& ctx, DbIndex db, std::string_view key, ListEnd from,
                                   size_t most, std::string_view element) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kEraseEqualElements, db, key);
  put_u8(out, static_cast<uint8_t>(from));
  put_number(out, most);
  put_text(out, element);
}

void journal_scores(Context& ctx, DbIndex db, std::string_view key, std::span<const MemberScore> scores) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kPutScores, db, key);
  put_number(out, scores.size());
  for (const auto& [member, score] : scores) put_score(out, member, score);
}

void journal_erased_ranks(Context& ctx, DbIndex db, std::string_view key, size_t rank, size_t count) {
  if (!begins_part(ctx, db, key)) return;
  std::string& out = open_record(ctx, Record::kEraseRanks, db, key);
  put_number(out, rank);
  put_number(out, count);
}

void journal_hold(Context& ctx, DbIndex db, const Keyspace::Found& f) {
  if (is_collection(*f)) {
    if (begins_part(ctx, db, key_of(*f))) open_value(ctx, Record::kDeadline, db, f);
  } else if (type_of(*f) == EntryType::kString) {
    const size_t size = value_of(*f).size();
    journal_string_part(ctx, db, f, size, size, 0);
  } else {
    journal_key(ctx, db, key_of(*f));
  }
}

void journal_string_part(Context& ctx, DbIndex db, const Keyspace::Found& f, size_t size, size_t at,
                         size_t bytes) {
  // The value itself costs at most twice as much as a part that is half of it, and is written only once. A
  // deadline or token is renewed again and again, on many keys.
  const bool mostly = bytes >= record_bytes(*f) / 2;
  const size_t small = bytes == 0 ? kSmallValue : kLargeRecord;
  if (mostly || record_bytes(*f) <= small) return journal_key(ctx, db, key_of(*f));
  if (!begins_part(ctx, db, key_of(*f))) return;
  std::string& out = open_hold(ctx, Record::kStringPart, db, f);
  put_number(out, size);
  put_number(out, at);
  put_text(out, value_of(*f).substr(at, bytes));
}

bool begin_move(Context& ctx, Record op, DbIndex db, const Keyspace::Found& from, DbIndex to_db,
                std::string_view to) {
  Journal& j = ctx.s.journal;
  finish_journal(ctx);
  if (!j.on || record_bytes(*from) <= kLargeRecord) return false;
  if (is_pending(j, db, key_of(*from)) || is_pending(j, to_db, to)) return false;
  j.move = Journal::Move{op, db, std::string(key_of(*from)), to_db, std::string(to)};
  return true;
}

void end_move(Context& ctx, const Keyspace::Found& to) {
  const auto move = *std::exchange(ctx.s.journal.move, std::nullopt);
  std::string& out = open_record(ctx, move.op, move.db, move.from);
  put_deadline_and_hold(ctx, out, move.to_db, to);
  put_text(out, move.to);
  if (move.op == Record::kCopy) put_u8(out, ctx.s.db_name[move.to_db]);
}

bool begin_restore(Context& ctx, DbIndex db, std::string_view key, uint64_t bytes) {
  Journal& j = ctx.s.journal;
  finish_journal(ctx);
  // Payloads beyond kManyBytes may replace each other, and the last value is written once.
  if (!j.on || bytes <= kLargeRecord || j.out.size() > kManyBytes || is_pending(j, db, key)) return false;
  j.move = Journal::Move{Record::kRestore, db, std::string(key), db, std::string(key)};
  return true;
}

void end_restore(Context& ctx, const Keyspace::Found& f, std::span<const std::string_view> payload) {
  const auto move = *std::exchange(ctx.s.journal.move, std::nullopt);
  std::string& out = open_record(ctx, move.op, move.db, move.from);
  put_deadline_and_hold(ctx, out, move.db, f);
  size_t size = 0;
  for (const std::string_view part : payload) size += part.size();
  put_number(out, size);
  for (const std::string_view part : payload) out.append(part);
}

void journal_holder(Context& ctx, DbIndex db, std::string_view key, const Holder& h) {
  record_deadline(ctx.s.journal, h.deadline);
  if (begins_part(ctx, db, key))
    put_holder(open_record(ctx, Record::kPutHolder, db, key), saved_holder(h, ctx.now));
}

void journal_erased_holder(Context& ctx, DbIndex db, std::string_view key, std::string_view owner) {
  if (begins_part(ctx, db, key)) put_text(open_record(ctx, Record::kEraseHolder, db, key), owner);
}

void journal_delay(Context& ctx, DbIndex db, std::string_view key, TimeMs until) {
  if (!ctx.s.journal.on) return;
  record_clock(ctx);
  write_delay(ctx.s.journal.out, ctx.s.db_name[db], key, until, ctx.now);
}

void journal_flush(Context& ctx, DbIndex db) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  open_record(ctx.s.journal.out, Record::kFlush, ctx.s.db_name[db]);
}

void journal_swap(Context& ctx, DbIndex a, DbIndex b) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  ctx.s.journal.grants = true;
  open_record(ctx.s.journal.out, Record::kSwap, a);
  put_u8(ctx.s.journal.out, b);
}

void journal_library(Context& ctx, std::string_view code) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  ctx.s.journal.grants = true;
  open_record(ctx.s.journal.out, Record::kLibrary, 0);
  put_text(ctx.s.journal.out, code);
}

void journal_library_end(Context& ctx, std::string_view name) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  open_record(ctx.s.journal.out, Record::kLibraryEnd, 0);
  put_text(ctx.s.journal.out, name);
}

void journal_lease(Context& ctx, const LiveLease& lease) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  ctx.s.journal.grants = true;
  record_clock(ctx);
  write_lease(ctx.s.journal.out, ctx.s.db_name[lease.db], lease, ctx.now);
}

void journal_lease_deadline(Context& ctx, const LiveLease& lease) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  ctx.s.journal.grants = true;
  record_clock(ctx);
  std::string& out = ctx.s.journal.out;
  open_record(out, Record::kLeaseDeadline, 0);
  put_text(out, lease.id);
  put_number(out, static_cast<uint64_t>(lease.ttl.count));
  put_deadline(out, saved_deadline(lease.at(), ctx.now));
}

void journal_lease_end(Context& ctx, std::string_view id, LeaseState state, Token token) {
  if (!ctx.s.journal.on) return;
  write_large_records(ctx);
  ctx.s.journal.grants = ctx.s.journal.grants || state == LeaseState::kConfirmed;
  write_lease_end(ctx.s.journal.out, id, state, token);
}

std::string side_records(const EngineState& s, const Now& now) {
  std::string out;
  s.leases.for_each_outcome([&](const std::string& id, const LeaseOutcome& outcome) {
    write_lease_end(out, id, outcome.state, outcome.token);
  });
  std::vector<const LiveLease*> leases;
  s.leases.for_each([&](const LiveLease& lease) { leases.push_back(&lease); });
  std::ranges::sort(leases, {}, &LiveLease::serial);
  for (const LiveLease* lease : leases) write_lease(out, s.db_name[lease->db], *lease, now);
  std::vector<const WaitQueue*> delayed;
  s.queues.for_each([&](const WaitQueue& q) {
    if (q.delayed(now.mono)) delayed.push_back(&q);
  });
  std::ranges::sort(delayed, {}, [&](const WaitQueue* q) {
    return std::pair(s.db_name[q->db], std::string_view(q->key_bytes));
  });
  for (const WaitQueue* q : delayed) write_delay(out, s.db_name[q->db], q->key_bytes, q->delay_until, now);
  return out;
}

}  // namespace holdfast

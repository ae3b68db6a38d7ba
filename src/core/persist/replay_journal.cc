// The reader of records. journal.h defines their grammar.
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/timers.h"
#include "core/codec/journal_record.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/keys.h"
#include "core/persist/restore_state.h"
#include "core/persist/value_reader.h"
#include "core/state/context.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/library_store.h"
#include "core/values/body_changes.h"
#include "core/values/hash_changes.h"
#include "core/values/list_changes.h"
#include "core/values/set_changes.h"
#include "core/values/zset_changes.h"

namespace holdfast {

namespace {

// The largest number of elements to allocate in advance: a damaged count must not fill the memory.
constexpr uint64_t kMaxReserve = 1024;

std::string wrong(std::string_view key, std::string_view what) {
  return std::string(what).append(" (key '").append(key).append("')");
}

std::vector<std::string_view> read_texts(ByteReader& in, uint64_t n) {
  std::vector<std::string_view> texts;
  texts.reserve(std::min(n, kMaxReserve));
  for (; n > 0 && in.ok(); --n) texts.push_back(in.text());
  return texts;
}

std::vector<std::string_view> read_pairs(ByteReader& in) {
  const uint64_t pairs = in.number();
  return read_texts(in, pairs > UINT64_MAX / 2 ? UINT64_MAX : pairs * 2);
}

std::string replay_string(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  const SavedHold hold = read_hold(in);
  const std::string_view value = in.text();
  if (in.ok()) restore_string(ctx, db, key, value, deadline_ms, hold);
  return {};
}

std::string replay_string_part(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  const SavedHold hold = read_hold(in);
  const uint64_t size = in.number();
  const uint64_t at = in.number();
  const std::string_view part = in.text();
  if (!in.ok() || restore_string_part(ctx, db, key, size, at, part, deadline_ms, hold)) return {};
  return wrong(key, "a part of a string that the key does not have");
}

std::string replay_move(Context& ctx, DbIndex db, ByteReader& in, Record op) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  const SavedHold hold = read_hold(in);
  const std::string_view to = in.text();
  const uint8_t number = op == Record::kCopy ? in.u8() : ctx.s.db_name[db];
  if (!in.ok()) return {};
  if (number >= kDatabases) return "no such database";
  if (restore_move(ctx, op, db, key, ctx.s.db_at[number], to, deadline_ms, hold)) return {};
  return wrong(key, "a move of a value that does not exist");
}

void restore_value(Context& ctx, DbIndex db, std::string_view key, DumpedValue& value, int64_t deadline_ms,
                   const SavedHold& hold) {
  if (value.body != nullptr) {
    return restore_body(ctx, db, key, value.type, std::move(value.body), deadline_ms);
  }
  if (value.type == EntryType::kString) {
    return restore_string(ctx, db, key, value.string.view(), deadline_ms, hold);
  }
  std::vector<std::string_view> pairs;
  for (const auto& [field, text] : value.fields) pairs.insert(pairs.end(), {field, text});
  restore_hash(ctx, db, key, pairs, deadline_ms);
}

std::string replay_restore(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  const SavedHold hold = read_hold(in);
  const std::string_view payload = in.text();
  if (!in.ok()) return {};
  ValueReader reader(ctx.s, ctx.now, payload);
  reader.step(UINT64_MAX, SIZE_MAX);
  if (!reader.error().empty()) return wrong(key, "a payload without a value");
  restore_value(ctx, db, key, reader.value(), deadline_ms, hold);
  return {};
}

std::string replay_hash(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  const auto pairs = read_pairs(in);
  if (in.ok()) restore_hash(ctx, db, key, pairs, deadline_ms);
  return {};
}

std::string replay_lock(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  std::vector<SavedHolder> holders;
  for (uint64_t n = in.number(); n > 0 && in.ok(); --n) holders.push_back(read_holder(in));
  if (!in.ok() || restore_lock(ctx, db, key, holders)) return {};
  return wrong(key, "holders that conflict with each other");
}

std::string replay_fields(Context& ctx, DbIndex db, ByteReader& in, Record op) {
  const std::string_view key = in.text();
  const auto texts = op == Record::kSetFields ? read_pairs(in) : read_texts(in, in.number());
  if (!in.ok()) return {};
  const Key found = ctx.keys(db).key(key);
  Keyspace::Found f = ctx.keys(db).find(found);
  if (!f || !is_hash(*f)) return wrong(key, "fields of a key that is not a hash");
  if (op == Record::kSetFields) {
    set_fields(ctx, {db, f}, found, texts, {});
  } else {
    erase_fields(ctx, {db, f}, found, texts, {});
  }
  return {};
}

std::string replay_set(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  auto set = new_set(ctx.s);
  for (uint64_t n = in.number(); n > 0 && in.ok(); --n) set->add(in.text());
  if (!in.ok()) return {};
  if (set->size() == 0) return wrong(key, "a set without members");
  restore_body(ctx, db, key, EntryType::kSet, std::move(set), deadline_ms);
  return {};
}

std::string replay_members(Context& ctx, DbIndex db, ByteReader& in, Record op) {
  const std::string_view key = in.text();
  const auto members = read_texts(in, in.number());
  if (!in.ok()) return {};
  const Key found = ctx.keys(db).key(key);
  Keyspace::Found f = ctx.keys(db).find(found);
  const EntryType type = f ? type_of(*f) : EntryType::kNone;
  if (type == EntryType::kZset && op == Record::kEraseMembers) {
    remove_members<ZsetBody>(ctx, {db, f}, members, {});
    return {};
  }
  if (type != EntryType::kSet) return wrong(key, "members of a key that is not a set");
  op == Record::kAddMembers ? add_members(ctx, {db, f}, found, members, {})
                            : remove_members<SetBody>(ctx, {db, f}, members, {});
  return {};
}

std::string replay_list(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  auto list = std::make_unique<ListBody>();
  for (uint64_t n = in.number(); n > 0 && in.ok(); --n) list->push(ListEnd::kTail, in.text());
  if (!in.ok()) return {};
  if (list->size() == 0) return wrong(key, "a list without elements");
  restore_body(ctx, db, key, EntryType::kList, std::move(list), deadline_ms);
  return {};
}

ListEnd read_list_end(ByteReader& in) { return in.u8() == 0 ? ListEnd::kHead : ListEnd::kTail; }

std::string replay_push(Context& ctx, KeyRef k, const Key& key, ByteReader& in) {
  const ListEnd end = read_list_end(in);
  const auto elements = read_texts(in, in.number());
  if (in.ok() && !elements.empty()) push_elements(ctx, k, key, end, elements, {});
  return {};
}

std::string replay_element(Context& ctx, KeyRef k, const Key& key, ByteReader& in, Record op) {
  const uint64_t index = in.number();
  const std::string_view element = in.text();
  const size_t size = body_of<ListBody>(*k).size();
  if (!in.ok()) return {};
  if (index >= size + (op == Record::kInsertElement ? 1 : 0)) return wrong(key.bytes, "no such index");
  op == Record::kInsertElement ? insert_element(ctx, k, index, element, {})
                               : set_element(ctx, k, index, element, {});
  return {};
}

std::string replay_erased_elements(Context& ctx, KeyRef k, const Key& key, ByteReader& in) {
  const uint64_t index = in.number();
  const uint64_t count = in.number();
  const size_t size = body_of<ListBody>(*k).size();
  if (!in.ok()) return {};
  if (index > size || count > size - index) return wrong(key.bytes, "no such elements");
  erase_elements(ctx, k, index, count, {});
  return {};
}

// Replays a change of an existing list.
std::string replay_list_change(Context& ctx, DbIndex db, ByteReader& in, Record op) {
  const Key key = ctx.keys(db).key(in.text());
  if (!in.ok()) return {};
  Keyspace::Found f = ctx.keys(db).find(key);
  if (!f || type_of(*f) != EntryType::kList)
    return wrong(key.bytes, "elements of a key that is not a list");
  const KeyRef k{db, f};
  if (op == Record::kPushElements) return replay_push(ctx, k, key, in);
  if (op == Record::kEraseElements) return replay_erased_elements(ctx, k, key, in);
  if (op != Record::kEraseEqualElements) return replay_element(ctx, k, key, in, op);
  const ListEnd from = read_list_end(in);
  const uint64_t most = in.number();
  const std::string_view element = in.text();
  if (in.ok()) erase_equal_elements(ctx, k, from, most, element, {});
  return {};
}

MemberScore read_score(ByteReader& in) {
  const std::string_view member = in.text();
  return {member, std::bit_cast<double>(in.fixed<uint64_t>())};
}

std::string replay_zset(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  auto zset = new_zset(ctx.s);
  for (uint64_t n = in.number(); n > 0 && in.ok(); --n) {
    const auto [member, score] = read_score(in);
    if (std::isnan(score)) return wrong(key, "a score that is not a number");
    if (in.ok()) zset->set(member, score, loading_zset_limits(ctx.s));
  }
  if (!in.ok()) return {};
  if (zset->size() == 0) return wrong(key, "a sorted set without members");
  zset->drop_minus_zero();
  restore_body(ctx, db, key, EntryType::kZset, std::move(zset), deadline_ms);
  return {};
}

std::string replay_scores(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  std::vector<MemberScore> scores;
  for (uint64_t n = in.number(); n > 0 && in.ok(); --n) {
    scores.push_back(read_score(in));
    if (std::isnan(scores.back().score)) return wrong(key, "a score that is not a number");
  }
  if (!in.ok() || scores.empty()) return {};
  const Key found = ctx.keys(db).key(key);
  Keyspace::Found f = ctx.keys(db).find(found);
  if (!f || type_of(*f) != EntryType::kZset) return wrong(key, "scores of a key that is not a sorted set");
  put_scores(ctx, {db, f}, found, scores, {}, {});
  return {};
}

std::string replay_erased_ranks(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const uint64_t rank = in.number();
  const uint64_t count = in.number();
  if (!in.ok()) return {};
  Keyspace::Found f = ctx.keys(db).find(ctx.keys(db).key(key));
  const uint64_t size = f && type_of(*f) == EntryType::kZset ? value_body_of(*f)->size() : 0;
  if (rank > size || count > size - rank) return wrong(key, "ranks that do not exist");
  remove_ranks(ctx, {db, f}, rank, count, {});
  return {};
}

std::string replay_deadline(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t deadline_ms = read_deadline(in);
  if (!in.ok() || restore_deadline(ctx, db, key, deadline_ms)) return {};
  return wrong(key, "a deadline of a key that does not exist");
}

std::string replay_field_deadlines(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  std::vector<FieldDeadline> deadlines;
  for (uint64_t n = in.number(); n > 0 && in.ok(); --n) {
    const std::string_view field = in.text();
    deadlines.emplace_back(field, restored_deadline(read_deadline(in), ctx.now));
  }
  if (!in.ok() || restore_field_deadlines(ctx, db, key, deadlines)) return {};
  return wrong(key, "deadlines of fields of a key that is not a hash");
}

std::string replay_holder(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const SavedHolder holder = read_holder(in);
  if (!in.ok() || restore_holder(ctx, db, key, holder)) return {};
  return wrong(key, "a holder that conflicts with the other holders");
}

std::string replay_erased_holder(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const std::string_view owner = in.text();
  if (!in.ok()) return {};
  Keyspace::Found f = ctx.keys(db).find(ctx.keys(db).key(key));
  const bool lock = f && type_of(*f) == EntryType::kLock;
  const Holder* h = lock ? lock_body_of(*f)->find(owner) : nullptr;
  if (h == nullptr) return wrong(key, "the end of a hold that does not exist");
  end_holder(ctx, {db, f}, h, End::kDeleted, ctx.now.mono);
  return {};
}

std::string replay_erase(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  if (!in.ok()) return {};
  Keyspace::Found f = ctx.keys(db).find(ctx.keys(db).key(key));
  if (f && type_of(*f) != EntryType::kNone) remove_key(ctx, {db, f}, End::kDeleted);
  return {};
}

std::string replay_delay(Context& ctx, DbIndex db, ByteReader& in) {
  const std::string_view key = in.text();
  const int64_t until_ms = read_deadline(in);
  if (in.ok()) restore_delay(ctx, db, key, until_ms);
  return {};
}

DurationMs read_ttl(ByteReader& in) {
  return {static_cast<int64_t>(std::min<uint64_t>(in.number(), kMaxTtlMs))};
}

std::string replay_lease(Context& ctx, DbIndex db, ByteReader& in) {
  auto lease = std::make_unique<LiveLease>();
  lease->db = db;
  lease->id = in.text();
  lease->serial = in.number();
  lease->token = {std::min(in.number(), kMaxToken)};
  lease->ttl = read_ttl(in);
  const int64_t deadline_ms = read_deadline(in);
  for (const std::string_view key : read_texts(in, in.number())) lease->keys.emplace_back(key);
  if (in.ok()) restore_lease(ctx, std::move(lease), deadline_ms);
  return {};
}

std::string replay_lease_deadline(Context& ctx, ByteReader& in) {
  const std::string_view id = in.text();
  const DurationMs ttl = read_ttl(in);
  const int64_t deadline_ms = read_deadline(in);
  if (!in.ok() || restore_lease_deadline(ctx, id, ttl, deadline_ms)) return {};
  return "a deadline of a lease that does not exist";
}

std::string replay_lease_end(Context& ctx, ByteReader& in) {
  const std::string_view id = in.text();
  const uint8_t state = in.u8();
  const Token token{std::min(in.number(), kMaxToken)};
  if (!in.ok()) return {};
  if (state > static_cast<uint8_t>(LeaseState::kExpired)) return "unknown outcome of a lease";
  if (LiveLease* lease = ctx.s.leases.find(id)) {
    ctx.s.timers.cancel(lease);
    ctx.s.leases.end(lease, static_cast<LeaseState>(state));
  } else {
    ctx.s.leases.remember(id, static_cast<LeaseState>(state), token);
  }
  return {};
}

std::string replay_swap(Context& ctx, DbIndex a, ByteReader& in) {
  const uint8_t b = in.u8();
  if (!in.ok()) return {};
  if (b >= kDatabases) return "no such database";
  swap_databases(ctx.s, a, b);
  return {};
}

std::string library_error(const std::string& why) {
  return why.empty() ? why : "a library of functions cannot be loaded: " + why;
}

std::string replay_library(LibraryChanges& libraries, Record op, ByteReader& in) {
  const std::string_view text = in.text();
  if (!in.ok()) return {};
  if (op == Record::kLibrary) return library_error(libraries.set(text));
  libraries.remove(text);
  return {};
}

// Sets the clock for the following records. `now` is the present time of the clocks.
std::string replay_clock(Context& ctx, const Now& now, ByteReader& in) {
  const SavedClock clock = read_clock(in);
  if (!in.ok()) return {};
  ctx.s.journal.read_boot_id = clock.boot_id;
  ctx.s.journal.read_ahead_ms = clock.ahead_ms;
  ctx.now = reading_time(ctx.s.config, now, clock);
  return {};
}

std::string replay_one(Context& ctx, LibraryChanges& libraries, Record op, uint8_t number, ByteReader& in) {
  if (number >= kDatabases) return "no such database";
  const DbIndex db = ctx.s.db_at[number];
  switch (op) {
    case Record::kString:
      return replay_string(ctx, db, in);
    case Record::kStringPart:
      return replay_string_part(ctx, db, in);
    case Record::kMove:
    case Record::kCopy:
      return replay_move(ctx, db, in, op);
    case Record::kRestore:
      return replay_restore(ctx, db, in);
    case Record::kHash:
      return replay_hash(ctx, db, in);
    case Record::kLock:
      return replay_lock(ctx, db, in);
    case Record::kErase:
      return replay_erase(ctx, db, in);
    case Record::kSetFields:
    case Record::kEraseFields:
      return replay_fields(ctx, db, in, op);
    case Record::kSet:
      return replay_set(ctx, db, in);
    case Record::kAddMembers:
    case Record::kEraseMembers:
      return replay_members(ctx, db, in, op);
    case Record::kList:
      return replay_list(ctx, db, in);
    case Record::kPushElements:
    case Record::kSetElement:
    case Record::kInsertElement:
    case Record::kEraseElements:
    case Record::kEraseEqualElements:
      return replay_list_change(ctx, db, in, op);
    case Record::kZset:
      return replay_zset(ctx, db, in);
    case Record::kPutScores:
      return replay_scores(ctx, db, in);
    case Record::kEraseRanks:
      return replay_erased_ranks(ctx, db, in);
    case Record::kDeadline:
      return replay_deadline(ctx, db, in);
    case Record::kFieldDeadlines:
      return replay_field_deadlines(ctx, db, in);
    case Record::kPutHolder:
      return replay_holder(ctx, db, in);
    case Record::kEraseHolder:
      return replay_erased_holder(ctx, db, in);
    case Record::kDelay:
      return replay_delay(ctx, db, in);
    case Record::kFlush:
      flush_db(ctx, db);
      return {};
    case Record::kSwap:
      return replay_swap(ctx, number, in);
    case Record::kLease:
      return replay_lease(ctx, db, in);
    case Record::kLeaseDeadline:
      return replay_lease_deadline(ctx, in);
    case Record::kLeaseEnd:
      return replay_lease_end(ctx, in);
    case Record::kLibrary:
    case Record::kLibraryEnd:
      return replay_library(libraries, op, in);
    case Record::kClock:
      break;  // replay() handles it
  }
  return "a record of an unknown type";
}

}  // namespace

std::string replay(Context& ctx, std::string_view records) {
  const Now now = ctx.now;
  ctx.now = reading_time(ctx.s.config, now, {ctx.s.journal.read_boot_id, ctx.s.journal.read_ahead_ms});
  LibraryChanges libraries;
  ByteReader in(records);
  while (!in.at_end()) {
    const auto op = static_cast<Record>(in.u8());
    const uint8_t number = in.u8();
    const bool clock = op == Record::kClock;
    std::string why = clock ? replay_clock(ctx, now, in) : replay_one(ctx, libraries, op, number, in);
    if (!why.empty()) return why;
    if (!in.ok()) return "a record is incomplete";
  }
  return libraries.empty() ? std::string() : library_error(libraries.load(ctx.s));
}

}  // namespace holdfast

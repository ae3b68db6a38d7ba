// Writes the keys that the RDB reader delivers to the keyspace.
#include "core/persist/load_snapshot.h"

#include <algorithm>
#include <utility>

#include "core/base/config.h"
#include "core/base/parse.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/list_body.h"
#include "core/persist/snapshot.h"
#include "core/state/context.h"
#include "core/state/library_store.h"
#include "core/state/tokens.h"
#include "core/values/set_changes.h"
#include "core/values/zset_changes.h"

namespace holdfast {

namespace {

// A hash with more fields goes to its final place while it is read, as it may be larger than half the
// memory.
constexpr size_t kGathered = 100000;

uint64_t number_of(std::string_view text) {
  const auto n = parse_int(text);
  return n && *n > 0 ? static_cast<uint64_t>(*n) : 0;
}

class Peek : public RdbSink {
 public:
  PeekedJournal journal;

 private:
  void aux(std::string_view name, std::string_view value) override {
    if (name == kAuxJournal) journal.number = number_of(value);
    if (name == kAuxFollows) journal.follows = true;
  }
};

}  // namespace

PeekedJournal peek_journal(std::string_view first_bytes) {
  Peek peek;
  RdbReader reader(peek, true);
  static_cast<void>(reader.feed(first_bytes));
  return peek.journal;
}

Restore::Restore(EngineState& s, Now now, bool skip_unknown)
    : s_(s), now_(now), ctx_(restoring_context(s, now, none_)), reader_(*this, skip_unknown) {}

void Restore::fail(std::string why) {
  if (error_.empty()) error_ = std::move(why);
}

bool Restore::feed(std::string_view bytes) {
  if (!reader_.feed(bytes)) fail(reader_.error());
  return error_.empty();
}

bool Restore::finish() {
  if (!reader_.finish()) fail(reader_.error());
  if (!error_.empty()) return false;
  // Scripts on Redis issue no token ahead of the clock except those in their token keys.
  if (!own_) s_.tokens.raise_all({std::min(static_cast<uint64_t>(now_.wall_us), kMaxToken)});
  for (const TokenRecord& record : token_records_) restore_token_record(ctx_, record);
  if (std::string why = replay(ctx_, records_); !why.empty())
    fail("its " + std::string(kAuxRecords) + ": " + why);
  return error_.empty();
}

void Restore::aux(std::string_view name, std::string_view value) {
  if (!error_.empty()) return;
  if (name == kAuxHold) {
    ByteReader in(value);
    hold_ = read_hold(in);
    if (!in.ok()) fail("a " + std::string(kAuxHold) + " is incomplete");
  } else if (name == kAuxPlain) {
    plain_ = true;
  } else if (name == kAuxJournal) {
    journal_ = number_of(value);
  } else if (name == kAuxFollows) {
    follows_ = true;
  } else if (name == kAuxTokens) {
    own_ = true;
    s_.tokens.raise_all({std::min(number_of(value), kMaxToken)});
  } else if (name == kAuxAhead) {
    const size_t blank = std::min(value.find(' '), value.size() - 1);
    const Token token{std::min(number_of(value.substr(0, blank)), kMaxToken)};
    s_.tokens.raise(ctx_.keys(0).key(value.substr(blank + 1)), token, near_token(s_.config, now_));
  } else if (name == kAuxClock) {
    const auto clock = read_clock_text(value);
    if (!clock) return fail("a " + std::string(kAuxClock) + " is not a clock");
    ctx_.now = reading_time(s_.config, now_, *clock);
  } else if (name == kAuxRecords) {
    records_ = value;
  }
}

// The reader may have more keys in the same piece after an error.
bool Restore::usable(uint64_t db) {
  if (!error_.empty()) return false;
  if (db < kDatabases) return true;
  fail("key in database " + std::to_string(db) + ": there are " + std::to_string(kDatabases) + " (0 to " +
       std::to_string(kDatabases - 1) + ")");
  return false;
}

void Restore::string(uint64_t db, std::string_view key, std::string_view value, int64_t expire_ms) {
  if (!usable(db)) return;
  ++keys_;
  SavedHold hold = hold_.value_or(SavedHold{});
  if (!hold_) {
    hold.held_since_ms = ctx_.now.wall_us / 1000;
    const int64_t left_ms = expire_ms - hold.held_since_ms;
    if (expire_ms != kNoDeadline) hold.ttl = {std::clamp<int64_t>(left_ms, 0, kMaxTtlMs)};
  }
  hold_.reset();
  plain_ = false;
  restore_string(ctx_, s_.db_at[db], key, value, std::min(expire_ms, kMaxWallMs), hold);
}

void Restore::begin_collection(RdbCollection kind, uint64_t db, std::string_view key, int64_t expire_ms) {
  if (!usable(db)) return;
  ++keys_;
  db_ = s_.db_at[db];
  key_ = key;
  expire_ms_ = std::min(expire_ms, kMaxWallMs);
  begin_body(kind);
}

void Restore::begin_body(RdbCollection kind) {
  switch (kind) {
    case RdbCollection::kHash:
      return;
    case RdbCollection::kSet:
      type_ = EntryType::kSet;
      value_ = new_set(s_);
      return;
    case RdbCollection::kZset:
      type_ = EntryType::kZset;
      value_ = new_zset(s_);
      return;
    case RdbCollection::kList:
      type_ = EntryType::kList;
      value_ = std::make_unique<ListBody>();
      return;
  }
}

void Restore::element(std::string_view text, double score) {
  if (value_ == nullptr) return;  // after an error
  if (type_ == EntryType::kList) static_cast<ListBody&>(*value_).push(ListEnd::kTail, text);
  if (type_ == EntryType::kSet) static_cast<SetBody&>(*value_).add(text);
  if (type_ == EntryType::kZset) static_cast<ZsetBody&>(*value_).set(text, score, loading_zset_limits(s_));
}

void Restore::field(std::string_view name, std::string_view value) {
  if (body_ != nullptr) {
    body_->set(name, value);
    return;
  }
  fields_.emplace_back(name, value);
  if (fields_.size() < kGathered || fields_.front().first == kLockMarker) return;
  gather_in_body();
}

// A hash with deadlines of fields is neither a lock nor a record.
void Restore::timed_field(std::string_view name, std::string_view value, int64_t deadline_ms) {
  if (body_ == nullptr) gather_in_body();
  body_->set(name, value);
  body_->set_deadline(name, restored_deadline(deadline_ms, ctx_.now), kNever);
}

void Restore::gather_in_body() {
  body_ = std::make_unique<HashBody>(s_.config.hash_seed);
  for (const auto& [field, text] : fields_) body_->set(field, text);
  fields_.clear();
}

void Restore::end_collection() {
  if (!error_.empty()) return;
  if (value_ != nullptr) {
    if (type_ == EntryType::kZset) static_cast<ZsetBody&>(*value_).drop_minus_zero();
    restore_body(ctx_, db_, key_, type_, std::move(value_), expire_ms_);
  } else {
    end_hash();
  }
  hold_.reset();
  plain_ = false;
}

void Restore::end_hash() {
  if (body_ != nullptr) {
    restore_body(ctx_, db_, key_, EntryType::kBigHash, std::move(body_), expire_ms_);
  } else if (plain_ || (!restore_as_lock() && !keep_as_token_record())) {
    std::vector<std::string_view> pairs;
    for (const auto& [field, value] : fields_) pairs.insert(pairs.end(), {field, value});
    restore_hash(ctx_, db_, key_, pairs, expire_ms_);
  }
  fields_.clear();
}

// Restores a hash as a lock, if it has the lock marker and every other field is a holder. Returns false if
// not.
bool Restore::restore_as_lock() {
  std::vector<SavedHolder> holders;
  bool marked = false;
  for (const auto& [field, value] : fields_) {
    if (field == kLockMarker && value == kLockMarkerValue) {
      marked = true;
      continue;
    }
    auto holder = field.starts_with(kOwnerPrefix) ? read_holder_text(value) : std::nullopt;
    if (!holder) return false;
    holder->owner = std::string_view(field).substr(kOwnerPrefix.size());
    holders.push_back(*holder);
  }
  if (!marked || holders.empty()) return false;
  return restore_lock(ctx_, db_, key_, holders);
}

// Keeps a hash as a record, if its name and fields are those of a record. Returns false if not.
bool Restore::keep_as_token_record() {
  TokenRecord record;
  record.db = db_;
  bool known = true;
  bool counted = false;
  for (const auto& [field, value] : fields_) {
    if (field == kRecordOf) {
      record.key = value;
    } else if (field == kRecordLast) {
      const auto last = parse_int_in(value, 0, static_cast<int64_t>(kMaxToken));
      counted = last.has_value();
      record.last = {static_cast<uint64_t>(last.value_or(0))};
    } else if (field == kRecordOwner) {
      record.owner_sha1 = value;
    } else if (field == kRecordHold) {
      record.exclusive = read_holder_text(value);
    } else if (auto saved = field.starts_with(kNotePrefix) ? read_note_text(value) : std::nullopt) {
      saved->owner = field.substr(kNotePrefix.size());
      record.notes.push_back(std::move(*saved));
    } else {
      known = false;
    }
  }
  if (!known || !counted || key_ != token_key(record.key)) return false;
  token_records_.push_back(std::move(record));
  return true;
}

void Restore::library(std::string_view code) {
  if (!error_.empty()) return;
  if (const std::string why = restore_library(s_, code); !why.empty()) {
    fail("a library of functions cannot be loaded: " + why);
  }
}

void Restore::skipped(uint64_t, std::string_view, std::string_view) {
  ++skipped_;
  hold_.reset();
  plain_ = false;
}

}  // namespace holdfast

// Walks the keyspaces.
#include "view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/score.h"
#include "core/codec/hold_codec.h"
#include "core/engine/engine_parts.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"
#include "core/lock/keys.h"
#include "core/values/hash_changes.h"

namespace holdfast::simulation {
namespace {

void put_hold(Record& record, const SavedHold& hold) {
  record.token = hold.token.value;
  record.since_ms = hold.held_since_ms;
  record.session = hold.session;
  record.lease = hold.lease;
  record.delay_ms = hold.delay.count;
  record.rest = fmt::format("ttl {} delay {} lease {} note '{}'", hold.ttl.count, hold.delay.count,
                            hold.lease, hold.note);
}

class Walk {
 public:
  Walk(EngineState& state, const Now& clock) : state_(state), clock_(clock) {}

  View records() {
    for (int db = 0; db < kDatabases; ++db) {
      const DbIndex place = state_.db_at[static_cast<size_t>(db)];
      Keyspace& keys = *state_.dbs[place];
      if (keys.live() == 0) continue;
      keys.scan(0, SIZE_MAX, [&](const Entry& entry) {
        if (type_of(entry) != EntryType::kNone) add(db, place, keys.find(keys.key(key_of(entry))));
      });
    }
    end_with_leases();
    add_delays();
    std::ranges::sort(view_, [](const Record& a, const Record& b) {
      return std::tie(a.db, a.key, a.owner) < std::tie(b.db, b.key, b.owner);
    });
    return std::move(view_);
  }

 private:
  void add(int db, DbIndex place, const Keyspace::Found& found) {
    Record record;
    record.db = db;
    record.key = std::string(key_of(*found));
    record.deadline_ms = saved_deadline(value_deadline_of(*found), clock_);
    if (type_of(*found) == EntryType::kString) {
      record.owner = std::string(value_of(*found));
      put_hold(record, saved_hold(token_of(*found), ttl_of(*found), held_since(*found),
                                  attachment_of(state_.attachments, place, found), clock_));
      view_.push_back(std::move(record));
    } else if (type_of(*found) == EntryType::kLock) {
      add_holders(record, *found);
    } else {
      add_value(std::move(record), *found);
    }
  }
  // A hold of a lease ends with it.
  void end_with_leases() {
    std::map<uint64_t, int64_t> deadlines;
    state_.leases.for_each(
        [&](const LiveLease& lease) { deadlines[lease.serial] = saved_deadline(lease.at(), clock_); });
    for (Record& record : view_) {
      const auto lease = deadlines.find(record.lease);
      if (lease == deadlines.end() || lease->second < 0) continue;
      record.deadline_ms =
          record.deadline_ms < 0 ? lease->second : std::min(record.deadline_ms, lease->second);
    }
  }
  // The key may have no holder, and then no value either.
  void add_delays() {
    state_.queues.for_each([&](const WaitQueue& q) {
      if (q.delay_until.count == 0) return;
      Record record;
      record.db = state_.db_name[q.db];
      record.key = q.key_bytes;
      record.rest = "lock-delay";
      record.deadline_ms = saved_deadline(q.delay_until, clock_);
      record.delay = true;
      view_.push_back(std::move(record));
    });
  }
  void add_holders(const Record& key, const Entry& entry) {
    lock_body_of(entry)->for_each([&](const Holder& holder) {
      const SavedHolder saved = saved_holder(holder, clock_);
      Record record = key;
      record.owner = std::string(saved.owner);
      record.capacity = saved.capacity.count;
      record.deadline_ms = saved.deadline_ms;
      put_hold(record, saved.hold);
      view_.push_back(std::move(record));
    });
  }
  // A value without holders. Its elements come in an order that does not depend on its history.
  void add_value(Record record, const Entry& entry) {
    std::map<std::string, std::string> elements;
    record.hash = true;
    record.rest = type_name(type_of(entry));
    if (type_of(entry) == EntryType::kList) {
      for (auto at = body_of<ListBody>(entry).first(); at.valid(); at.next()) {
        record.rest += fmt::format("[{}]", at.get());
      }
    } else if (type_of(entry) == EntryType::kSet) {
      body_of<SetBody>(entry).for_each([&](std::string_view member) { elements[std::string(member)]; });
    } else if (type_of(entry) == EntryType::kZset) {
      body_of<ZsetBody>(entry).for_each([&](std::string_view member, double score) {
        elements[std::string(member)] = format_score(score);
      });
    } else {
      add_fields(record, HashView(entry), elements);
      if (elements.empty()) return;
    }
    for (const auto& [name, value] : elements) record.rest += fmt::format("[{}: {}]", name, value);
    view_.push_back(std::move(record));
  }

  // A field with a deadline ends on its own, and is a record of its own. The others go to `elements`.
  void add_fields(const Record& key, const HashView& hash, std::map<std::string, std::string>& elements) {
    hash.for_each([&](std::string_view field, std::string_view value) {
      const TimeMs deadline = hash.deadline_of(field);
      if (deadline == kNever) {
        elements[std::string(field)] = value;
        return;
      }
      Record record = key;
      record.owner = fmt::format("field {}", field);
      record.rest = fmt::format("[{}: {}]", field, value);
      const int64_t at_ms = saved_deadline(deadline, clock_);
      record.deadline_ms = key.deadline_ms < 0 ? at_ms : std::min(key.deadline_ms, at_ms);
      view_.push_back(std::move(record));
    });
  }

  EngineState& state_;
  const Now& clock_;
  View view_;
};

}  // namespace

std::string Record::text() const {
  return fmt::format("{} '{}' {} {} token {} of {} until {}{}", db, key, hash ? "hash" : "'" + owner + "'",
                     rest, token, capacity, deadline_ms, session ? " session" : "");
}

View view_of(Engine& engine, const Now& clock) { return Walk(engine.state(), clock).records(); }

}  // namespace holdfast::simulation

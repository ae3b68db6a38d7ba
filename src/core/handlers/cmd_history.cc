// LOCKS HISTORY and LOCKS TOP: past events of locks, and the keys that requests wait for.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/events/acl_check.h"
#include "core/lock/holds.h"
#include "core/state/contended_keys.h"
#include "core/state/history.h"
#include "core/state/request.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

constexpr int64_t kDefaultCount = 10;

void field(Request& r, std::string_view name, std::string_view value) {
  r.reply.bulk(name);
  r.reply.bulk(value);
}
void field(Request& r, std::string_view name, int64_t value) {
  r.reply.bulk(name);
  r.reply.integer(value);
}
void field(Request& r, std::string_view name, uint64_t value) {
  field(r, name, static_cast<int64_t>(value));
}

// A user without permission to read a key does not see its events.
bool may_see(const Request& r, std::string_view key) {
  return !r.c.checked || may_read_key(*r.c.user, key);
}

int64_t client_number(const Request& r, DbIndex db) { return r.s().db_name[db]; }

struct HistoryArguments {
  std::optional<std::string_view> key;
  int64_t count = kDefaultCount;
  int64_t since_ms = INT64_MIN;
};

// Reads the option at `i`. Writes an error and returns false if it is invalid.
bool read_history_option(Request& r, size_t i, HistoryArguments& a) {
  if (equals_ignore_case(r.arg(i), "COUNT")) {
    const auto count = read_number(r, i + 1, "COUNT", 1, INT64_MAX);
    if (count) a.count = *count;
    return count.has_value();
  }
  if (equals_ignore_case(r.arg(i), "SINCE")) {
    const auto since = read_number(r, i + 1, "SINCE", 0, INT64_MAX / 1000);
    if (since) a.since_ms = *since;
    return since.has_value();
  }
  reply_syntax_error(r);
  return false;
}

// Options come in pairs, so that an odd number of arguments begins with a key.
std::optional<HistoryArguments> read_history_arguments(Request& r) {
  HistoryArguments a;
  size_t i = 2;
  if ((r.argc() - i) % 2 == 1) a.key = r.arg(i++);
  for (; i < r.argc(); i += 2) {
    if (!read_history_option(r, i, a)) return std::nullopt;
  }
  return a;
}

bool matches(const Request& r, const LockEventView& e, const HistoryArguments& a) {
  if (e.at_us / 1000 < a.since_ms) return false;
  if (!a.key) return may_see(r, e.key);
  return e.db == r.c.db && e.key_bytes == a.key->size() && a.key->starts_with(e.key) && may_see(r, *a.key);
}

void write_event(Request& r, const LockEventView& e) {
  r.reply.map(11);
  field(r, "serial", e.serial);
  field(r, "event", event_name(e.event));
  field(r, "at", e.at_us / 1000);
  field(r, "db", client_number(r, e.db));
  field(r, "key", e.key);
  field(r, "owner", e.owner);
  field(r, "note", e.note);
  field(r, "token", e.token.value);
  field(r, "waited", e.waited().count);
  field(r, "held", e.held().count);
  field(r, "addr", origin_of(r.s(), e.conn).addr);
}

// A row of LOCKS TOP. `counted` is null if no wait for the key has ended since it is counted.
struct TopRow {
  DbIndex db = 0;
  std::string_view key;
  const ContendedKey* counted = nullptr;
};

size_t waiters_of(const Request& r, const TopRow& row) {
  const WaitQueue* q = r.s().queues.find(row.db, r.ctx.keys(row.db).key(row.key));
  return q == nullptr ? 0 : q->waiters.size();
}

// The keys with the longest queues.
std::vector<TopRow> longest_queues(const Request& r, size_t count) {
  std::vector<TopRow> rows;
  const auto& queues = r.s().queues.by_length();
  for (auto it = queues.rbegin(); it != queues.rend() && rows.size() < count; ++it) {
    const WaitQueue& q = *it->queue;
    if (may_see(r, q.key_bytes))
      rows.push_back({q.db, q.key_bytes, r.s().contended.find(q.db, q.key_bytes)});
  }
  return rows;
}

// The keys of the sketch with the largest values, the largest first.
std::vector<TopRow> most_contended(const Request& r, size_t count, uint64_t ContendedKey::*value) {
  std::vector<TopRow> rows;
  for (const ContendedKey& k : r.s().contended.keys()) {
    if (may_see(r, k.key)) rows.push_back({k.db, k.key, &k});
  }
  std::ranges::sort(rows, [&](const TopRow& a, const TopRow& b) {
    if (a.counted->*value != b.counted->*value) return a.counted->*value > b.counted->*value;
    return std::pair(a.db, a.key) < std::pair(b.db, b.key);
  });
  rows.resize(std::min(rows.size(), count));
  return rows;
}

struct TopArguments {
  std::string_view by = "waiters";
  int64_t count = kDefaultCount;
};

std::optional<TopArguments> read_top_arguments(Request& r) {
  constexpr int64_t kMostRows = 1000;
  TopArguments a;
  for (size_t i = 2; i < r.argc(); i += 2) {
    if (i + 1 < r.argc() && equals_ignore_case(r.arg(i), "BY")) {
      a.by = r.arg(i + 1);
    } else if (i + 1 < r.argc() && equals_ignore_case(r.arg(i), "COUNT")) {
      const auto count = read_number(r, i + 1, "COUNT", 1, kMostRows);
      if (!count) return std::nullopt;
      a.count = *count;
    } else {
      reply_syntax_error(r);
      return std::nullopt;
    }
  }
  return a;
}

void write_top_row(Request& r, const TopRow& row) {
  static const ContendedKey kNone;
  const ContendedKey& counted = row.counted == nullptr ? kNone : *row.counted;
  r.reply.map(7);
  field(r, "db", client_number(r, row.db));
  field(r, "key", row.key);
  field(r, "waiters", uint64_t{waiters_of(r, row)});
  field(r, "waits", counted.waits);
  field(r, "wait", counted.wait_ms);
  field(r, "max-wait", counted.max_wait_ms);
  field(r, "holds", counted.grants);
}

}  // namespace

void cmd_locks_history(Request& r) {
  const auto arguments = read_history_arguments(r);
  if (!arguments) return;
  const History& history = r.s().history;
  const auto most = static_cast<size_t>(std::min<int64_t>(arguments->count, INT32_MAX));
  std::vector<uint64_t> found;
  for (uint64_t serial = history.newest(); serial >= history.oldest() && found.size() < most; --serial) {
    if (matches(r, history.at(serial), *arguments)) found.push_back(serial);
  }
  r.reply.array(found.size());
  for (const uint64_t serial : found) write_event(r, history.at(serial));
}

void cmd_locks_top(Request& r) {
  const auto arguments = read_top_arguments(r);
  if (!arguments) return;
  const auto count = static_cast<size_t>(arguments->count);
  std::vector<TopRow> rows;
  if (equals_ignore_case(arguments->by, "waiters")) {
    rows = longest_queues(r, count);
  } else if (equals_ignore_case(arguments->by, "wait")) {
    rows = most_contended(r, count, &ContendedKey::wait_ms);
  } else if (equals_ignore_case(arguments->by, "holds")) {
    rows = most_contended(r, count, &ContendedKey::grants);
  } else {
    return r.reply.error("ERR BY must be waiters, wait or holds");
  }
  r.reply.array(rows.size());
  for (const TopRow& row : rows) write_top_row(r, row);
}

}  // namespace holdfast

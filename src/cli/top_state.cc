// Pure functions of replies.
#include "cli/top_state.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <tuple>

#include "cli/show.h"

namespace holdfast {
namespace {

using client::field;
using client::Value;
using Kind = Value::Kind;
using Buckets = std::vector<std::pair<int64_t, int64_t>>;

constexpr std::string_view kReady = "ready_";

Number number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc() && end == text.data() + text.size() ? Number(number) : std::nullopt;
}

Number number_of(const Value& map, std::string_view name) {
  const Value& value = field(map, name);
  return value.kind == Kind::kInteger ? Number(value.integer) : std::nullopt;
}

// Parses "100=12,200=3,inf=0".
Buckets buckets_in(std::string_view text) {
  Buckets buckets;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) return {};
    const Number bound = one.substr(0, equals) == "inf" ? Number(-1) : number_in(one.substr(0, equals));
    const Number count = number_in(one.substr(equals + 1));
    if (!bound || !count) return {};
    buckets.emplace_back(*bound, *count);
  }
  return buckets;
}

void read_line(std::string_view name, std::string_view value, Figures& figures) {
  if (name == "run_id") figures.run_id = value;
  if (name == "holdfast_version") figures.version = value;
  if (name == "lock_grants") figures.grants = number_in(value);
  if (name == "lock_waiters") figures.waiters = number_in(value);
  if (name == "used_memory") figures.memory_bytes = number_in(value);
  if (name == "maxmemory") figures.memory_limit_bytes = number_in(value);
  if (name == "connected_clients") figures.clients = number_in(value);
  if (name == "lock_wait_us_buckets") figures.waits = buckets_in(value);
  if (!name.starts_with(kReady) || value == "ok") return;
  if (!figures.not_ready.empty()) figures.not_ready += "; ";
  figures.not_ready += fmt::format("{}: {}", name.substr(kReady.size()), value);
}

Number largest(Number a, Number b) { return !a ? b : !b ? a : std::max(*a, *b); }

// Of two rows with the same owner, or of which the first shows its owner.
void merge_into(LockRow& row, const LockRow& other) {
  row.holders = largest(row.holders, other.holders);
  row.held_ms = largest(row.held_ms, other.held_ms);
  row.longest_wait_ms = largest(row.longest_wait_ms, other.longest_wait_ms);
  row.waiters = std::max(row.waiters, other.waiters);
  if (row.owner != other.owner) return;
  row.token = largest(row.token, other.token);
  const bool endless = row.ttl_ms == -1 || other.ttl_ms == -1;
  row.ttl_ms = endless ? Number(-1) : largest(row.ttl_ms, other.ttl_ms);
}

// Returns the row of the owner that the most servers name; of several, the one with the largest token.
LockRow merge(const std::vector<const LockRow*>& rows) {
  const auto servers_of = [&](const LockRow* row) {
    return static_cast<size_t>(
        std::ranges::count_if(rows, [&](const LockRow* other) { return other->owner == row->owner; }));
  };
  const auto rank = [&](const LockRow* row) {
    return std::tuple(row->mode != "free", servers_of(row), row->token);
  };
  const LockRow* best = *std::ranges::max_element(rows, std::less{}, rank);
  LockRow whole = *best;
  whole.servers = servers_of(best);
  for (const LockRow* row : rows) merge_into(whole, *row);
  return whole;
}

}  // namespace

Figures read_figures(std::string_view info) {
  Figures figures;
  while (!info.empty()) {
    std::string_view line = info.substr(0, info.find('\n'));
    info.remove_prefix(std::min(line.size() + 1, info.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) read_line(line.substr(0, colon), line.substr(colon + 1), figures);
  }
  return figures;
}

Rates rates_between(const Figures& before, const Figures& now, double seconds) {
  Rates rates;
  if (before.run_id != now.run_id || seconds <= 0) return rates;
  if (before.grants && now.grants && *now.grants >= *before.grants)
    rates.grants_per_s = static_cast<double>(*now.grants - *before.grants) / seconds;
  if (now.waits.empty() || now.waits.size() != before.waits.size()) return rates;
  rates.has_waits = true;
  for (size_t i = 0; i < now.waits.size(); ++i)
    rates.waits.emplace_back(now.waits[i].first,
                             std::max<int64_t>(0, now.waits[i].second - before.waits[i].second));
  return rates;
}

std::optional<double> wait_quantile_ms(const Buckets& waits, double q) {
  int64_t all = 0;
  for (const auto& [bound, count] : waits) all += count;
  if (all == 0) return std::nullopt;
  const double rank = q * static_cast<double>(all);
  double below = 0, lower_us = 0;
  for (const auto& [bound, count] : waits) {
    const auto n = static_cast<double>(count);
    if (bound < 0) break;
    if (n > 0 && below + n >= rank)
      return (lower_us + (static_cast<double>(bound) - lower_us) * (rank - below) / n) / 1000;
    below += n;
    lower_us = static_cast<double>(bound);
  }
  return lower_us / 1000;
}

void add_listed(const std::vector<Value>& listed, LockRows& rows) {
  for (const Value& one : listed) {
    LockRow& row = rows[field(one, "key").text];
    row.key = field(one, "key").text;
    row.mode = field(one, "mode").text;
    row.owner = field(one, "owner").text;
    row.note = field(one, "note").text;
    row.holders = number_of(one, "holders");
    row.token = number_of(one, "token");
    row.ttl_ms = number_of(one, "ttl");
    row.held_ms = number_of(one, "held");
    row.waiters = number_of(one, "waiters").value_or(0);
    if (row.waiters > 0) row.longest_wait_ms = number_of(one, "waited");
  }
}

void add_contended(const Value& top, int64_t database, const std::string& pattern, LockRows& rows) {
  if (top.kind != Kind::kArray) return;
  for (const Value& one : top.elements) {
    const std::string& key = field(one, "key").text;
    const int64_t waiters = number_of(one, "waiters").value_or(0);
    if (waiters == 0 || number_of(one, "db").value_or(0) != database) continue;
    if (!pattern.empty() && fnmatch(pattern.c_str(), key.c_str(), 0) != 0) continue;
    LockRow& row = rows[key];
    row.key = key;
    row.waiters = std::max(row.waiters, waiters);
  }
}

void add_details(const Value& info, LockRows& rows) {
  if (info.kind != Kind::kArray) return;
  LockRow& row = rows[field(info, "key").text];
  row.key = field(info, "key").text;
  row.mode = mode_text(info);
  const auto& holders = field(info, "holders").elements;
  const auto& waiters = field(info, "waiters").elements;
  row.holders = static_cast<int64_t>(holders.size());
  row.waiters = static_cast<int64_t>(waiters.size());
  if (!waiters.empty()) row.longest_wait_ms = number_of(waiters.front(), "waited");
  const Value* first = nullptr;
  for (const Value& holder : holders) {
    if (first == nullptr || number_of(holder, "token") < number_of(*first, "token")) first = &holder;
    const Number ttl = number_of(holder, "ttl");
    row.ttl_ms = row.ttl_ms == -1 || ttl == -1 ? Number(-1) : largest(row.ttl_ms, ttl);
    row.held_ms = largest(row.held_ms, number_of(holder, "held"));
    row.token = largest(row.token, number_of(holder, "token"));
  }
  if (first == nullptr) return;
  row.owner = field(*first, "owner").text;
  row.note = field(*first, "note").text;
}

std::vector<LockRow> merged(const std::vector<const LockRows*>& of_servers) {
  std::map<std::string, std::vector<const LockRow*>> by_key;
  for (const LockRows* rows : of_servers) {
    for (const auto& [key, row] : *rows) by_key[key].push_back(&row);
  }
  std::vector<LockRow> all;
  all.reserve(by_key.size());
  for (const auto& [key, rows] : by_key) all.push_back(merge(rows));
  return all;
}

}  // namespace holdfast

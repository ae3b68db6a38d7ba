// What `holdfast top` shows: the figures of each server, and one row for each lock. Reads the replies of
// INFO, LOCKS LIST, LOCKS TOP and LOCKS INFO. A field that a reply does not have stays unknown: older
// servers and Redis have fewer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/base/value.h"

namespace holdfast {

using Number = std::optional<int64_t>;

// The figures of one reply of INFO. Counters run since the start of the server.
struct Figures {
  std::string run_id, version;
  std::string not_ready;  // the checks that fail, with their reasons; empty: ready, or not known
  Number grants, waiters, memory_bytes, memory_limit_bytes, clients;
  // The ended waits: the upper bound of each bucket in us (-1: no bound), and the number of waits in it.
  std::vector<std::pair<int64_t, int64_t>> waits;
};

// The difference of two Figures of one server, or of the sums of several. Unknown after a restart.
struct Rates {
  std::optional<double> grants_per_s;
  std::vector<std::pair<int64_t, int64_t>> waits;  // that ended in the interval
  bool has_waits = false;
};

Figures read_figures(std::string_view info);
Rates rates_between(const Figures& before, const Figures& now, double seconds);
// Returns the wait, in ms, that the part `q` (0 to 1) of all waits do not exceed; linear within a bucket,
// as histogram_quantile() of Prometheus. nullopt if there was no wait.
std::optional<double> wait_quantile_ms(const std::vector<std::pair<int64_t, int64_t>>& waits, double q);

// A lock on one server, or merged from several.
struct LockRow {
  std::string key;
  std::string mode;  // "exclusive", "shared", "limit 3"; "free" if only a queue is left; empty: not known
  std::string owner, note;  // of the hold with the smallest token
  Number holders, token, ttl_ms, held_ms, longest_wait_ms;
  int64_t waiters = 0;
  size_t servers = 1;  // the servers on which `owner` holds the lock
};

using LockRows = std::map<std::string, LockRow>;

// Each adds rows to `rows`. The elements of LOCKS TOP for other databases, and those without a waiter now,
// are left out.
void add_listed(const std::vector<client::Value>& listed, LockRows& rows);
void add_contended(const client::Value& top, int64_t database, const std::string& pattern, LockRows& rows);
// Reads the reply of LOCKS INFO. Does nothing if the lock is free.
void add_details(const client::Value& info, LockRows& rows);
// Merges the rows of several servers: the largest figures, and the owner that the most servers name.
std::vector<LockRow> merged(const std::vector<const LockRows*>& of_servers);

// One server, as of its last answers.
struct ServerState {
  std::string name;
  bool asked = false;  // it has answered, or failed to answer, at least once
  std::string why;     // it gives no answers, or rejects INFO; empty: it answers
  Figures figures;
  Rates rates;
  LockRows rows;
  bool has_more_rows = false;  // the server has more locks than top reads
  client::Value queue;         // LOCKS INFO of the lock whose queue is shown
  std::string queue_key;       // its key

  bool is_up() const { return asked && why.empty(); }
  bool is_ready() const { return is_up() && figures.not_ready.empty(); }
};

}  // namespace holdfast

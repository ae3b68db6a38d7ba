// DEBUG, for tests that need a slow server; and SWAPDB.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/request.h"
#include "core/state/watches.h"
#include "core/values/pop_waiting.h"

namespace holdfast {

namespace {

bool is_local(const Conn& c) {
  return c.peer.starts_with("127.") || c.peer.starts_with("[::1]") || c.peer.starts_with('/');
}

bool may_debug(const Request& r) {
  const std::string& allowed = r.s().config.debug_command;
  return allowed == "yes" || (allowed == "local" && is_local(r.c));
}

// Reads a database number from argument `i`. Writes an error and returns nullopt if it is invalid.
std::optional<size_t> read_database(Request& r, size_t i, std::string_view which) {
  const auto number = parse_int_in(r.arg(i), INT32_MIN, INT32_MAX);
  if (!number) {
    r.reply.error(std::string("ERR invalid ").append(which).append(" DB index"));
    return std::nullopt;
  }
  return static_cast<size_t>(*number);
}

// STOP shows the iterations since START.
void debug_loop(Request& r) {
  const bool start = equals_ignore_case(r.arg(2), "START");
  if (!start && !equals_ignore_case(r.arg(2), "STOP")) return r.reply.error("ERR syntax error");
  const auto& measure = r.s().config.measure_loop;
  const LoopTimes times = measure ? measure(start) : LoopTimes{};
  if (start) return r.reply.ok();
  const std::pair<std::string_view, uint64_t> figures[] = {{"iterations", times.iterations},
                                                           {"cpu-over-1ms", times.over_1ms},
                                                           {"longest-cpu-us", times.longest_us}};
  r.reply.map(std::size(figures));
  for (const auto& [name, value] : figures) {
    r.reply.bulk(name);
    r.reply.integer(static_cast<int64_t>(value));
  }
}

}  // namespace

void cmd_debug(Request& r) {
  if (!may_debug(r)) {
    return r.reply.error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can "
        "run it "
        "from a local connection, otherwise you need to set this option in the configuration file, and "
        "then "
        "restart the server.");
  }
  if (equals_ignore_case(r.arg(1), "HELP")) {
    static constexpr std::string_view kLines[] = {
        "LOOP <START|STOP>",
        "    Measure the CPU time of the event loop's iterations, and show the longest.", "SLEEP <seconds>",
        "    Stop the server for <seconds>. Decimals allowed."};
    return reply_help(r, kLines);
  }
  if (equals_ignore_case(r.arg(1), "LOOP") && r.argc() == 3) return debug_loop(r);
  if (!equals_ignore_case(r.arg(1), "SLEEP") || r.argc() != 3) return reply_subcommand_syntax(r);
  constexpr double kMostSeconds = 3600;
  const double seconds = std::strtod(std::string(r.arg(2)).c_str(), nullptr);
  if (r.s().config.sleep && seconds > 0) {
    r.s().config.sleep(static_cast<int64_t>(std::min(seconds, kMostSeconds) * 1e6));
  }
  r.reply.ok();
}

// Swaps the databases of two numbers, for all clients at once. Waiters for locks, SESSION holds and leases
// stay with the keys, under the new number. Clients that wait for an element stay with their number, as in
// Redis.
void cmd_swapdb(Request& r) {
  const auto first = read_database(r, 1, "first");
  if (!first) return;
  const auto second = read_database(r, 2, "second");
  if (!second) return;
  EngineState& s = r.s();
  if (*first >= kDatabases || *second >= kDatabases) return r.reply.error("ERR DB index is out of range");
  const DbIndex a = s.db_at[*first];
  const DbIndex b = s.db_at[*second];
  r.reply.ok();
  if (a == b) return;
  const auto is_there = [&](const std::string& key) {
    return find_live(r.ctx, a, r.ctx.keys(a).key(key)) || find_live(r.ctx, b, r.ctx.keys(b).key(key));
  };
  s.watches.break_db(s.conns, a, is_there);
  s.watches.break_db(s.conns, b, is_there);
  journal_swap(r.ctx, static_cast<DbIndex>(*first), static_cast<DbIndex>(*second));
  swap_databases(s, *first, *second);
  swap_pop_waits(r.ctx, a, b);
  s.watches.swap_dbs(a, b);
  const auto other = [a, b](DbIndex db) { return db == a ? b : db == b ? a : db; };
  s.conns.for_each([&](Conn& c) {
    c.db = other(c.db);
    absl::btree_set<WatchedKey> watched;
    for (const WatchedKey& w : c.watched) watched.insert(WatchedKey{other(w.db), w.key});
    c.watched = std::move(watched);
  });
}

}  // namespace holdfast

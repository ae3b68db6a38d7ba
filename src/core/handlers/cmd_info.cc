// INFO and TIME.
#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/base/version.h"
#include "core/command/command_log.h"
#include "core/command/handlers.h"
#include "core/engine/readiness.h"
#include "core/handlers/info_line.h"
#include "core/keyspace/keyspace.h"
#include "core/script/script.h"
#include "core/state/conn.h"
#include "core/state/history.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/lock_count.h"
#include "core/state/memory_use.h"
#include "core/state/pubsub.h"
#include "core/state/request.h"
#include "core/state/stats.h"
#include "core/state/tokens.h"
#include "core/state/tracking.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

void line(std::string& out, std::string_view name, std::string_view value) {
  append_info_line(out, name, value);
}
void line(std::string& out, std::string_view name, uint64_t value) {
  line(out, name, std::to_string(value));
}
void line(std::string& out, std::string_view name, int64_t value) {
  line(out, name, std::to_string(value));
}

void decimal(std::string& out, std::string_view name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  line(out, name, std::string_view(text));
}
void kilobytes(std::string& out, std::string_view name, double bytes) { decimal(out, name, bytes / 1024); }

// Writes fields of Redis that are always 0 here, as the server has no such thing. Dashboards read them.
void zeros(std::string& out, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) line(out, name, uint64_t{0});
}

// Formats a size in bytes as Redis does for humans: 1.50M.
std::string human_bytes(uint64_t bytes) {
  static constexpr std::string_view kUnits = "BKMGT";
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const auto hundredths = static_cast<uint64_t>(value * 100);
  const std::string fraction = std::to_string(hundredths % 100 + 100).substr(1);
  return std::to_string(hundredths / 100) + (unit == 0 ? "" : "." + fraction) + kUnits[unit];
}

void server_section(const Request& r, const HostFacts& host, std::string& out) {
  line(out, "redis_version", kRedisVersion);
  line(out, "holdfast_version", kHoldfastVersion);
  line(out, "redis_git_sha1", "00000000");
  line(out, "redis_git_dirty", "0");
  line(out, "redis_build_id", "holdfast");
  line(out, "redis_mode", "standalone");
  line(out, "os", "Linux");
  line(out, "arch_bits", int64_t{64});
  line(out, "multiplexing_api", "libuv");
  line(out, "process_id", host.pid);
  line(out, "run_id", r.s().config.run_id);
  line(out, "tcp_port", host.tcp_port);
  line(out, "server_time_usec", r.ctx.now.wall_us);
  line(out, "uptime_in_seconds", host.uptime_s);
  line(out, "uptime_in_days", host.uptime_s / 86400);
  line(out, "hz", int64_t{1000});
  line(out, "configured_hz", int64_t{1000});
  line(out, "executable", host.executable);
  line(out, "config_file", host.config_file);
}

void clients_section(const Request& r, const HostFacts&, std::string& out) {
  uint64_t blocked = 0;
  uint64_t largest_input = 0;
  uint64_t largest_output = 0;
  r.s().conns.for_each([&](const Conn& c) {
    blocked += c.blocked_on != nullptr || c.remote || c.postponed.count() > 0 ? 1 : 0;
    largest_input = std::max<uint64_t>(largest_input, c.unparsed_bytes);
    largest_output = std::max<uint64_t>(largest_output, c.out.size());
  });
  line(out, "connected_clients", uint64_t{r.s().conns.size() - (r.s().leaving ? 1 : 0)});
  line(out, "maxclients", uint64_t{r.s().config.limits.clients});
  zeros(out, {"cluster_connections"});
  line(out, "client_recent_max_input_buffer", largest_input);
  line(out, "client_recent_max_output_buffer", largest_output);
  line(out, "blocked_clients", blocked);
  line(out, "tracking_clients", uint64_t{r.s().tracking.clients.size()});
  zeros(out, {"clients_in_timeout_table"});
}

void persistence_section(const Request& r, const HostFacts&, std::string& out) {
  if (r.s().config.storage.facts) {
    for (const auto& [name, value] : r.s().config.storage.facts()) line(out, name, value);
    return;
  }
  for (const std::string_view name :
       {"loading", "async_loading", "rdb_bgsave_in_progress", "aof_enabled", "aof_rewrite_in_progress"}) {
    line(out, name, "0");
  }
}

uint64_t dataset_bytes(const EngineState& s) {
  uint64_t bytes = 0;
  for (const auto& db : s.dbs) bytes += db->used_bytes();
  return bytes;
}

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
void percentage(std::string& out, std::string_view name, uint64_t part, uint64_t whole) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * ratio(part, whole));
  line(out, name, std::string_view(text));
}
// A ratio of two sizes, and their difference, as Redis shows fragmentation.
void overhead(std::string& out, std::string_view ratio_name, std::string_view bytes_name, uint64_t more,
              uint64_t less) {
  decimal(out, ratio_name, ratio(more, less));
  line(out, bytes_name, static_cast<int64_t>(more - less));
}

// The allocator's own figures would need a walk over all of its free blocks.
void allocator_lines(const HostFacts& host, uint64_t used, std::string& out) {
  const auto held = static_cast<uint64_t>(host.private_bytes);
  const auto resident = static_cast<uint64_t>(host.rss_bytes);
  line(out, "allocator_allocated", used);
  line(out, "allocator_active", held);
  line(out, "allocator_resident", held);
  overhead(out, "allocator_frag_ratio", "allocator_frag_bytes", held, used);
  overhead(out, "allocator_rss_ratio", "allocator_rss_bytes", held, held);
  overhead(out, "rss_overhead_ratio", "rss_overhead_bytes", resident, held);
  overhead(out, "mem_fragmentation_ratio", "mem_fragmentation_bytes", resident, used);
}

void script_memory_lines(const Request& r, std::string& out) {
  const uint64_t scripts = r.s().scripts.memory_bytes();
  line(out, "used_memory_lua", scripts);
  line(out, "used_memory_lua_human", human_bytes(scripts));
  line(out, "used_memory_vm_eval", scripts);
  line(out, "used_memory_scripts", scripts);
  line(out, "used_memory_scripts_human", human_bytes(scripts));
  line(out, "number_of_cached_scripts", uint64_t{r.s().scripts.cached()});
  const Libraries& libraries = r.s().scripts.libraries();
  line(out, "number_of_functions", uint64_t{libraries.functions()});
  line(out, "number_of_libraries", uint64_t{libraries.all().size()});
  line(out, "used_memory_functions", r.s().scripts.library_bytes());
}

void used_memory_lines(const Request& r, const HostFacts& host, uint64_t used, std::string& out) {
  const MemoryUse& memory = r.s().memory;
  const uint64_t dataset = dataset_bytes(r.s());
  line(out, "used_memory", used);
  line(out, "used_memory_human", human_bytes(used));
  line(out, "used_memory_rss", host.rss_bytes);
  line(out, "used_memory_rss_human", human_bytes(static_cast<uint64_t>(host.rss_bytes)));
  line(out, "used_memory_peak", memory.peak_bytes);
  line(out, "used_memory_peak_human", human_bytes(memory.peak_bytes));
  percentage(out, "used_memory_peak_perc", used, memory.peak_bytes);
  line(out, "used_memory_overhead", used - dataset);
  line(out, "used_memory_startup", memory.startup_bytes);
  line(out, "used_memory_dataset", dataset);
  percentage(out, "used_memory_dataset_perc", dataset, used - memory.startup_bytes);
}

void memory_section(const Request& r, const HostFacts& host, std::string& out) {
  const uint64_t used = record_memory_use(r.ctx);
  const uint64_t limit = r.s().config.limits.memory_bytes;
  used_memory_lines(r, host, used, out);
  line(out, "total_system_memory", host.system_bytes);
  line(out, "total_system_memory_human", human_bytes(static_cast<uint64_t>(host.system_bytes)));
  line(out, "maxmemory", limit);
  line(out, "maxmemory_human", human_bytes(limit));
  line(out, "maxmemory_policy", "noeviction");
  script_memory_lines(r, out);
  allocator_lines(host, used, out);
  line(out, "mem_clients_normal", r.s().memory.buffer_bytes + r.s().conns.size() * sizeof(Conn));
  line(out, "mem_aof_buffer", uint64_t{r.s().journal.out.capacity()});
  zeros(out, {"mem_not_counted_for_evict", "mem_replication_backlog", "mem_total_replication_buffers",
              "mem_clients_slaves", "mem_cluster_links"});
  line(out, "mem_allocator", "libc");
  zeros(out, {"active_defrag_running"});
  line(out, "lazyfree_pending_objects", uint64_t{r.s().flushed.size() + r.s().removed.size()});
}

void replication_section(const Request& r, const HostFacts&, std::string& out) {
  line(out, "role", "master");
  line(out, "connected_slaves", int64_t{0});
  line(out, "master_replid", r.s().config.run_id);
  line(out, "master_replid2", std::string(40, '0'));
  line(out, "master_repl_offset", int64_t{0});
  line(out, "second_repl_offset", int64_t{-1});
  zeros(out, {"repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset",
              "repl_backlog_histlen"});
}

void cluster_section(const Request&, const HostFacts&, std::string& out) {
  line(out, "cluster_enabled", "0");
}

void commandstats_section(const Request& r, const HostFacts&, std::string& out) {
  for (const Command& c : all_commands()) {
    const CommandCounts& n = r.s().log.counts_of(c);
    if (n.calls == 0 && n.rejected == 0) continue;
    char per_call[32];
    std::snprintf(per_call, sizeof per_call, "%.2f", n.us_per_call());
    line(out, "cmdstat_" + std::string(c.name),
         "calls=" + std::to_string(n.calls) + ",usec=" + std::to_string(n.us()) +
             ",usec_per_call=" + per_call + ",rejected_calls=" + std::to_string(n.rejected) +
             ",failed_calls=" + std::to_string(n.failed));
  }
}

void latencystats_section(const Request& r, const HostFacts&, std::string& out) {
  for (const Command& c : all_commands()) {
    const TimeHistogram& times = r.s().log.counts_of(c).histogram;
    if (!r.s().config.latency_tracking || times.calls() == 0) continue;
    std::string text;
    for (const double percent : r.s().config.latency_percentiles) {
      char one[64];
      const auto us = static_cast<double>(times.percentile_us(percent));
      std::snprintf(one, sizeof one, "%sp%.15g=%.3f", text.empty() ? "" : ",", percent, us);
      text += one;
    }
    line(out, "latency_percentiles_usec_" + std::string(c.name), text);
  }
}

void errorstats_section(const Request& r, const HostFacts&, std::string& out) {
  for (const auto& [code, count] : r.s().log.errors()) {
    line(out, "errorstat_" + code, "count=" + std::to_string(count));
  }
}

void stats_section(const Request& r, const HostFacts& host, std::string& out) {
  const Stats& s = r.s().stats;
  line(out, "total_connections_received", r.s().conns.opened() + s.refused_connections);
  line(out, "total_commands_processed", s.traffic.commands);
  const TrafficRates::PerSecond rates = s.rates.rates(s.traffic, r.now());
  line(out, "instantaneous_ops_per_sec", static_cast<uint64_t>(rates.commands));
  line(out, "total_net_input_bytes", s.traffic.read_bytes);
  line(out, "total_net_output_bytes", s.traffic.written_bytes);
  kilobytes(out, "instantaneous_input_kbps", rates.read_bytes);
  kilobytes(out, "instantaneous_output_kbps", rates.written_bytes);
  kilobytes(out, "instantaneous_input_repl_kbps", 0);
  kilobytes(out, "instantaneous_output_repl_kbps", 0);
  line(out, "rejected_connections", s.refused_connections);
  zeros(out, {"total_net_repl_input_bytes", "total_net_repl_output_bytes", "sync_full", "sync_partial_ok",
              "sync_partial_err"});
  line(out, "expired_subkeys", s.expired_fields);
  line(out, "expired_keys", s.expired_keys);
  decimal(out, "expired_stale_perc", 0);
  zeros(out, {"expired_time_cap_reached_count", "evicted_keys", "evicted_clients"});
  line(out, "evicted_scripts", r.s().scripts.evicted());
  line(out, "keyspace_hits", s.keyspace_hits);
  line(out, "keyspace_misses", s.keyspace_misses);
  line(out, "pubsub_channels", uint64_t{r.s().pubsub.channels.size()});
  line(out, "pubsub_patterns", uint64_t{r.s().pubsub.patterns.size()});
  line(out, "pubsubshard_channels", uint64_t{r.s().pubsub.shard_channels.size()});
  line(out, "tracking_total_keys", uint64_t{r.s().tracking.readers.size()});
  line(out, "tracking_total_items", uint64_t{r.s().tracking.remembered});
  line(out, "tracking_total_prefixes", uint64_t{r.s().tracking.prefixes.size()});
  line(out, "busy_poll_mode", host.busy_poll.mode);
  line(out, "busy_poll_spins", host.busy_poll.spins);
  line(out, "busy_poll_hits", host.busy_poll.hits);
  line(out, "busy_poll_preemptions", host.busy_poll.preemptions);
  line(out, "busy_poll_us", host.busy_poll.spun_us);
  zeros(out, {"unexpected_error_replies", "latest_fork_usec", "total_forks", "migrate_cached_sockets",
              "slave_expires_tracked_keys", "active_defrag_hits", "active_defrag_misses",
              "active_defrag_key_hits", "active_defrag_key_misses"});
  line(out, "total_error_replies", r.s().log.all_errors());
}

void cpu_section(const Request&, const HostFacts& host, std::string& out) {
  line(out, "used_cpu_sys", std::to_string(host.cpu_system_s));
  line(out, "used_cpu_user", std::to_string(host.cpu_user_s));
  line(out, "used_cpu_sys_children", "0.000000");
  line(out, "used_cpu_user_children", "0.000000");
}

// The times that all grants waited, as in the metrics: the upper bound of each bucket in us, and the grants
// in it alone. "holdfast top" computes percentiles of it.
std::string wait_buckets(const LockStats& l) {
  const std::array modes{LockMode::kExclusiveMode, LockMode::kSharedMode, LockMode::kSemaphoreMode};
  std::array<DurationHistogram, kLockModes> waits;
  std::ranges::transform(modes, waits.begin(), [&](LockMode mode) { return l.wait_times(mode); });
  std::string text;
  for (size_t n = 0; n <= DurationHistogram::kBounds; ++n) {
    uint64_t count = 0;
    for (const DurationHistogram& of_mode : waits) count += of_mode.in_bucket(n);
    const bool last = n == DurationHistogram::kBounds;
    text += (last ? "inf" : std::to_string(DurationHistogram::bound_us(n))) + "=" + std::to_string(count) +
            (last ? "" : ",");
  }
  return text;
}

// A field that was renamed keeps its old name on the next line, for one version.
void locks_section(const Request& r, const HostFacts&, std::string& out) {
  const Stats& s = r.s().stats;
  const LockStats& l = s.locks;
  line(out, "lock_grants", l.grants.sum());
  line(out, "lock_queued_grants", l.queued_grants.sum());
  line(out, "lock_rejections", l.refusals[Refusal::kHeld]);
  line(out, "lock_refusals", l.refusals[Refusal::kHeld]);
  line(out, "lock_releases", l.ends[End::kReleased]);
  line(out, "lock_renewals", l.renewals);
  line(out, "lock_timeouts", l.wait_ends[WaitEnd::kTimeout]);
  line(out, "lock_deadlocks", l.refusals[Refusal::kDeadlock]);
  line(out, "lock_deadlock_searches_aborted", s.deadlock_searches_given_up);
  line(out, "lock_deadlock_searches_given_up", s.deadlock_searches_given_up);
  line(out, "lock_broken", l.ends[End::kBroken]);
  line(out, "lock_waiters", uint64_t{r.s().queues.waiting()});
  line(out, "lock_queues", uint64_t{r.s().queues.queues()});
  line(out, "longest_queue", uint64_t{r.s().queues.longest()});
  line(out, "oldest_waiter_ms", oldest_wait(r.s(), r.now()).count);
  const LockCount held = count_locks(r.s());
  line(out, "locks_exclusive", held.exclusive);
  line(out, "locks_shared", held.shared);
  line(out, "locks_semaphore", held.semaphores);
  line(out, "lock_wait_us_buckets", wait_buckets(l));
  line(out, "holds_expired", l.ends[End::kExpired]);
  line(out, "holds_deleted", l.ends[End::kDeleted]);
  line(out, "holds_overwritten", l.ends[End::kOverwritten]);
  line(out, "holds_ended_with_session", l.ends[End::kDisconnected]);
  line(out, "waits_unblocked", l.wait_ends[WaitEnd::kUnblocked]);
  line(out, "waits_disconnected", l.wait_ends[WaitEnd::kDisconnected]);
  line(out, "lock_events", r.s().history.newest());
  line(out, "leases", uint64_t{r.s().leases.size()});
  line(out, "lease_outcomes", uint64_t{r.s().leases.remembered()});
  line(out, "lease_fates", uint64_t{r.s().leases.remembered()});
  line(out, "largest_token", r.s().tokens.largest());
}

void readiness_section(const Request& r, const HostFacts&, std::string& out) {
  const std::vector<ReadyCheck> checks = readiness(r.s(), r.ctx.now);
  line(out, "ready", is_ready(checks) ? "yes" : "no");
  for (const ReadyCheck& c : checks) line(out, "ready_" + std::string(c.name), c.ok ? "ok" : c.why);
}

void keyspace_section(const Request& r, const HostFacts&, std::string& out) {
  for (size_t i = 0; i < kDatabases; ++i) {
    const Keyspace& keys = r.ctx.keys(r.s().db_at[i]);
    if (keys.live() == 0) continue;
    line(out, "db" + std::to_string(i),
         "keys=" + std::to_string(keys.live()) + ",expires=" + std::to_string(keys.timed()) + ",avg_ttl=0");
  }
}

struct Section {
  std::string_view name;
  std::string_view title;
  void (*write)(const Request&, const HostFacts&, std::string&);
  bool by_default = true;
};
constexpr Section kSections[] = {
    {"server", "Server", server_section},
    {"clients", "Clients", clients_section},
    {"memory", "Memory", memory_section},
    {"persistence", "Persistence", persistence_section},
    {"stats", "Stats", stats_section},
    {"replication", "Replication", replication_section},
    {"cpu", "CPU", cpu_section},
    {"commandstats", "Commandstats", commandstats_section, false},
    {"latencystats", "Latencystats", latencystats_section, false},
    {"errorstats", "Errorstats", errorstats_section},
    {"cluster", "Cluster", cluster_section},
    {"locks", "Locks", locks_section},
    {"readiness", "Readiness", readiness_section},
    {"keyspace", "Keyspace", keyspace_section},
};

bool wants(const Request& r, const Section& section) {
  if (r.argc() == 1) return section.by_default;
  for (size_t i = 1; i < r.argc(); ++i) {
    const bool all = equals_ignore_case(r.arg(i), "all") || equals_ignore_case(r.arg(i), "everything");
    if (all || equals_ignore_case(r.arg(i), section.name)) return true;
    if (section.by_default && equals_ignore_case(r.arg(i), "default")) return true;
  }
  return false;
}

}  // namespace

void cmd_info(Request& r) {
  const HostFacts host = r.s().config.host_facts ? r.s().config.host_facts() : HostFacts{};
  std::string text;
  for (const Section& section : kSections) {
    if (!wants(r, section)) continue;
    if (!text.empty()) text += "\r\n";
    text.append("# ").append(section.title).append("\r\n");
    section.write(r, host, text);
  }
  r.reply.verbatim(text);
}

void cmd_time(Request& r) {
  r.reply.array(2);
  r.reply.bulk_integer(r.ctx.now.wall_us / 1000000);
  r.reply.bulk_integer(r.ctx.now.wall_us % 1000000);
}

}  // namespace holdfast

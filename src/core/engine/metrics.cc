// The metrics by groups: locks, commands, traffic, memory, the process.
#include "core/engine/metrics.h"

#include <algorithm>
#include <array>

#include "core/base/config.h"
#include "core/base/version.h"
#include "core/command/command.h"
#include "core/command/command_log.h"
#include "core/engine/metrics_writer.h"
#include "core/engine/readiness.h"
#include "core/keyspace/keyspace.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/lease_table.h"
#include "core/state/lock_count.h"
#include "core/state/memory_use.h"
#include "core/state/stats.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

constexpr std::array<std::pair<LockMode, std::string_view>, kLockModes> kModes = {
    {{LockMode::kExclusiveMode, "exclusive"},
     {LockMode::kSharedMode, "shared"},
     {LockMode::kSemaphoreMode, "semaphore"}}};
constexpr std::array<std::pair<End, std::string_view>, kEnds> kEndNames = {
    {{End::kReleased, "unlock"},
     {End::kExpired, "expired"},
     {End::kBroken, "broken"},
     {End::kDisconnected, "session"},
     {End::kDeleted, "deleted"},
     {End::kOverwritten, "overwritten"}}};
constexpr std::array<std::pair<Refusal, std::string_view>, kRefusals> kRefusalNames = {
    {{Refusal::kHeld, "held"},
     {Refusal::kDeadlock, "deadlock"},
     {Refusal::kRecovering, "recovering"},
     {Refusal::kDisk, "disk"},
     {Refusal::kMemory, "memory"},
     {Refusal::kWaiters, "waiters"}}};
constexpr std::array<std::pair<WaitEnd, std::string_view>, kWaitEnds> kWaitEndNames = {
    {{WaitEnd::kGranted, "granted"},
     {WaitEnd::kTimeout, "timeout"},
     {WaitEnd::kDisconnected, "disconnected"},
     {WaitEnd::kUnblocked, "unblocked"},
     {WaitEnd::kReset, "reset"}}};

// A counter family with one sample for each reason.
template <class Reasons, class Names>
void write_reasons(MetricsWriter& w, std::string_view name, std::string_view help, const Reasons& counters,
                   const Names& names) {
  w.counter(name, help);
  for (const auto& [reason, text] : names) w.sample({{"reason", text}}, counters[reason]);
}

void write_lock_times(MetricsWriter& w, const LockStats& stats) {
  w.histogram("holdfast_lock_wait_seconds",
              "Time from a LOCK request to its grant, to 1 ms. A grant at once counts as 0.");
  for (const auto& [mode, name] : kModes) w.sample({{"mode", name}}, stats.wait_times(mode));
  w.histogram("holdfast_lock_hold_seconds", "Time from the grant of a hold to its end, to 1 ms.");
  for (const auto& [mode, name] : kModes)
    w.sample({{"mode", name}}, stats.holds[static_cast<size_t>(mode)]);
}

void write_lock_counters(MetricsWriter& w, const LockStats& stats) {
  w.counter("holdfast_lock_grants_total", "Holds that LOCK granted, at once or from the queue of the key.");
  for (const auto& [mode, name] : kModes) {
    w.sample({{"mode", name}, {"queued", "no"}}, stats.grants[mode] - stats.queued_grants[mode]);
    w.sample({{"mode", name}, {"queued", "yes"}}, stats.queued_grants[mode]);
  }
  write_reasons(w, "holdfast_lock_ends_total",
                "Holds that ended. A string that SET made is a hold, too, and DEL ends it as deleted.",
                stats.ends, kEndNames);
  write_reasons(w, "holdfast_lock_refusals_total", "LOCK requests that were neither granted nor queued.",
                stats.refusals, kRefusalNames);
  write_reasons(w, "holdfast_lock_wait_ends_total", "Waits of LOCK requests that ended.", stats.wait_ends,
                kWaitEndNames);
  w.counter("holdfast_lock_renewals_total", "Successful RENEW requests.", stats.renewals);
}

void write_locks(MetricsWriter& w, const EngineState& s, Now now) {
  write_lock_times(w, s.stats.locks);
  write_lock_counters(w, s.stats.locks);
  const LockCount locks = count_locks(s);
  w.gauge("holdfast_locks", "Held keys by mode. Each string is an exclusive lock, as in LOCKS LIST.");
  w.sample({{"mode", "exclusive"}}, locks.exclusive);
  w.sample({{"mode", "shared"}}, locks.shared);
  w.sample({{"mode", "semaphore"}}, locks.semaphores);
  w.gauge("holdfast_waiters", "LOCK requests that wait.", s.queues.waiting());
  w.gauge("holdfast_oldest_waiter_seconds", "Time for which the oldest waiting request has waited.");
  w.sample_us({}, static_cast<uint64_t>(oldest_wait(s, now.mono).count) * 1000);
  w.gauge("holdfast_longest_queue", "Waiting requests of the key that has most of them.",
          s.queues.longest());
  w.gauge("holdfast_leases", "Live leases.", s.leases.size());
}

// The counters of each command that was called.
void write_commands(MetricsWriter& w, const CommandLog& log) {
  const auto each = [&log](auto write) {
    for (const Command& c : all_commands()) {
      const CommandCounts& n = log.counts_of(c);
      if (n.calls > 0 || n.rejected > 0) write(Label{"command", c.name}, n);
    }
  };
  w.counter("holdfast_commands_total", "Calls of commands.");
  each([&w](Label command, const CommandCounts& n) { w.sample({command}, n.calls); });
  w.counter("holdfast_command_failures_total", "Requests with an error reply, also before they ran.");
  each([&w](Label command, const CommandCounts& n) { w.sample({command}, n.failed + n.rejected); });
  w.histogram("holdfast_command_duration_seconds",
              "Time of calls, of a sample: one of 64 calls of O(1) commands, and all calls of the others.");
  each([&w](Label command, const CommandCounts& n) {
    if (n.timed > 0) w.sample({command}, n.durations);
  });
  w.counter("holdfast_errors_total", "Error replies by their code.");
  for (const auto& [code, count] : log.errors()) w.sample({{"code", code}}, count);
}

void write_clients(MetricsWriter& w, const EngineState& s) {
  const Stats& stats = s.stats;
  w.counter("holdfast_connections_total", "Accepted connections.", s.conns.opened());
  w.counter("holdfast_rejected_connections_total", "Connections rejected beyond maxclients.",
            stats.refused_connections);
  w.gauge("holdfast_connected_clients", "Open connections.", s.conns.size());
  w.gauge("holdfast_max_clients", "The limit maxclients.", s.config.limits.clients);
  w.counter("holdfast_net_input_bytes_total", "Bytes received from clients.", stats.traffic.read_bytes);
  w.counter("holdfast_net_output_bytes_total", "Bytes sent to clients.", stats.traffic.written_bytes);
}

void write_keys(MetricsWriter& w, const EngineState& s) {
  w.counter("holdfast_expired_keys_total", "Keys that expired.", s.stats.expired_keys);
  w.counter("holdfast_keyspace_hits_total", "Read commands that found their key.", s.stats.keyspace_hits);
  w.counter("holdfast_keyspace_misses_total", "Read commands that did not find their key.",
            s.stats.keyspace_misses);
  w.gauge("holdfast_keys", "Keys of each database.");
  for (size_t i = 0; i < kDatabases; ++i) {
    w.sample({{"db", std::to_string(i)}}, s.dbs[s.db_at[i]]->live());
  }
}

void write_memory(MetricsWriter& w, const EngineState& s, const ShellMetrics& shell) {
  w.gauge("holdfast_memory_used_bytes", "Memory that the server counts, as used_memory of INFO.",
          used_memory_bytes(s));
  w.gauge("holdfast_memory_limit_bytes", "The limit maxmemory; 0: none.", s.config.limits.memory_bytes);
  w.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", shell.rss_bytes);
}

void write_process(MetricsWriter& w, const EngineState& s, const ShellMetrics& shell) {
  w.histogram("holdfast_journal_fsync_seconds", "Time of each fsync of the journal.");
  w.sample({}, shell.journal_syncs);
  w.histogram("holdfast_loop_turn_seconds", "Working time of each iteration of the event loop.");
  w.sample({}, shell.loop_iterations);
  w.counter("process_cpu_seconds_total", "Total user and system CPU time in seconds.", shell.cpu_s);
  w.gauge("process_open_fds", "Open file descriptors.", shell.open_fds);
  w.gauge("process_max_fds", "Limit of open file descriptors.", shell.max_fds);
  w.gauge("process_start_time_seconds", "Start time of the process since 1970, in seconds.",
          shell.start_time_s);
  const auto& last_save_s = s.config.storage.last_save_s;
  w.gauge("holdfast_snapshot_last_success_timestamp_seconds",
          "Time of the last successful snapshot since 1970, in seconds; 0: none.",
          last_save_s ? last_save_s() : 0);
  w.info("holdfast_build_info", "The version of the server.");
  w.sample({{"version", kHoldfastVersion}}, 1);
}

void write_readiness(MetricsWriter& w, const EngineState& s, Now now) {
  w.gauge("holdfast_ready", "Checks of readiness: 1 if passed, else 0. See /readyz?verbose.");
  for (const ReadyCheck& check : readiness(s, now)) w.sample({{"check", check.name}}, check.ok ? 1 : 0);
}

}  // namespace

void write_metrics(const EngineState& s, Now now, const ShellMetrics& shell, MetricsFormat format,
                   std::string& out) {
  MetricsWriter w(format, out);
  write_readiness(w, s, now);
  write_locks(w, s, now);
  write_commands(w, s.log);
  write_clients(w, s);
  write_keys(w, s);
  write_memory(w, s, shell);
  write_process(w, s, shell);
  w.finish();
}

void write_metrics(const Engine& engine, Now now, const ShellMetrics& shell, MetricsFormat format,
                   std::string& out) {
  write_metrics(engine.state(), now, shell, format, out);
}

}  // namespace holdfast

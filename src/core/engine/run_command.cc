// The call of a handler, with checks and records.
#include "core/engine/run_command.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/command/command.h"
#include "core/command/command_log.h"
#include "core/command/ticket_words.h"
#include "core/events/invalidate.h"
#include "core/events/monitor.h"
#include "core/events/request_text.h"
#include "core/keyspace/keyspace.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/memory_use.h"
#include "core/state/remote_copy.h"
#include "core/state/request.h"
#include "core/state/stats.h"

namespace holdfast {

namespace {

void count_refusal(Request& r, Refusal why) {
  if (r.command.has(kAcquire)) ++r.s().stats.locks.refusals[why];
}

// Rejects grants that the disk could not keep: only commands that end holds or change nothing run. Returns
// true if the request is rejected.
bool refuse_promise(Request& r) {
  const Availability& availability = r.s().availability;
  if (!r.command.has(kWrite) || r.command.has(kRelease)) return false;
  if (!availability.refusal.empty()) {
    count_refusal(r, Refusal::kDisk);
    return r.reply.error(availability.refusal), true;
  }
  if (is_due(availability.recovering_until, r.now())) return false;
  const bool has_keys = r.command.first_key != 0 || r.command.has(kMovableKeys);
  // A request by ticket only waits then.
  const bool only_waits = r.command.has(kAcquire) && asks_by_ticket(r.argv);
  const bool makes_keys = r.command.has(kDenyOom) && has_keys && !only_waits;
  if (!makes_keys && !r.command.has(kRename)) return false;
  count_refusal(r, Refusal::kRecovering);
  r.reply.error("RECOVERING locks held before the restart may still be in use; retry in " +
                std::to_string((availability.recovering_until - r.now()).count) + " ms");
  return true;
}

// Cuts a request's arguments to the limits of SLOWLOG, as Redis does.
std::vector<std::string> cut_arguments(const Command& command, std::span<const std::string_view> argv) {
  constexpr size_t kMaxArguments = 32;
  std::vector<std::string> cut;
  for (size_t i = 0; i < std::min(argv.size(), kMaxArguments); ++i) {
    if (i + 1 == kMaxArguments && argv.size() > kMaxArguments) {
      cut.push_back("... (" + std::to_string(argv.size() - kMaxArguments + 1) + " more arguments)");
    } else if (is_secret(command, argv, i)) {
      cut.emplace_back(kRedacted);
    } else {
      cut.push_back(cut_text(argv[i]));
    }
  }
  return cut;
}

void record_time(Request& r, int64_t us) {
  CommandLog& log = r.s().log;
  const Config& config = r.s().config;
  const int64_t at_s = r.ctx.now.wall_us / 1000000;
  log.record_time(r.command, us, config.latency_tracking);
  if (config.slowlog_us >= 0 && us >= config.slowlog_us && config.slowlog_entries > 0 &&
      !r.command.has(kSkipSlowlog)) {
    log.keep_slow({.at_s = at_s,
                   .us = us,
                   .argv = cut_arguments(r.command, r.argv),
                   .peer = r.c.peer,
                   .name = r.c.name},
                  config.slowlog_entries);
  }
  if (config.latency_threshold_ms > 0 && us / 1000 >= config.latency_threshold_ms) {
    log.record_latency(r.command.has(kFast) ? "fast-command" : "command", at_s, us / 1000);
  }
}

// Whether a proxy refuses the command, which a script or a transaction calls. Then writes an error.
bool refuse_remote(Request& r) {
  const std::string why = refuse_remote(r.s(), r.command, r.argv);
  if (!why.empty()) r.reply.error(why);
  return !why.empty();
}

// Whether memory and disk permit the command. Else writes an error.
bool is_permitted(Request& r) {
  const size_t answered = r.reply.out().size();
  if (r.command.has(kDenyOom) && r.keys().is_full()) [[unlikely]] {
    count_refusal(r, Refusal::kMemory);
    r.reply.error(kOomText);
  } else if (r.s().config.remote.refuse && !r.may_block && refuse_remote(r)) [[unlikely]] {
  } else if (r.s().availability.grants(r.now()) || !refuse_promise(r)) [[likely]] {
    return true;
  }
  r.s().log.record_rejection(&r.command, r.reply.out().view().substr(answered));
  return false;
}

// Runs the handler. If it replies with an error, counts that.
void call_handler(Request& r) {
  const size_t answered = r.reply.out().size();
  r.command.handler(r);
  if (r.reply.out().size() > answered && r.reply.out().view()[answered] == '-') {
    r.s().log.record_failure(r.command, r.reply.out().view().substr(answered), r.error_counted);
  }
}

// Runs the handler, and records counts, times and errors of the call.
void call(Request& r) {
  const Config& config = r.s().config;
  // A slowlog limit below 1 ms is for operators that want every call timed.
  constexpr int64_t kCloseUs = 1000;
  const bool times_all = config.slowlog_us >= 0 && config.slowlog_us < kCloseUs;
  const bool timed = (r.s().log.begin(r.command) || times_all) && config.clock_us;
  const int64_t began_us = timed ? config.clock_us() : 0;
  call_handler(r);
  if (timed) record_time(r, config.clock_us() - began_us);
}

}  // namespace

void run_command(Request& r) {
  ++r.s().stats.traffic.commands;
  r.c.wrote |= r.command.has(kWrite);
  const bool script = r.command.has(kScript);
  if (script && !r.s().monitors.empty()) [[unlikely]]
    feed_monitors(r.ctx, r.c, r.command, r.argv, r.from_script);
  if (!is_permitted(r)) return;
  call(r);
  if (!script && !r.s().monitors.empty()) [[unlikely]]
    feed_monitors(r.ctx, r.c, r.command, r.argv, r.from_script);
  if (r.c.tracking != nullptr) [[unlikely]]
    remember_reads(r.ctx, r.c, r.command, r.argv);
}

void continue_command(Request& r) {
  if (is_permitted(r)) call_handler(r);
}

}  // namespace holdfast

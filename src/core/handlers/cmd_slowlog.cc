// SLOWLOG and LATENCY: show slow commands and latency events.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/command/command_log.h"
#include "core/command/handlers.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr int64_t kDefaultCount = 10;

void write_slow(Reply& reply, const SlowCommand& s) {
  reply.array(6);
  reply.integer(static_cast<int64_t>(s.id));
  reply.integer(s.at_s);
  reply.integer(s.us);
  reply.array(s.argv.size());
  for (const std::string& arg : s.argv) reply.bulk(arg);
  reply.bulk(s.peer);
  reply.bulk(s.name);
}

const LatencyEvent* find_event(Request& r, std::string_view name) {
  const auto& events = r.s().log.latency();
  const auto it = events.find(std::string(name));
  return it == events.end() ? nullptr : &it->second;
}

// Returns one line of a report: the number of samples and their durations.
std::string describe(const std::string& name, const LatencyEvent& e) {
  int64_t sum = 0;
  for (const auto& sample : e.samples) sum += sample.ms;
  const auto count = static_cast<int64_t>(e.samples.size());
  return name + ": " + std::to_string(count) + " latency spikes (average " + std::to_string(sum / count) +
         "ms). Worst all time event " + std::to_string(e.max_ms) + "ms.\n";
}

// Draws a column of '#' for each sample; its height shows the duration.
std::string graph_of(const LatencyEvent& e) {
  constexpr int64_t kRows = 4;
  int64_t high = 1;
  for (const auto& sample : e.samples) high = std::max(high, sample.ms);
  std::string text;
  for (int64_t row = kRows; row > 0; --row) {
    for (const auto& sample : e.samples) text += sample.ms * kRows >= row * high ? '#' : ' ';
    text += '\n';
  }
  return text;
}

// Returns the commands named in the request, or all that were ever called, in the order of their names.
std::vector<const Command*> timed_commands(Request& r) {
  std::vector<const Command*> found;
  if (r.argc() == 2) {
    for (const Command& c : all_commands()) found.push_back(&c);
  }
  for (size_t i = 2; i < r.argc(); ++i) {
    if (const Command* c = find_command(r.arg(i))) found.push_back(c);
  }
  std::erase_if(found, [&](const Command* c) { return r.s().log.counts_of(*c).histogram.calls() == 0; });
  return found;
}

}  // namespace

void cmd_slowlog_get(Request& r) {
  if (r.argc() > 3) return reply_subcommand_syntax(r);
  const auto count = r.argc() == 3 ? parse_int_in(r.arg(2), -1, INT64_MAX) : kDefaultCount;
  if (!count) return r.reply.error("ERR count should be greater than or equal to -1");
  const auto& slow = r.s().log.slow();
  const size_t shown = *count < 0 ? slow.size() : std::min(slow.size(), static_cast<size_t>(*count));
  r.reply.array(shown);
  for (size_t i = 0; i < shown; ++i) write_slow(r.reply, slow[i]);
}

void cmd_slowlog_len(Request& r) { r.reply.integer(static_cast<int64_t>(r.s().log.slow().size())); }

void cmd_slowlog_reset(Request& r) {
  r.s().log.forget_slow();
  r.reply.ok();
}

void cmd_slowlog_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "GET [<count>]",
      "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
      "    Entries are made of:",
      "    id, timestamp, time in microseconds, arguments array, client IP and port,",
      "    client name",
      "LEN",
      "    Return the length of the slowlog.",
      "RESET",
      "    Reset the slowlog.",
  };
  reply_help(r, kLines);
}

void cmd_latency_latest(Request& r) {
  const auto& events = r.s().log.latency();
  r.reply.array(events.size());
  for (const auto& [name, e] : events) {
    r.reply.array(4);
    r.reply.bulk(name);
    r.reply.integer(e.samples.back().at_s);
    r.reply.integer(e.samples.back().ms);
    r.reply.integer(e.max_ms);
  }
}

void cmd_latency_history(Request& r) {
  const LatencyEvent* e = find_event(r, r.arg(2));
  r.reply.array(e == nullptr ? 0 : e->samples.size());
  if (e == nullptr) return;
  for (const auto& sample : e->samples) {
    r.reply.array(2);
    r.reply.integer(sample.at_s);
    r.reply.integer(sample.ms);
  }
}

void cmd_latency_graph(Request& r) {
  const LatencyEvent* e = find_event(r, r.arg(2));
  if (e == nullptr) {
    return r.reply.error("ERR No samples available for event '" + std::string(r.arg(2)) + "'");
  }
  const auto [low, high] = std::ranges::minmax(e->samples, {}, &LatencyEvent::Sample::ms);
  std::string text(r.arg(2));
  text += " - high " + std::to_string(high.ms) + " ms, low " + std::to_string(low.ms) +
          " ms (all time high " + std::to_string(e->max_ms) + " ms)\n" + std::string(80, '-') + "\n";
  r.reply.verbatim(text + graph_of(*e));
}

void cmd_latency_doctor(Request& r) {
  if (r.s().config.latency_threshold_ms == 0) {
    return r.reply.verbatim(
        "Latency monitoring is disabled. Enable it with CONFIG SET latency-monitor-threshold "
        "<milliseconds>.\n");
  }
  std::string text;
  for (const auto& [name, e] : r.s().log.latency()) text += describe(name, e);
  if (text.empty()) text = "No latency spike since the start or the last LATENCY RESET.\n";
  r.reply.verbatim(text + "SLOWLOG GET shows which commands took longest.\n");
}

void cmd_latency_reset(Request& r) {
  auto& events = r.s().log.latency();
  size_t count = events.size();
  if (r.argc() == 2) {
    events.clear();
  } else {
    count = 0;
    for (size_t i = 2; i < r.argc(); ++i) count += events.erase(std::string(r.arg(i)));
  }
  r.reply.integer(static_cast<int64_t>(count));
}

void cmd_latency_histogram(Request& r) {
  const std::vector<const Command*> commands = timed_commands(r);
  r.reply.map(commands.size());
  for (const Command* c : commands) {
    const CommandCounts& counts = r.s().log.counts_of(*c);
    const TimeHistogram& times = counts.histogram;
    // Of fast commands only some calls are timed, so the numbers are estimates of all calls.
    const double factor = static_cast<double>(counts.calls) / static_cast<double>(times.calls());
    const auto powers = times.by_power();
    r.reply.bulk(c->name);
    r.reply.map(2);
    r.reply.bulk("calls");
    r.reply.integer(static_cast<int64_t>(counts.calls));
    r.reply.bulk("histogram_usec");
    const auto filled = std::ranges::count_if(powers, [](uint64_t n) { return n != 0; });
    r.reply.map(static_cast<size_t>(filled));
    int64_t sum = 0;
    for (size_t power = 0; power < powers.size(); ++power) {
      if (powers[power] == 0) continue;
      sum += static_cast<int64_t>(powers[power]);
      r.reply.integer(int64_t{1} << power);
      r.reply.integer(std::llround(static_cast<double>(sum) * factor));
    }
  }
}

void cmd_latency_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "DOCTOR",
      "    Return a human readable latency analysis report.",
      "GRAPH <event>",
      "    Return an ASCII latency graph for the <event> class.",
      "HISTORY <event>",
      "    Return time-latency samples for the <event> class.",
      "LATEST",
      "    Return the latest latency samples for all events.",
      "RESET [<event> ...]",
      "    Reset latency data of one or more <event> classes.",
      "    (default: reset all data for all event classes)",
      "HISTOGRAM [COMMAND ...]",
      "    Return the latency histogram of the named commands, by powers of two.",
      "    If no commands are specified then all histograms are replied.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast

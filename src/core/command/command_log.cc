// Counts calls and errors, and keeps slow commands and latency samples.
#include "core/command/command_log.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/command/command.h"

namespace holdfast {

namespace {

bool is_cheap(const Command& command) { return command.complexity.starts_with("O(1)"); }

}  // namespace

std::array<uint64_t, TimeHistogram::kPowers> TimeHistogram::by_power() const {
  std::array<uint64_t, kPowers> powers{};
  for (size_t part = 0; part < counts_.size(); ++part) {
    const auto power = static_cast<size_t>(std::bit_width(end_of(part) - 1));
    powers[std::min(power, kPowers - 1)] += counts_[part];
  }
  return powers;
}

uint64_t TimeHistogram::calls() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

uint64_t TimeHistogram::percentile_us(double percent) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(static_cast<double>(calls()) * percent / 100));
  uint64_t within = 0;
  for (size_t part = 0; part < counts_.size(); ++part) {
    within += counts_[part];
    if (within > 0 && within >= wanted) return end_of(part);
  }
  return 0;
}

CommandLog::CommandLog() : commands_(all_commands().data()) { reset_counts(); }

CommandCounts& CommandLog::counts(const Command& command) {
  return counts_[static_cast<size_t>(&command - commands_)];
}
const CommandCounts& CommandLog::counts_of(const Command& command) const {
  return counts_[static_cast<size_t>(&command - commands_)];
}

bool CommandLog::begin(const Command& command) {
  CommandCounts& c = counts(command);
  return c.calls++ % c.sampled == 0;
}

void CommandLog::record_time(const Command& command, int64_t us, bool tracked) {
  CommandCounts& c = counts(command);
  ++c.timed;
  c.timed_us += static_cast<uint64_t>(us);
  c.durations.record_us(static_cast<uint64_t>(us));
  if (tracked) c.histogram.add(static_cast<uint64_t>(us));
}

void CommandLog::count_error(std::string_view reply) {
  ++all_errors_;
  // As in Redis: a reply without a blank in its first bytes has no error code.
  constexpr size_t kCodeWithin = 32;
  const size_t end = reply.substr(0, kCodeWithin).find(' ');
  std::string code(end == std::string_view::npos ? "ERR" : reply.substr(1, end - 1));
  const auto it = errors_.find(code);
  if (it != errors_.end()) {
    ++it->second;
  } else if (errors_.size() < kMaxErrorCodes) {
    errors_.emplace(std::move(code), 1);
  }
}

void CommandLog::record_failure(const Command& command, std::string_view reply, bool again) {
  ++counts(command).failed;
  if (!again) count_error(reply);
}

void CommandLog::record_rejection(const Command* command, std::string_view reply) {
  if (command != nullptr) ++counts(*command).rejected;
  count_error(reply);
}

void CommandLog::keep_slow(SlowCommand slow, size_t most) {
  slow.id = last_slow_id_++;
  slow_.push_front(std::move(slow));
  while (slow_.size() > most) slow_.pop_back();
}

void CommandLog::record_latency(const std::string& event, int64_t at_s, int64_t ms) {
  LatencyEvent& e = latency_[event];
  e.max_ms = std::max(e.max_ms, ms);
  if (!e.samples.empty() && e.samples.back().at_s == at_s) {
    e.samples.back().ms = std::max(e.samples.back().ms, ms);
    return;
  }
  e.samples.push_back({at_s, ms});
  if (e.samples.size() > LatencyEvent::kMaxSamples) e.samples.pop_front();
}

void CommandLog::reset_counts() {
  counts_.assign(all_commands().size(), {});
  for (const Command& c : all_commands()) counts(c).sampled = is_cheap(c) ? kSampled : 1;
  errors_.clear();
  all_errors_ = 0;
}

}  // namespace holdfast

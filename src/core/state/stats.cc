// The rates of INFO.
#include "core/state/stats.h"

#include <algorithm>

namespace holdfast {

void TrafficRates::take(const TrafficTotals& totals, TimeMs now) {
  samples_[count_ % kSamples] = {now, totals};
  ++count_;
}

TrafficRates::PerSecond TrafficRates::rates(const TrafficTotals& totals, TimeMs now) const {
  if (count_ == 0) return {};
  size_t i = 0;
  while (i + 1 < std::min(count_, kSamples) && !is_due(newest(i + 1).at + kWindow, now)) ++i;
  const Sample& from = newest(i);
  const double seconds = static_cast<double>(std::max((now - from.at).count, kBetween.count)) / 1000;
  const auto rate = [&](uint64_t before, uint64_t after) {
    return static_cast<double>(after - before) / seconds;
  };
  return {rate(from.totals.commands, totals.commands), rate(from.totals.read_bytes, totals.read_bytes),
          rate(from.totals.written_bytes, totals.written_bytes)};
}

}  // namespace holdfast

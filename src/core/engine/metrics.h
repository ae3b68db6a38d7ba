// The figures of the server as text for Prometheus. Nothing here walks keys, waiters or connections, so
// that the cost of a scrape does not depend on their number. No label comes from a client.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/duration_histogram.h"
#include "core/base/types.h"

namespace holdfast {

class Engine;
struct EngineState;

enum class MetricsFormat : uint8_t {
  kPrometheus,   // text format 0.0.4
  kOpenMetrics,  // OpenMetrics 1.0
};

// The figures that only the shell has.
struct ShellMetrics {
  DurationHistogram loop_iterations;  // the working time of each loop iteration
  DurationHistogram journal_syncs;    // fsync of the journal
  double cpu_s = 0;                   // user and system
  int64_t rss_bytes = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
  double start_time_s = 0;  // since 1970
};

// Appends all metrics to `out`.
void write_metrics(const EngineState& s, Now now, const ShellMetrics& shell, MetricsFormat format,
                   std::string& out);
void write_metrics(const Engine& engine, Now now, const ShellMetrics& shell, MetricsFormat format,
                   std::string& out);

}  // namespace holdfast

// Writes metrics as text, in the format of Prometheus or of OpenMetrics. Knows nothing of the engine.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/duration_histogram.h"
#include "core/engine/metrics.h"

namespace holdfast {

struct Label {
  std::string_view name;
  std::string_view value;
};
using Labels = std::initializer_list<Label>;

// Each family begins with one of counter(), gauge(), histogram() and info(); the samples of that family
// follow.
class MetricsWriter {
 public:
  MetricsWriter(MetricsFormat format, std::string& out) : format_(format), out_(out) {}

  // The name of a counter ends with "_total".
  void counter(std::string_view name, std::string_view help);
  void gauge(std::string_view name, std::string_view help) { family(name, "gauge", help); }
  void histogram(std::string_view name, std::string_view help) { family(name, "histogram", help); }
  // The name ends with "_info". The value of its sample is 1.
  void info(std::string_view name, std::string_view help);

  template <std::integral Number>
  void sample(Labels labels, Number value) {
    write_sample(name_, labels, {}, std::to_string(value));
  }
  // `us`: microseconds, written as seconds.
  void sample_us(Labels labels, uint64_t us);
  void sample(Labels labels, double value);
  void sample(Labels labels, const DurationHistogram& h);

  // Families with one sample.
  template <class Number>
  void counter(std::string_view name, std::string_view help, Number value) {
    counter(name, help);
    sample({}, value);
  }
  template <class Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    gauge(name, help);
    sample({}, value);
  }
  void finish();

 private:
  void family(std::string_view name, std::string_view type, std::string_view help);
  void write_sample(std::string_view name, Labels labels, Label last, std::string_view value);
  void write_label(Label label);

  MetricsFormat format_;
  std::string& out_;
  std::string name_;  // of the present family
};

}  // namespace holdfast

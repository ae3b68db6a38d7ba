// The text of metrics.
#include "core/engine/metrics_writer.h"

#include <cstdio>

namespace holdfast {

namespace {

// 1234567 -> "1.234567", 100 -> "0.0001", 0 -> "0".
std::string seconds(uint64_t us) {
  constexpr uint64_t kUsPerS = 1000000;
  std::string text = std::to_string(us / kUsPerS);
  if (us % kUsPerS == 0) return text;
  text += "." + std::to_string(kUsPerS + us % kUsPerS).substr(1);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

}  // namespace

// In OpenMetrics the name of the family has no suffix.
void MetricsWriter::counter(std::string_view name, std::string_view help) {
  family(format_ == MetricsFormat::kOpenMetrics ? without(name, "_total") : name, "counter", help);
  name_ = name;
}

void MetricsWriter::info(std::string_view name, std::string_view help) {
  if (format_ == MetricsFormat::kOpenMetrics) {
    family(without(name, "_info"), "info", help);
  } else {
    family(name, "gauge", help);
  }
  name_ = name;
}

void MetricsWriter::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  out_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

// Label values must be UTF-8, so each byte that is not printable ASCII becomes '?'.
void MetricsWriter::write_label(Label label) {
  out_.append(label.name).append("=\"");
  for (const char c : label.value) {
    if (c == '\\' || c == '"') out_ += '\\';
    if (c == '\n') {
      out_.append("\\n");
    } else {
      out_ += c < ' ' || c > '~' ? '?' : c;
    }
  }
  out_ += '"';
}

void MetricsWriter::write_sample(std::string_view name, Labels labels, Label last, std::string_view value) {
  out_.append(name);
  char separator = '{';
  const auto write = [&](const Label& label) {
    out_ += std::exchange(separator, ',');
    write_label(label);
  };
  for (const Label& label : labels) write(label);
  if (!last.name.empty()) write(last);
  if (separator == ',') out_ += '}';
  out_.append(" ").append(value).append("\n");
}

void MetricsWriter::sample_us(Labels labels, uint64_t us) { write_sample(name_, labels, {}, seconds(us)); }

void MetricsWriter::sample(Labels labels, double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  write_sample(name_, labels, {}, text);
}

void MetricsWriter::sample(Labels labels, const DurationHistogram& h) {
  const std::string bucket = name_ + "_bucket";
  uint64_t within = 0;
  for (size_t n = 0; n < DurationHistogram::kBounds; ++n) {
    within += h.in_bucket(n);
    write_sample(bucket, labels, {"le", seconds(DurationHistogram::bound_us(n))}, std::to_string(within));
  }
  const std::string all = std::to_string(h.count());
  write_sample(bucket, labels, {"le", "+Inf"}, all);
  write_sample(name_ + "_sum", labels, {}, seconds(h.sum_us()));
  write_sample(name_ + "_count", labels, {}, all);
}

void MetricsWriter::finish() {
  if (format_ == MetricsFormat::kOpenMetrics) out_.append("# EOF\n");
}

}  // namespace holdfast

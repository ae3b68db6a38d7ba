// The timers of the reports. While the server starts or stops, each report extends the manager's time
// limit.
#include "io/net/service_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "io/os/handles.h"

namespace holdfast {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
// The start or stop may take so much longer than the last report. A sync of a large file makes no report.
constexpr std::string_view kExtension = "EXTEND_TIMEOUT_USEC=60000000";

int64_t monotonic_us() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

}  // namespace

void ServiceReporter::start(uv_loop_t* loop, std::function<std::string()> status) {
  notify_ = ServiceNotify::from_environment();
  if (!notify_.is_enabled()) return;
  status_ = std::move(status);
  for (uv_timer_t* timer : {&second_timer_, &watchdog_timer_}) {
    uv_timer_init(loop, timer);
    timer->data = this;
  }
  uv_timer_start(&second_timer_, on_second, 0, 1000);
  if (notify_.watchdog_us() == 0) return;
  const uint64_t half_ms = std::max<uint64_t>(1, notify_.watchdog_us() / 2000);
  uv_timer_start(&watchdog_timer_, on_watchdog, 0, half_ms);
}

void ServiceReporter::on_second(uv_timer_t* timer) noexcept {
  ServiceReporter* reporter = owner_of<ServiceReporter>(timer->data);
  reporter->notify_.retry();
  const bool starting = reporter->phase_ == Phase::kStarting;
  reporter->report_status(starting ? std::string(kExtension) : "");
}

void ServiceReporter::on_watchdog(uv_timer_t* timer) noexcept {
  owner_of<ServiceReporter>(timer->data)->notify_.send_alive();
}

// Sends the lines `before` and the status, if it is new.
void ServiceReporter::report_status(const std::string& before) {
  std::string lines = before;
  std::string status = service_text(status_());
  if (status != sent_status_) {
    lines += (lines.empty() ? "STATUS=" : "\nSTATUS=") + status;
    sent_status_ = std::move(status);
  }
  if (!lines.empty()) notify_.send(lines);
}

void ServiceReporter::ready() {
  if (!notify_.is_enabled() || phase_ == Phase::kStopping) return;
  phase_ = Phase::kReady;
  report_status("READY=1");
}

void ServiceReporter::reloading() {
  if (phase_ == Phase::kReady) notify_.send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()));
}

// The start may not have ended: then the reload changes nothing for the manager.
void ServiceReporter::reloaded() {
  if (phase_ == Phase::kReady) notify_.send("READY=1");
}

void ServiceReporter::stopping(const std::string& why) {
  if (!notify_.is_enabled()) return;
  phase_ = Phase::kStopping;
  notify_.send(fmt::format("STOPPING=1\nSTATUS=stopping after {}\n{}", service_text(why), kExtension));
}

void ServiceReporter::working() {
  if (!notify_.is_enabled()) return;
  const uint64_t now_ns = uv_hrtime();
  const uint64_t half_ns = notify_.watchdog_us() * 500;
  if (now_ns - worked_at_ns_ < (half_ns == 0 ? kSecondNs : std::min(half_ns, kSecondNs))) return;
  worked_at_ns_ = now_ns;
  if (notify_.watchdog_us() > 0) notify_.send_alive();
  if (phase_ != Phase::kReady) notify_.send(kExtension);
}

void ServiceReporter::close() {
  if (!notify_.is_enabled()) return;
  close_handle(second_timer_);
  close_handle(watchdog_timer_);
}

}  // namespace holdfast

// The server's state as one line for its service manager: `systemctl status` shows it.
#include <fmt/format.h>

#include "io/net/server.h"
#include "io/os/clock.h"

namespace holdfast {

std::string Server::service_status() const {
  if (store_ != nullptr) {
    if (const auto percent = store_->loaded_percent()) return fmt::format("loading: {} %", *percent);
  }
  const Availability& availability = engine_.availability();
  if (!availability.refusal.empty()) return availability.refusal;
  const int64_t wait_ms = availability.recovering_until.count - read_clock().mono.count;
  if (wait_ms > 0) {
    const int64_t seconds = (wait_ms + 999) / 1000;
    return fmt::format("recovery wait: no new locks are granted for {} s", seconds);
  }
  return ready_text();
}

}  // namespace holdfast

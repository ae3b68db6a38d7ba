// The pause before the next connection, which grows with each consecutive failure. The longest pause is
// short in comparison with the TTL of a hold: a restarted server must be healed before the next server may
// fail.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/types.h"

namespace holdfast::client {

class Backoff {
 public:
  static constexpr DurationMs kFirst{10};
  static constexpr DurationMs kLongest{250};

  void fail(std::string why, TimeMs now) {
    why_ = std::move(why);
    until_ = now + pause_;
    pause_ = std::min(DurationMs{2 * pause_.count}, kLongest);
  }
  void succeed() { pause_ = kFirst; }

  TimeMs until() const { return until_; }
  const std::string& why() const { return why_; }  // reason of the last failure

 private:
  DurationMs pause_ = kFirst;
  TimeMs until_{};
  std::string why_;
};

}  // namespace holdfast::client

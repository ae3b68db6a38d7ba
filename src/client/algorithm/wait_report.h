// Decides when a waiting verb reports the servers that it cannot use, and composes the text; the caller
// prints it. The caller passes the time, in ms of any monotonic clock.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"

namespace holdfast::client {

// Returns the servers that did not answer or that rejected the request, each with its reason and advice, as
// in "cannot reach 127.0.0.1:7379: connection refused". Empty if there are none.
std::string trouble_of(const std::vector<ServerReport>& servers);

class WaitReport {
 public:
  using Ms = std::chrono::milliseconds;
  // The same text is reported again after pauses that double from kAgain to kLongest. A new text is
  // reported kAtLeast after the last report, not earlier.
  static constexpr Ms kAgain{5000}, kLongest{60000}, kAtLeast{1000};

  // Takes the result of a failed attempt that will be retried. Returns the text to report now, if any. An
  // attempt does not wait for all servers: a server without an answer appears with its last known state.
  std::optional<std::string> note(const Status& result, Ms now);
  // As note() of a Status, for any other text.
  std::optional<std::string> note(const std::string& news, Ms now);
  // Takes the state of all servers from a separate inquiry. Returns what is wrong with them. The caller
  // includes it in a report, now and again within kLongest, so note() of a Status does not repeat it.
  std::string cover(const std::vector<ServerReport>& servers, Ms now);

 private:
  std::vector<ServerReport> completed(const std::vector<ServerReport>& servers);
  bool is_due(const std::string& news, Ms now);

  std::map<std::string, ServerReport> known_;  // servers that are unreachable or reject requests
  std::string reported_;
  std::optional<Ms> reported_at_;
  Ms pause_ = kAgain;
};

}  // namespace holdfast::client

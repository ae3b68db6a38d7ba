// What a verb that waits tells meanwhile of servers that it cannot use, and why. Decides when and in which
// words; the caller prints. Time is given, in ms of any clock that never goes back.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"

namespace holdfast::client {

// The servers that did not answer or refused, each with its reason and what to do, as in "cannot reach
// 127.0.0.1:7379: connection refused"; empty where there are none.
std::string trouble_of(const std::vector<ServerReport>& servers);

class WaitReport {
 public:
  using Ms = std::chrono::milliseconds;
  // The same news is told again after pauses that double from one to the other; other news no sooner than
  // after kAtLeast.
  static constexpr Ms kAgain{5000}, kLongest{60000}, kAtLeast{1000};

  // Of an attempt that failed, others will follow: what is to be told now, if anything. An attempt does not
  // wait for all servers: of one that has not answered it, what was last known is told.
  std::optional<std::string> note(const Result& result, Ms now);
  // The same of any other news.
  std::optional<std::string> note(const std::string& news, Ms now);
  // Of all servers, which were asked beside the attempts: what is wrong with them. The caller tells it,
  // with more, and will do so again within kLongest: note() of a Result does not repeat it.
  std::string cover(const std::vector<ServerReport>& servers, Ms now);

 private:
  std::vector<ServerReport> completed(const std::vector<ServerReport>& servers);
  bool is_due(const std::string& news, Ms now);

  std::map<std::string, ServerReport> known_;  // of servers that are away or refuse
  std::string told_;
  std::optional<Ms> told_at_;
  Ms pause_ = kAgain;
};

}  // namespace holdfast::client

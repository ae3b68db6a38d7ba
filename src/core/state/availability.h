// What the disk lets the server do at present. The shell says so; requests.cc and waiting.cc obey.
#pragma once

#include <string>

#include "core/base/types.h"

namespace holdfast {

struct Availability {
  bool loading = false;  // data is being read: few commands run
  // Why nothing that has to be kept may be promised now: the text of an error. Empty: it may.
  std::string refusal;
  // Holds that were lost may be alive elsewhere until then: nothing is granted.
  TimeMs recovering_until{0};

  bool grants(TimeMs now) const { return refusal.empty() && is_due(recovering_until, now); }
};

}  // namespace holdfast

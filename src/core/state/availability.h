// The limits that the disk puts on the server at present. The shell sets it; requests.cc and waiting.cc
// obey it.
#pragma once

#include <string>

#include "core/base/types.h"

namespace holdfast {

struct Availability {
  bool loading = false;  // the shell reads the data: few commands run
  // Error text: why the server can promise nothing that must be kept. Empty if it can.
  std::string refusal;
  // Until this time, lost holds may still be valid elsewhere, so the server grants nothing.
  TimeMs recovering_until{0};

  bool grants(TimeMs now) const { return refusal.empty() && is_due(recovering_until, now); }
};

}  // namespace holdfast

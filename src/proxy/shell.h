// What the proxy needs of the server that has its loop and its engine.
#pragma once

#include <functional>
#include <string>

#include "core/base/types.h"
#include "core/engine/engine.h"

namespace holdfast::proxy {

struct Shell {
  std::function<const Now&()> now;  // the time of this loop iteration; begins one if needed
  std::function<Effects&()> effects;
  std::function<Engine&()> engine;
  std::function<void(const std::string& line)> log;
};

}  // namespace holdfast::proxy

// What a verb that waits for a lock reports meanwhile: the holders, and servers that cannot be used.
#pragma once

#include <functional>
#include <string>

#include "cli/show.h"
#include "holdfast/client.h"

namespace holdfast {

// `event` is "waiting" or "unreachable"; `facts` are for programs, `text` has the same for people.
using TellWait = std::function<void(const std::string& event, const Json& facts, const std::string& text)>;

// Sets what tells of a wait in `options`. `tell` is called on the client's thread, and must not wait.
void tell_wait(LockOptions& options, TellWait tell);

}  // namespace holdfast
